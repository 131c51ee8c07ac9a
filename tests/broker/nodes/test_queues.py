"""Queues without AMQP: delivery, counting, taking. Limits, orders and so on have tests of their own."""

from __future__ import annotations

from collections.abc import Callable

from broker.nodes.parts import RecordingConsumer, depth_of, drain, encoded, message, put, queue, text_of, waiting
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.nodes.entries import AVAILABLE, GONE, Entry, EntryObserver
from qmf.broker.nodes.message import Message, read_message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.settings import OverflowPolicy


def test_messages_wait_in_order_for_a_consumer_and_go_on_directly_then() -> None:
    it, counters, _ = queue()
    put(it, "abc")
    assert (len(it.contents), depth_of(it)) == (3, (3, 3))
    consumer = RecordingConsumer(presettled=True)
    it.delivery.add_consumer(consumer)
    it.delivery.dispatch()
    put(it, "d")
    assert consumer.delivered == list("abcd")
    assert (len(it.contents), depth_of(it), counters.delivered) == (0, (0, 0), 4)


def test_consumers_take_turns_and_one_without_credit_is_passed_over() -> None:
    it, _, _ = queue(count=100)
    first, second, third = RecordingConsumer(), RecordingConsumer(credit=2), RecordingConsumer()
    for consumer in (first, second, third):
        it.delivery.add_consumer(consumer)
    for number in range(10):
        it.enqueue(message(str(number)))
    assert len(second.delivered) == 2
    assert abs(len(first.delivered) - len(third.delivered)) <= 1
    assert sorted(first.delivered + second.delivered + third.delivered) == [str(number) for number in range(10)]


def test_expired_messages_are_not_delivered() -> None:
    it, counters, clock = queue()
    it.enqueue(message("a", expires=1.0))
    it.enqueue(message("b"))
    it.enqueue(message("c", expires=3.0))
    clock.now = 1.0
    assert drain(it) == ["b", "c"]
    assert (counters.expired, depth_of(it)) == (1, (0, 0))


def test_expired_messages_are_removed_wherever_they_are() -> None:
    it, counters, clock = queue()
    for text, expires in (("a", None), ("b", 1.0), ("c", 2.0), ("d", None)):
        it.enqueue(message(text, expires))
    clock.now = 1.5
    assert (it.contents.expire(), it.contents.expire()) == (1, 0)
    assert (waiting(it), depth_of(it), counters.expired, it.counters.expired) == (["a", "c", "d"], (3, 3), 1, 1)


def test_messages_that_come_back_have_their_places_again() -> None:
    it, _, _ = queue()
    put(it, "abcd")
    consumer = RecordingConsumer(credit=3)
    it.delivery.add_consumer(consumer)
    it.delivery.dispatch()
    a, b, c = consumer.entries
    for entry in (b, a, c):
        it.delivery.release([entry])
    assert (waiting(it), depth_of(it)) == (list("abcd"), (4, 4))
    it.delivery.release([a])
    assert len(it.contents) == 4


def test_a_message_that_failed_comes_back_with_a_count() -> None:
    it, _, _ = queue()
    it.enqueue(read_message(encoded("a"), 0.0))
    consumer = RecordingConsumer(credit=2)
    it.delivery.add_consumer(consumer)
    it.delivery.dispatch()
    it.delivery.release(consumer.entries, failed=True)
    assert [entry.message.delivery_count for entry in consumer.entries] == [1, 1]
    assert (it.counters.releases, it.counters.acquires) == (1, 2)


def test_what_passed_is_counted() -> None:
    it, _, clock = queue(count=3)
    holder = RecordingConsumer(credit=0)
    it.delivery.add_consumer(holder)
    for text, expires in (("aa", None), ("b", 1.0), ("c", None), ("d", None)):
        it.enqueue(message(text, expires))
    counters = it.counters
    assert (counters.enqueues, counters.enqueued_bytes, counters.acquires, counters.dropped) == (4, 5, 0, 1)
    clock.now = 1.0
    holder.credit = 1
    it.delivery.dispatch()
    assert (counters.expired, counters.acquires, depth_of(it), it.contents.acquired_count) == (1, 1, (2, 2), 1)
    it.delivery.accept(holder.entries[0])
    it.delivery.accept(holder.entries[0])
    assert (depth_of(it), it.contents.acquired_count) == ((1, 1), 0)
    holder.credit = 1
    it.delivery.dispatch()
    it.delivery.release(holder.entries)
    assert (counters.releases, counters.acquires, counters.enqueues, len(it.contents)) == (1, 2, 4, 1)


def test_a_rejected_message_leaves_the_queue() -> None:
    it, _, _ = queue()
    put(it, "a")
    consumer = RecordingConsumer()
    it.delivery.add_consumer(consumer)
    it.delivery.dispatch()
    it.delivery.reject(consumer.entries[0])
    it.delivery.reject(consumer.entries[0])
    assert (depth_of(it), it.counters.rejected) == ((0, 0), 1)


def test_purging_takes_the_oldest_and_leaves_what_is_acquired() -> None:
    it, _, _ = queue()
    put(it, "abcd")
    it.delivery.add_consumer(RecordingConsumer(credit=1))
    it.delivery.dispatch()
    assert it.contents.purge(1) == 1
    assert (waiting(it), depth_of(it), it.counters.purged) == (["c", "d"], (3, 3), 1)
    assert it.contents.purge(9) == 2
    put(it, "e")
    assert (it.contents.purge(), it.contents.purge()) == (1, 0)
    assert (len(it.contents), depth_of(it), it.counters.purged) == (0, (1, 1), 4)


def test_messages_that_were_taken_can_be_put_back() -> None:
    it, _, _ = queue()
    put(it, "abcd")
    taken = it.contents.take(2, lambda one: one.data != b"a")
    assert ([text_of(entry.message) for entry in taken], waiting(it), depth_of(it)) == (["b", "c"], ["a", "d"], (4, 4))
    it.contents.remove(taken[0])
    it.delivery.put_back(taken)
    assert (waiting(it), depth_of(it), it.counters.releases) == (["a", "c", "d"], (3, 3), 0)


def test_a_removed_consumer_gets_nothing() -> None:
    it, _, _ = queue()
    consumer = RecordingConsumer()
    it.delivery.add_consumer(consumer)
    it.delivery.remove_consumer(consumer)
    it.delivery.remove_consumer(consumer)
    put(it, "a")
    assert (consumer.delivered, len(it.delivery.consumers)) == ([], 0)


def test_consumers_with_selectors_get_what_they_take() -> None:
    it, _, _ = queue()
    put(it, "aba")
    some = RecordingConsumer(selector=lambda one: one.data == b"b")
    every = RecordingConsumer(credit=1)
    it.delivery.add_consumer(some)
    it.delivery.dispatch()
    assert (some.delivered, waiting(it)) == (["b"], ["a", "a"])
    it.delivery.add_consumer(every)
    it.delivery.dispatch()
    put(it, "cb")
    assert (some.delivered, every.delivered, waiting(it)) == (["b", "b"], ["a"], ["a", "c"])


def test_a_filter_of_the_queue_leaves_messages_out() -> None:
    it, _, _ = queue()
    it.filter = lambda one: one.data != b"b"
    put(it, "abc")
    assert (waiting(it), it.counters.enqueues, it.counters.refused) == (["a", "c"], 2, 0)


def test_messages_get_their_positions_as_annotations() -> None:
    it, _, _ = queue(count=None, size=None, sequence_key="x-position")
    for text in "ab":
        it.enqueue(read_message(encoded(text), 0.0))
    found = [entry.message.fields.message_annotations for entry in it.contents.waiting()]
    assert found == [{"x-position": 1}, {"x-position": 2}]


def test_redirected_queues_get_each_others_messages() -> None:
    one, _, _ = queue()
    other, _, _ = queue()
    one.redirected, other.redirected = other, one
    put(one, "a")
    put(other, "b")
    assert (waiting(one), waiting(other)) == (["b"], ["a"])


class Watcher(EntryObserver):
    """Records what happens to entries."""

    def __init__(self, it: Queue) -> None:
        self.seen: list[tuple[str, str]] = []
        it.contents.observers.add(self)

    def on_enqueued(self, entry: Entry) -> None:
        self.seen.append(("+", text_of(entry.message)))

    def on_acquired(self, entry: Entry) -> None:
        self.seen.append(("!", text_of(entry.message)))

    def on_released(self, entry: Entry) -> None:
        self.seen.append(("?", text_of(entry.message)))

    def on_changed(self, entry: Entry, growth: int) -> None:
        self.seen.append(("~", f"{text_of(entry.message)}{growth:+}"))

    def on_dequeued(self, entry: Entry) -> None:
        assert entry.state is not GONE
        self.seen.append(("-", text_of(entry.message)))


def test_observers_learn_of_everything() -> None:
    it, _, _ = queue(count=2)
    watcher = Watcher(it)
    put(it, "abc")
    consumer = RecordingConsumer(credit=1)
    it.delivery.add_consumer(consumer)
    it.delivery.dispatch()
    it.delivery.release(consumer.entries)
    it.contents.purge(1)
    assert "".join(what + text for what, text in watcher.seen) == "+a+b-a+c!b?b!b-b"


def test_recovered_messages_are_enqueued_with_their_records() -> None:
    it, _, _ = queue()
    watcher = Watcher(it)
    it.recover(message("a"), 7)
    (entry,) = it.contents.waiting()
    assert (entry.record, entry.state, watcher.seen, waiting(it)) == (7, AVAILABLE, [("+", "a")], ["a"])


def test_a_deleted_queue_gives_up_all_its_messages() -> None:
    it, _, _ = queue()
    put(it, "abc")
    consumer = RecordingConsumer(credit=2)
    it.delivery.add_consumer(consumer)
    it.delivery.dispatch()
    it.delivery.release(consumer.entries[1:])
    assert [text_of(one) for one in it.contents.abandon()] == ["a", "b", "c"]
    assert (depth_of(it), len(it.contents), it.contents.acquired_count) == ((0, 0), 0, 0)
    it.delivery.release(consumer.entries)
    assert depth_of(it) == (0, 0)


@given(st.lists(st.tuples(st.sampled_from("pgasrx"), st.integers(1, 6))), st.sampled_from(["REJECT", "RING"]))
def test_like_a_list(steps: list[tuple[str, int]], policy: str) -> None:
    """Any sequence of putting, getting, accepting, releasing, purging and rejecting, against lists."""
    overflow = OverflowPolicy[policy]
    it, _, _ = queue(overflow, count=4, size=12, keeps_large=True)
    consumer = RecordingConsumer(credit=0)
    it.delivery.add_consumer(consumer)
    available: list[tuple[int, str]] = []
    acquired: list[tuple[int, str]] = []

    def full(more: int) -> bool:
        entries = available + acquired
        return len(entries) >= 4 or sum(len(text) for _, text in entries) + more > 12

    for number, (step, size) in enumerate(steps):
        if step == "p":
            text = str(number % 10) * size
            while overflow is OverflowPolicy.RING and full(size):
                oldest = min(available + acquired)
                (available if oldest in available else acquired).remove(oldest)
            expected = not full(size)
            if expected:
                available.append((number, text))
            assert it.enqueue(message(text)) is expected
        elif step == "g":
            consumer.credit = 1
            it.delivery.dispatch()
            consumer.credit = 0
            if available:
                acquired.append(available.pop(0))
        elif step == "x":
            assert it.contents.purge(size) == len(available[:size])
            del available[:size]
        elif consumer.entries:
            entry = consumer.entries.pop(size % len(consumer.entries))
            mine = [one for one in acquired if one[1] == text_of(entry.message)] if entry.state is not GONE else []
            if step == "a":
                it.delivery.accept(entry)
            elif step == "r":
                it.delivery.reject(entry)
            else:
                it.delivery.release([entry])
                available = sorted(available + mine[:1])
            acquired = [one for one in acquired if one not in mine[:1]]
        assert waiting(it) == [text for _, text in available]
        assert depth_of(it) == (len(available + acquired), sum(len(text) for _, text in available + acquired))


@given(st.lists(st.tuples(st.sampled_from("pprags"), st.sampled_from("abc"), st.integers(0, 2)), max_size=80))
def test_selectors_give_each_consumer_its_first_match(steps: list[tuple[str, str, int]]) -> None:
    """Whatever is taken, given back and accepted, against a search through all messages."""
    it, _, _ = queue(count=None, size=None)
    consumers = [RecordingConsumer(credit=0, selector=chooser(letters)) for letters in ("a", "ab")]
    consumers.append(RecordingConsumer(credit=0))
    for consumer in consumers:
        it.delivery.add_consumer(consumer)
    for step, letter, number in steps:
        consumer = consumers[number]
        if step == "p":
            put(it, letter)
        elif step == "g":
            wanted = [one for one in waiting(it) if consumer.selector is None or consumer.selector(message(one))]
            before = len(consumer.entries)
            consumer.credit = 1
            it.delivery.dispatch()
            consumer.credit = 0
            assert [text_of(entry.message) for entry in consumer.entries[before:]] == wanted[:1]
        elif step == "s":
            it.contents.purge(1)
        elif consumer.entries:
            entry = consumer.entries.pop(0)
            if step == "a":
                it.delivery.accept(entry)
            else:
                it.delivery.release([entry])
        positions = [entry.position for entry in it.contents.waiting()]
        assert positions == sorted(positions)


def chooser(letters: str) -> Callable[[Message], bool]:
    return lambda one: text_of(one) in letters


def test_what_others_take_does_not_pile_up_behind_a_selector() -> None:
    it, _, _ = queue(count=None, size=None)
    idle = RecordingConsumer(credit=0, selector=lambda _: True)
    busy = RecordingConsumer(credit=1 << 30, presettled=True)
    it.delivery.add_consumer(idle)
    it.delivery.add_consumer(busy)
    put(it, "x" * 20_000)
    assert (len(busy.entries), idle.entries, depth_of(it)) == (20_000, [], (0, 0))
    idle.credit = 1
    busy.credit = 0
    put(it, "y")
    assert idle.delivered == ["y"]
