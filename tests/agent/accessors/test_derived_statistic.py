"""Derived statistics follow their sources."""

from __future__ import annotations

import gc
import weakref

from agent.object_states import wire
from agent.warehouse import Shelf


def test_derived_statistics_follow_their_sources(shelf: Shelf) -> None:
    shelf.in_.set(10)
    shelf.out.set(4)
    assert (shelf.depth.value, shelf.twice) == (6, 12)
    assert wire(shelf, "depth", "twice") == [6, 12]


def test_a_derived_statistic_outlives_its_object_and_does_not_keep_it(shelf: Shelf) -> None:
    loose = Shelf(number=2)
    loose.in_.inc(9)
    seen, depth = weakref.ref(loose), loose.depth
    gc.disable()
    try:
        del loose
        assert seen() is None
    finally:
        gc.enable()
    assert depth.value == 9


def test_a_derived_value_stays_in_its_range(shelf: Shelf) -> None:
    shelf.out.set(4)
    assert (shelf.depth.value, shelf.twice) == (0, 0)
