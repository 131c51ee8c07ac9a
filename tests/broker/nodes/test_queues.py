"""Queues without AMQP."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.nodes.counters import BrokerCounters
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import OverflowPolicy, Queue, QueueLimits


@attrs.define
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@attrs.define(eq=False)
class RecordingConsumer:
    """A consumer with some credit."""

    credit: int = 1000
    delivered: list[str] = attrs.field(factory=list)
    holds: bool = False
    held_parcels: list[Message] = attrs.field(factory=list)
    selector: Callable[[Message], bool] | None = None

    def ready(self) -> bool:
        return self.credit > 0

    def deliver(self, message: Message) -> None:
        self.credit -= 1
        self.delivered.append(message.data.decode())
        if self.holds:
            self.held_parcels.append(message)

    def unsettled(self) -> tuple[int, int]:
        return len(self.held_parcels), sum(len(message.data) for message in self.held_parcels)


def message(text: str, expires: float | None = None) -> Message:
    return Message(text.encode(), None, "", None, expires)


def queue(
    overflow: OverflowPolicy = OverflowPolicy.DROP_OLDEST, count: int = 10, size: int = 1000
) -> tuple[Queue, BrokerCounters, Clock]:
    counters, clock = BrokerCounters(), Clock()
    return Queue("q", QueueLimits(count, size), overflow, counters, clock), counters, clock


def drain(it: Queue) -> list[str]:
    consumer = RecordingConsumer()
    it.add_consumer(consumer)
    it.dispatch()
    it.remove_consumer(consumer)
    return consumer.delivered


def test_messages_wait_in_order_for_a_consumer_and_go_on_directly_then() -> None:
    it, counters, _ = queue()
    for text in "abc":
        assert it.enqueue(message(text))
    assert (len(it), it.size) == (3, 3)
    consumer = RecordingConsumer()
    it.add_consumer(consumer)
    it.dispatch()
    it.enqueue(message("d"))
    assert consumer.delivered == list("abcd")
    assert (len(it), it.size, counters.delivered) == (0, 0, 4)


def test_consumers_take_turns_and_one_without_credit_is_passed_over() -> None:
    it, _, _ = queue(count=100)
    first, second, third = RecordingConsumer(), RecordingConsumer(credit=2), RecordingConsumer()
    for consumer in (first, second, third):
        it.add_consumer(consumer)
    for number in range(10):
        it.enqueue(message(str(number)))
    assert len(second.delivered) == 2
    assert abs(len(first.delivered) - len(third.delivered)) <= 1
    assert sorted(first.delivered + second.delivered + third.delivered) == [str(number) for number in range(10)]


@pytest.mark.parametrize(("count", "size"), [(3, 1000), (1000, 3)])
def test_a_full_subscription_queue_drops_its_oldest(count: int, size: int) -> None:
    it, counters, _ = queue(OverflowPolicy.DROP_OLDEST, count, size)
    for text in "abcde":
        assert it.enqueue(message(text))
    assert counters.dropped == 2
    assert drain(it) == list("cde")


@pytest.mark.parametrize(("count", "size"), [(3, 1000), (1000, 3)])
def test_a_full_named_queue_refuses(count: int, size: int) -> None:
    it, counters, _ = queue(OverflowPolicy.REFUSE, count, size)
    assert [it.enqueue(message(text)) for text in "abcde"] == [True, True, True, False, False]
    assert counters.dropped == 0
    assert drain(it) == list("abc")
    assert it.enqueue(message("f"))


def test_one_message_above_the_limit_passes_an_empty_subscription_queue() -> None:
    it, _, _ = queue(size=3)
    assert it.enqueue(message("a"))
    assert it.enqueue(message("long message"))
    assert drain(it) == ["long message"]


def test_a_slow_receiver_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    it, _, _ = queue(count=1)
    for text in "abc":
        it.enqueue(message(text))
    assert caplog.text.count("queue q is full") == 1


def test_expired_messages_are_not_delivered() -> None:
    it, counters, clock = queue()
    it.enqueue(message("a", expires=1.0))
    it.enqueue(message("b"))
    it.enqueue(message("c", expires=3.0))
    clock.now = 1.0
    assert drain(it) == ["b", "c"]
    assert counters.expired == 1


def test_expired_messages_make_room_before_others_are_dropped_or_refused() -> None:
    for overflow in OverflowPolicy:
        it, counters, clock = queue(overflow, count=3)
        for text, expires in (("a", None), ("b", 1.0), ("c", None)):
            it.enqueue(message(text, expires))
        clock.now = 2.0
        assert it.enqueue(message("d"))
        assert (counters.expired, counters.dropped) == (1, 0)
        assert drain(it) == ["a", "c", "d"]


def test_messages_that_come_back_are_first_again_in_their_order() -> None:
    it, _, _ = queue()
    for text in "cd":
        it.enqueue(message(text))
    it.requeue([message("a"), message("b")])
    assert it.size == 4
    assert drain(it) == list("abcd")


def test_what_passed_is_counted() -> None:
    it, _, clock = queue(count=3)
    holder = RecordingConsumer(credit=0, holds=True)
    it.add_consumer(holder)
    for text, expires in (("aa", None), ("b", 1.0), ("c", None), ("d", None)):
        it.enqueue(message(text, expires))
    assert (it.counters.enqueues, it.counters.enqueued_bytes, it.counters.acquires, it.counters.dropped) == (4, 5, 0, 1)
    clock.now = 1.0
    holder.credit = 1
    it.dispatch()
    assert (it.counters.expired, it.counters.acquires, it.depth()) == (1, 1, (2, 2))
    holder.held_parcels.clear()
    assert it.depth() == (1, 1)
    holder.credit = 1
    it.requeue([message("c")])
    assert (it.counters.releases, it.counters.acquires, it.counters.enqueues) == (1, 2, 4)
    holder.credit = 2
    it.dispatch()
    it.enqueue(message("e"))
    assert (it.counters.enqueues, it.counters.acquires, it.depth()) == (5, 4, (3, 3))


def test_a_refused_message_is_counted_as_that_alone() -> None:
    it, _, _ = queue(OverflowPolicy.REFUSE, count=1)
    it.enqueue(message("a"))
    it.enqueue(message("b"))
    assert (it.counters.enqueues, it.counters.enqueued_bytes, it.counters.refused) == (1, 1, 1)


def test_purging_takes_the_oldest() -> None:
    it, _, _ = queue()
    for text in "abcd":
        it.enqueue(message(text))
    it.purge(1)
    assert (len(it), it.size, it.counters.purged) == (3, 3, 1)
    it.purge(9)
    it.enqueue(message("e"))
    for _ in range(2):
        it.purge()
    assert (len(it), it.size, it.counters.purged) == (0, 0, 5)


def test_messages_that_were_taken_can_be_put_back() -> None:
    it, _, _ = queue()
    messages = [message(text) for text in "abcd"]
    for one in messages:
        it.enqueue(one)
    taken = it.take(2, lambda one: one is not messages[0])
    assert (taken, it.waiting(), it.size) == (messages[1:3], [messages[0], messages[3]], 2)
    it.put_back(taken)
    assert (it.waiting(), it.size, it.counters.releases) == ([*messages[1:3], messages[0], messages[3]], 4, 0)


def test_a_removed_consumer_gets_nothing() -> None:
    it, _, _ = queue()
    consumer = RecordingConsumer()
    it.add_consumer(consumer)
    it.remove_consumer(consumer)
    it.remove_consumer(consumer)
    it.enqueue(message("a"))
    assert consumer.delivered == []
    assert it.consumer_count == 0


@given(
    st.lists(st.tuples(st.sampled_from("pgt"), st.integers(1, 6), st.none() | st.integers(0, 8))),
    st.sampled_from(list(OverflowPolicy)),
)
def test_like_a_list(steps: list[tuple[str, int, int | None]], overflow: OverflowPolicy) -> None:
    """Any sequence of put, get and passing time, against a list."""
    it, counters, clock = queue(overflow, count=4, size=12)
    model: list[tuple[str, float | None]] = []
    dropped = 0
    for number, (step, size, expires) in enumerate(steps):
        text = str(number % 10) * size
        alive = [entry for entry in model if entry[1] is None or entry[1] > clock.now]
        if step == "p":

            def full(entries: list[tuple[str, float | None]], more: int = size) -> bool:
                return len(entries) >= 4 or sum(len(entry[0]) for entry in entries) + more > 12

            if full(model):
                model = alive
            delivered = not full(model) or overflow is OverflowPolicy.DROP_OLDEST
            while overflow is OverflowPolicy.DROP_OLDEST and full(model):
                model.pop(0)
                dropped += 1
            if delivered:
                model.append((text, None if expires is None else float(expires)))
            assert it.enqueue(message(text, None if expires is None else float(expires))) is delivered
        elif step == "g":
            consumer = RecordingConsumer(credit=1)
            it.add_consumer(consumer)
            it.dispatch()
            it.remove_consumer(consumer)
            expected = [entry[0] for entry in alive[:1]]
            assert consumer.delivered == expected
            while model and (model[0][1] is not None and model[0][1] <= clock.now):
                model.pop(0)
            model = model[len(expected) :]
            while expected and model and (model[0][1] is not None and model[0][1] <= clock.now):
                model.pop(0)
        else:
            clock.now += size / 2
        assert it.size == sum(len(entry[0]) for entry in model)
        assert counters.dropped == dropped
