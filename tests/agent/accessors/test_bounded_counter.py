"""Counters and what all accessors share: arithmetic, bounds, updates that are restored, threads."""

from __future__ import annotations

import threading

import pytest
from agent.object_states import changed, wire
from agent.warehouse import Shelf

from qmf.agent.layout.class_layout import STATISTICS
from qmf.agent.model.object_values import take_update
from qmf.errors import ConstraintError


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


def test_reading_ends_no_interval(shelf: Shelf) -> None:
    shelf.users.inc(5)
    shelf.users.set(1)
    shelf.wait.sample(3)
    first = shelf._qmf_values()
    assert shelf._qmf_values() == first
    assert (first["usersHigh"], first["waitCount"]) == (5, 1)


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
