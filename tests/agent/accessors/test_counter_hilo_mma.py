"""Counters, hilos and mmas: arithmetic, bounds, intervals, threads."""

from __future__ import annotations

import gc
import sys
import threading
import weakref
from types import FrameType

import pytest
from agent.object_states import changed, settle
from agent.warehouse import Shelf

from qmf.agent import HiLo
from qmf.agent.layout.class_layout import STATISTICS
from qmf.agent.model.object_values import take_update
from qmf.errors import ConstraintError


@pytest.fixture
def shelf() -> Shelf:
    shelf = Shelf(number=1)
    settle(shelf)
    return shelf


def wire(shelf: Shelf, *names: str) -> list[object]:
    values = shelf._qmf_values()
    return [values[name] for name in names]


def test_counter_adds_subtracts_and_sets(shelf: Shelf) -> None:
    shelf.in_.inc()
    shelf.in_.inc(5)
    shelf.in_.dec()
    shelf.in_.dec(2)
    assert shelf.in_.value == 3
    shelf.in_.set(70)
    assert wire(shelf, "in") == [70]
    assert changed(shelf) == STATISTICS


def test_setting_the_same_is_no_change(shelf: Shelf) -> None:
    shelf.in_.set(0)
    assert changed(shelf) == 0


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


# (samples, then count, min, max, average on the wire)
MMA = [
    ([], (0, 0, 0, 0)),
    ([7], (1, 7, 7, 7)),
    ([7, 2, 4], (3, 2, 7, 4)),
    ([7, 2, 3, "|"], (0, 0, 0, 0)),
    ([7, "|", 5, 6], (2, 5, 6, 5)),
    ([0], (1, 0, 0, 0)),
]


@pytest.mark.parametrize(("steps", "expected"), MMA)
def test_mma(shelf: Shelf, steps: list[int | str], expected: tuple[int, int, int, int]) -> None:
    for step in steps:
        if isinstance(step, str):
            take_update(shelf, 0)
        else:
            shelf.wait.sample(step)
    assert (shelf.wait.samples, shelf.wait.min, shelf.wait.max, int(shelf.wait.average)) == expected
    assert tuple(wire(shelf, "waitCount", "waitMin", "waitMax", "waitAvg")) == expected


def test_mma_average_is_exact_in_the_program(shelf: Shelf) -> None:
    shelf.wait.sample(1)
    shelf.wait.sample(2)
    assert shelf.wait.average == 1.5


def test_reading_ends_no_interval(shelf: Shelf) -> None:
    shelf.users.inc(5)
    shelf.users.set(1)
    shelf.wait.sample(3)
    first = shelf._qmf_values()
    assert shelf._qmf_values() == first
    assert (first["usersHigh"], first["waitCount"]) == (5, 1)


def test_marks_that_go_back_to_rest_are_published_once(shelf: Shelf) -> None:
    shelf.users.inc(5)
    update = [take_update(shelf, 0), take_update(shelf, 0), take_update(shelf, 0)]
    assert [item and (item.values["usersHigh"], item.values["usersLow"]) for item in update] == [(5, 0), (5, 5), None]


def test_an_update_can_be_restored(shelf: Shelf) -> None:
    shelf.users.inc(9)
    shelf.users.set(4)
    shelf.wait.sample(10)
    update = take_update(shelf, 0)
    assert update is not None
    shelf.users.set(2)
    shelf.wait.sample(30)
    shelf.wait.sample(5)
    update.restore()
    assert (shelf.users.value, shelf.users.high, shelf.users.low) == (2, 9, 0)
    assert (shelf.wait.samples, shelf.wait.min, shelf.wait.max, shelf.wait.average) == (3, 5, 30, 15)


def test_restoring_into_an_empty_interval(shelf: Shelf) -> None:
    shelf.wait.sample(10)
    update = take_update(shelf, 0)
    assert update is not None
    update.restore()
    assert (shelf.wait.samples, shelf.wait.min, shelf.wait.max) == (1, 10, 10)
    assert changed(shelf) == STATISTICS


@pytest.mark.parametrize(
    ("name", "action", "value", "text"),
    [
        ("in_", "dec", 1, "Shelf.in (count64): must be 0 to 18446744073709551615, not -1"),
        ("out", "set", 1 << 32, "Shelf.out (count32): must be 0 to 4294967295, not 4294967296"),
        ("out", "inc", 1 << 32, "Shelf.out (count32): must be 0 to 4294967295, not 4294967296"),
        ("users", "inc", 256, "Shelf.users (hilo8): must be 0 to 255, not 256"),
        ("users", "set", True, "Shelf.users (hilo8): must be a whole number, not True"),
        ("in_", "inc", 1.0, "Shelf.in (count64): must be a whole number, not 1.0"),
        ("in_", "dec", "1", "Shelf.in (count64): must be a whole number, not '1'"),
        ("wait", "sample", -1, "Shelf.wait (mmaTime): must be 0 to 18446744073709551615, not -1"),
        ("wait", "sample", None, "Shelf.wait (mmaTime): must be a whole number, not None"),
        ("depth", "set", 3, "Shelf.depth (count64): is computed as 'in - out' and cannot be set, not 3"),
        ("depth", "inc", 1, "Shelf.depth (count64): is computed as 'in - out' and cannot be set, not 1"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    shelf: Shelf, name: str, action: str, value: object, text: str
) -> None:
    before = shelf._qmf_values()
    with pytest.raises(ConstraintError) as caught:
        getattr(getattr(shelf, name), action)(value)
    assert str(caught.value) == text
    assert shelf._qmf_values() == before
    assert changed(shelf) == 0


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


def test_threads_lose_no_update(shelf: Shelf) -> None:
    start = threading.Barrier(9)

    def work() -> None:
        start.wait()
        for number in range(2000):
            shelf.in_.inc()
            shelf.out.inc(2)
            shelf.out.dec()
            shelf.wait.sample(number)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    start.wait()
    counts = []
    while any(thread.is_alive() for thread in threads):
        update = take_update(shelf, 0)
        if update is not None:
            counts.append(update.values["waitCount"])
    for thread in threads:
        thread.join()
    last = take_update(shelf, 0)
    if last is not None:
        counts.append(last.values["waitCount"])
    assert (shelf.in_.value, shelf.out.value) == (16_000, 16_000)
    assert sum(int(str(count)) for count in counts) == 16_000
