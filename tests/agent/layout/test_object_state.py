"""The state of managed objects has one owner, and encoded properties are dropped when they change."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from agent.warehouse import Shelf, Site

from qmf.agent.layout import object_state
from qmf.agent.layout.object_state import StatefulObject

AGENT = Path(__file__).resolve().parents[3] / "qmf" / "agent"


@pytest.mark.parametrize("name", StatefulObject.__slots__)
def test_one_module_touches_an_attribute(name: str) -> None:
    found = {path.name for path in AGENT.rglob("*.py") if re.search(rf"\b{name}\b", path.read_text(encoding="utf-8"))}
    assert found == {"object_state.py"}


def test_encoded_properties_are_kept_until_they_change() -> None:
    shelf, ticks = Shelf(number=1), itertools.count(1)

    def tick() -> int:
        return next(ticks)

    assert object_state.kept_encoding(shelf, object_state.ENTRIES, tick) is None
    object_state.keep_encoding(shelf, object_state.ENTRIES, (b"entries", 1))
    lead = (1, b"name", b"lengths", b"values")
    object_state.keep_encoding(shelf, object_state.LEAD, lead)
    shelf.in_.inc()
    assert object_state.kept_encoding(shelf, object_state.ENTRIES, tick) == (b"entries", 1)
    assert object_state.kept_encoding(shelf, object_state.LEAD, tick) == lead
    shelf.label = "new"
    assert object_state.kept_encoding(shelf, object_state.ENTRIES, tick) is None
    assert object_state.kept_encoding(shelf, object_state.LEAD, tick) is None


def test_properties_with_a_reference_to_an_object_are_not_kept() -> None:
    shelf = Shelf(number=1, nextRef=Site(name="north"))
    object_state.note_changes(shelf, 1)
    object_state.keep_encoding(shelf, object_state.ENTRIES, (b"entries", 1))
    assert object_state.kept_encoding(shelf, object_state.ENTRIES, lambda: 2) is None
