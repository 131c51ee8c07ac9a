"""First in, first out; priorities; last values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest
from broker.nodes.parts import RecordingConsumer, depth_of, drain, message, put, queue, text_of, waiting
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.nodes.entries import ACQUIRED, AVAILABLE, Entry
from qmf.broker.nodes.last_values import SUBJECT_KEY, Replacement
from qmf.broker.nodes.orders import FifoOrder
from qmf.broker.nodes.priorities import PriorityOrder
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.settings import OverflowPolicy

KEY = "qpid.LVQ_key"


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=200))
def test_fifo_keeps_positions_whatever_is_taken_and_restored(steps: list[tuple[bool, int]]) -> None:
    order = FifoOrder()
    available = [Entry(message(str(number)), number, 1) for number in range(30)]
    taken: list[Entry] = []
    for entry in available:
        order.add(entry)
    for take, index in steps:
        source, target = (available, taken) if take else (taken, available)
        if not source:
            continue
        entry = source.pop(index % len(source))
        target.append(entry)
        entry.state = ACQUIRED if take else AVAILABLE
        if take:
            order.take(entry)
        else:
            order.restore(entry)
        available.sort(key=lambda one: one.position)
        assert list(order) == available
        assert len(order) == len(available)
        assert order.first() is (available[0] if available else None)


def test_entries_that_are_taken_from_the_middle_do_not_pile_up() -> None:
    order = FifoOrder()
    first = Entry(message("first"), 0, 1)
    order.add(first)
    for number in range(1, 10_000):
        entry = Entry(message("x"), number, 1)
        order.add(entry)
        entry.state = ACQUIRED
        order.take(entry)
    assert (list(order), len(order)) == ([first], 1)
    assert entry.linked is False or number < 10_000
    entry.state = AVAILABLE
    order.restore(entry)
    assert list(order) == [first, entry]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (10, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]),
        (5, [0, 0, 0, 1, 2, 3, 4, 4, 4, 4]),
        (2, [0, 0, 0, 0, 0, 1, 1, 1, 1, 1]),
        (1, [0] * 10),
    ],
)
def test_priorities_share_levels_as_amqp_wants(levels: int, expected: Sequence[int]) -> None:
    order = PriorityOrder(levels)
    assert [order.level(priority) for priority in range(10)] == expected


def test_higher_priorities_come_first() -> None:
    it, _, _ = queue(count=None, priorities=10)
    for number, priority in enumerate((4, 9, 0, 4, 9)):
        it.enqueue(message(f"{priority}{number} ", priority=priority))
    assert drain(it) == ["91 ", "94 ", "40 ", "43 ", "02 "]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"fairshare": 2}, "995599559955"),
        ({"shares": {9: 3, 5: 1}}, "999599955555"),
        ({}, "999999555555"),
    ],
)
def test_with_fairshare_lower_priorities_have_their_turns(settings: dict[str, Any], expected: str) -> None:
    it, _, _ = queue(count=None, priorities=10, **settings)
    for priority in (5, 9):
        for _ in range(6):
            it.enqueue(message(str(priority), priority=priority))
    assert "".join(drain(it)) == expected


@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 10))
def test_priorities_are_a_stable_sort(priorities: list[int], levels: int) -> None:
    it, _, _ = queue(count=None, size=None, priorities=levels)
    order = PriorityOrder(levels)
    for number, priority in enumerate(priorities):
        it.enqueue(message(f"{number}", priority=priority))
    expected = sorted(range(len(priorities)), key=lambda number: -order.level(priorities[number]))
    assert drain(it) == [str(number) for number in expected]


# Last values: the listings of the broker manual's chapter 6


def write(it: Queue, process: str) -> None:
    """What `lvqtest --mode write` sends."""
    for key in ("key1", "key2", "key3", "key1"):
        it.enqueue(message(f"{key}.{process}", headers={KEY: key}))
    it.enqueue(message("last", headers={KEY: "last"}))


def browse(it: Queue) -> list[str]:
    """What `lvqtest --mode browse` shows."""
    found = []
    for entry in it.contents.waiting():
        if it.contents.is_readable(entry):
            it.contents.order.on_browsed(entry)
            found.append(text_of(entry.message))
    return found


def values(process: str) -> list[str]:
    return [f"key1.{process}", f"key2.{process}", f"key3.{process}", "last"]


def last_values(replacement: Replacement, key: str = KEY) -> Queue:
    return queue(OverflowPolicy.REJECT, None, None, value_key=key, replacement=replacement)[0]


def test_the_manual_lvq() -> None:
    it = last_values(Replacement.IN_PLACE)
    write(it, "one")
    assert browse(it) == values("one")
    write(it, "two")
    assert browse(it) == values("two")
    assert drain(it) == values("one") + values("two")
    assert it.counters.replaced == 2


def test_the_manual_lvq_no_browse() -> None:
    it = last_values(Replacement.IN_PLACE_BROWSED)
    write(it, "one")
    write(it, "two")
    assert browse(it) == browse(it) == values("two")
    write(it, "three")
    assert drain(it) == values("three")


def test_with_a_key_of_its_own_a_new_value_goes_to_the_end() -> None:
    it = last_values(Replacement.AT_END, "symbol")
    for symbol, text in (("RHT", "1"), ("IBM", "2"), ("RHT", "3"), ("JAVA", "4")):
        it.enqueue(message(text, symbol=symbol))
    assert browse(it) == ["2", "3", "4"]
    it.enqueue(message("5", symbol="IBM"))
    assert (browse(it), depth_of(it), it.counters.replaced) == (["3", "4", "5"], (3, 3), 2)


def test_the_subject_may_be_the_key() -> None:
    it = last_values(Replacement.AT_END, SUBJECT_KEY)
    for subject, text in (("a", "1"), ("b", "2"), ("a", "3")):
        it.enqueue(attrs.evolve(message(text), subject=subject))
    assert browse(it) == ["2", "3"]


@pytest.mark.parametrize("replacement", list(Replacement))
def test_an_acquired_value_is_left_to_its_consumer_and_dropped_if_it_comes_back_late(replacement: Replacement) -> None:
    it = last_values(replacement)
    it.enqueue(message("old", headers={KEY: "a"}))
    consumer = RecordingConsumer(credit=1)
    it.delivery.add_consumer(consumer)
    it.delivery.dispatch()
    it.enqueue(message("new", headers={KEY: "a"}))
    assert it.contents.depth.count == 2
    it.delivery.release(consumer.entries)
    assert (waiting(it), depth_of(it), it.counters.replaced) == (["new"], (1, 3), 1)


def test_a_value_that_came_back_is_not_replaced() -> None:
    it = last_values(Replacement.IN_PLACE)
    it.enqueue(message("old", headers={KEY: "a"}))
    consumer = RecordingConsumer(credit=1)
    it.delivery.add_consumer(consumer)
    it.delivery.dispatch()
    it.delivery.release(consumer.entries)
    it.enqueue(message("new", headers={KEY: "a"}))
    it.enqueue(message("newest", headers={KEY: "a"}))
    assert waiting(it) == ["old", "newest"]


def test_values_without_a_key_replace_each_other() -> None:
    it = last_values(Replacement.AT_END)
    put(it, "abc")
    assert waiting(it) == ["c"]


class Reader:
    """A browser that notes what is stored."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []

    def on_stored(self, entry: Entry) -> None:
        self.entries.append(entry)


def test_a_browser_that_is_behind_sees_the_newest_value_once() -> None:
    it = last_values(Replacement.IN_PLACE)
    reader = Reader()
    it.delivery.add_browser(reader)
    it.enqueue(message("old", headers={KEY: "a"}))
    it.enqueue(message("new", headers={KEY: "a"}))
    assert [text_of(entry.message) for entry in reader.entries if it.contents.is_readable(entry)] == ["new"]
    it.delivery.remove_browser(reader)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("pbg")), max_size=60), st.sampled_from(Replacement))
def test_the_last_value_of_each_key_is_never_lost(steps: list[tuple[str, str]], replacement: Replacement) -> None:
    it = last_values(replacement)
    latest: dict[str, str] = {}
    for number, (key, step) in enumerate(steps):
        if step == "p":
            it.enqueue(message(f"{key}{number}", headers={KEY: key}))
            latest[key] = f"{key}{number}"
        elif step == "b":
            assert sorted(browse(it)) == sorted(latest.values())
        elif (first := next(iter(it.contents.waiting()), None)) is not None:
            consumer = RecordingConsumer(credit=1)
            it.delivery.add_consumer(consumer)
            it.delivery.dispatch()
            it.delivery.remove_consumer(consumer)
            it.delivery.accept(first)
            if latest[text_of(first.message)[0]] == text_of(first.message):
                del latest[text_of(first.message)[0]]
        assert depth_of(it) == (len(it.contents), sum(entry.size for entry in it.contents.waiting()))
    assert sorted(browse(it)) == sorted(latest.values())
