"""Hilos: values and marks, intervals, threads."""

from __future__ import annotations

import sys
import threading
from types import FrameType

import pytest
from agent.object_states import wire
from agent.warehouse import Shelf

from qmf.agent import HiLo
from qmf.agent.model.object_values import take_update

# (operations, then value, high, low); "|" stands for a new interval.
HILO = [
    ([], (0, 0, 0)),
    ([3], (3, 3, 0)),
    ([3, -2], (1, 3, 0)),
    ([3, -2, "|"], (1, 1, 1)),
    ([3, "|", -2], (1, 3, 1)),
    ([3, "|", 4, -6], (1, 7, 1)),
    ([3, "|", "|"], (3, 3, 3)),
    ([9, -9, 4, "|", -4, 2], (2, 4, 0)),
]


@pytest.mark.parametrize(("steps", "expected"), HILO)
def test_hilo(shelf: Shelf, steps: list[int | str], expected: tuple[int, int, int]) -> None:
    for step in steps:
        if isinstance(step, str):
            take_update(shelf, 0)
        else:
            shelf.users.inc(step)
    assert (shelf.users.value, shelf.users.high, shelf.users.low) == expected
    assert tuple(wire(shelf, "users", "usersHigh", "usersLow")) == expected


# (methods and arguments, then value, high, low): a first `set` begins the interval, anything later moves the marks.
HILO_SET = [
    ([("set", 5)], (5, 5, 5)),
    ([("set", 5), ("set", 2)], (2, 5, 2)),
    ([("set", 0), ("set", 5)], (5, 5, 0)),
    ([("inc", 1), ("set", 5)], (5, 5, 0)),
    ([("set", 5), ("dec", 1)], (4, 5, 4)),
]


@pytest.mark.parametrize(("steps", "expected"), HILO_SET)
def test_hilo_set(shelf: Shelf, steps: list[tuple[str, int]], expected: tuple[int, int, int]) -> None:
    for method, value in steps:
        getattr(shelf.users, method)(value)
    assert (shelf.users.value, shelf.users.high, shelf.users.low) == expected


def test_a_first_value_after_a_publication_belongs_to_an_interval_that_began_without_it(shelf: Shelf) -> None:
    shelf.in_.inc()
    assert take_update(shelf, 0) is not None
    shelf.users.set(5)
    assert (shelf.users.value, shelf.users.high, shelf.users.low) == (5, 5, 0)


def test_of_two_first_values_of_two_threads_none_is_lost(shelf: Shelf) -> None:
    others = [threading.Thread(target=shelf.users.set, args=(3,))]

    def run_another(frame: FrameType, event: str, _: object) -> None:
        # Where a function begins, the interpreter may run another thread.
        if event == "call" and frame.f_back is not None and frame.f_back.f_code is HiLo.set.__code__:
            while others:
                other = others.pop()
                other.start()
                other.join()

    before = sys.getprofile()
    sys.setprofile(run_another)
    try:
        shelf.users.set(50)
    finally:
        sys.setprofile(before)
    assert not others
    assert (shelf.users.value, shelf.users.high, shelf.users.low) == (50, 50, 3)


def test_marks_that_go_back_to_rest_are_published_once(shelf: Shelf) -> None:
    shelf.users.inc(5)
    update = [take_update(shelf, 0), take_update(shelf, 0), take_update(shelf, 0)]
    assert [item and (item.values["usersHigh"], item.values["usersLow"]) for item in update] == [(5, 0), (5, 5), None]
