"""What full queues do."""

from __future__ import annotations

import pytest
from broker.nodes.parts import RecordingConsumer, depth_of, drain, message, put, queue, waiting
from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.settings import OverflowPolicy

REJECT, RING, STRICT = OverflowPolicy.REJECT, OverflowPolicy.RING, OverflowPolicy.RING_STRICT


@pytest.mark.parametrize(("count", "size"), [(3, None), (None, 3)])
def test_a_ring_gives_up_its_oldest(count: int | None, size: int | None) -> None:
    it, counters, _ = queue(RING, count, size)
    put(it, "abcde")
    assert (counters.dropped, it.counters.dropped) == (2, 2)
    assert drain(it) == list("cde")


@pytest.mark.parametrize(("count", "size"), [(3, None), (None, 3)])
def test_a_queue_that_rejects_refuses(count: int | None, size: int | None) -> None:
    it, counters, _ = queue(REJECT, count, size)
    assert [it.enqueue(message(text)) for text in "abcde"] == [True, True, True, False, False]
    assert (it.counters.refused, it.counters.enqueues, counters.dropped) == (2, 3, 0)
    assert drain(it) == list("abc")
    assert it.enqueue(message("f"))


def test_the_reason_is_that_of_qpidd() -> None:
    it, _, _ = queue(REJECT, 3, 100)
    put(it, "abc")
    assert it.refusal(message("dd")) == (
        "Maximum depth exceeded on q: current=[count: 3, size: 3], max=[count: 3, size: 100], "
        "increment=[count: 1, size: 2]"
    )


def test_acquired_messages_count() -> None:
    it, _, _ = queue(REJECT, 3)
    consumer = RecordingConsumer(credit=2)
    it.delivery.add_consumer(consumer)
    put(it, "abc")
    assert not it.enqueue(message("d"))
    it.delivery.accept(consumer.entries[0])
    assert it.enqueue(message("e"))


def test_a_ring_forgets_what_is_acquired_and_a_strict_one_refuses() -> None:
    for overflow in (RING, STRICT):
        it, counters, _ = queue(overflow, 3)
        consumer = RecordingConsumer(credit=1)
        it.delivery.add_consumer(consumer)
        put(it, "abc")
        taken = it.enqueue(message("d"))
        if overflow is STRICT:
            assert (taken, waiting(it), it.counters.refused) == (False, ["b", "c"], 1)
            it.delivery.accept(consumer.entries[0])
            put(it, "de")
            assert waiting(it) == ["c", "d", "e"]
        else:
            assert (taken, waiting(it), counters.dropped) == (True, ["b", "c", "d"], 0)
            it.delivery.release(consumer.entries)
            assert waiting(it) == ["b", "c", "d"]


def test_a_message_above_the_limit_is_refused_unless_it_is_to_be_kept_alone() -> None:
    it, _, _ = queue(RING, size=3)
    put(it, "a")
    assert not it.enqueue(message("long message"))
    assert it.refusal(message("long message")) == (
        "Message larger than configured maximum depth on q: size=12, max-size=3"
    )
    assert waiting(it) == ["a"]
    it, _, _ = queue(RING, size=3, keeps_large=True)
    put(it, "a")
    assert it.enqueue(message("long message"))
    assert drain(it) == ["long message"]


def test_a_ring_with_priorities_gives_up_the_lowest_and_never_for_a_lower_one() -> None:
    it, counters, _ = queue(RING, 3, priorities=10)
    for text, priority in (("a", 9), ("b", 1), ("c", 5), ("d", 6)):
        assert it.enqueue(message(text, priority=priority))
    assert (waiting(it), counters.dropped) == (["a", "d", "c"], 1)
    assert it.enqueue(message("e", priority=0))
    assert (waiting(it), counters.dropped) == (["a", "d", "c"], 2)
    assert it.enqueue(message("f", priority=5))
    assert waiting(it) == ["a", "d", "f"]


def test_a_slow_receiver_is_reported_once(caplog: pytest.LogCaptureFixture) -> None:
    it, _, _ = queue(count=1)
    put(it, "abc")
    assert caplog.text.count("queue q is full") == 1


def test_expired_messages_make_room_before_others_are_dropped_or_refused() -> None:
    for overflow in (REJECT, RING, STRICT):
        it, counters, clock = queue(overflow, count=3)
        for text, expires in (("a", None), ("b", 1.0), ("c", None)):
            it.enqueue(message(text, expires))
        clock.now = 2.0
        assert it.enqueue(message("d"))
        assert (counters.expired, counters.dropped) == (1, 0)
        assert drain(it) == ["a", "c", "d"]


def test_a_queue_may_destroy_itself(caplog: pytest.LogCaptureFixture) -> None:
    deleted: list[Queue] = []
    it, _, _ = queue(OverflowPolicy.SELF_DESTRUCT, 2, delete=deleted.append)
    put(it, "ab")
    assert not deleted
    put(it, "c")
    assert deleted == [it]
    assert "queue q has reached its limit" in caplog.text


def test_a_queue_that_flows_to_disk_takes_everything() -> None:
    it, _, _ = queue(OverflowPolicy.FLOW_TO_DISK, 2)
    paged: list[bytes] = []

    def page(one: Message) -> Message:
        paged.append(one.data)
        return one

    it.contents.pager = page
    put(it, "abcd")
    assert (paged, drain(it)) == ([b"c", b"d"], list("abcd"))


class Loop:
    """An alternate exchange that leads to the same queue again."""

    name = "x"

    def __init__(self) -> None:
        self.seen: list[bytes] = []

    def reroute(self, message: Message) -> bool:
        self.seen.append(message.data)
        return self.back(message)

    def back(self, message: Message) -> bool:
        raise NotImplementedError


def test_what_a_ring_gives_up_goes_to_the_alternate_exchange_even_in_a_circle() -> None:
    loop = Loop()
    it, _, _ = queue(RING, 2, alternate=loop)
    loop.back = it.enqueue  # type: ignore[method-assign]
    put(it, "abc")
    assert (loop.seen, it.contents.depth.count) == ([b"a"], 2)


def test_what_a_consumer_has_is_sent_there_even_if_the_new_message_is_delivered_at_once() -> None:
    loop = Loop()
    it, _, _ = queue(RING, 1, alternate=loop)
    loop.back = lambda message: False  # type: ignore[method-assign]
    it.delivery.add_consumer(RecordingConsumer())
    put(it, "ab")
    assert loop.seen == [b"a"]


@given(st.lists(st.integers(1, 9), max_size=40), st.integers(1, 5), st.integers(3, 20))
def test_limits_are_never_exceeded(sizes: list[int], count: int, size: int) -> None:
    for overflow in (REJECT, RING, STRICT):
        it, _, _ = queue(overflow, count, size)
        taken = []
        for number, length in enumerate(sizes):
            text = chr(65 + number) * length
            if it.enqueue(message(text)):
                taken.append(text)
            depth = depth_of(it)
            assert depth[0] <= count
            assert depth[1] <= size
        assert waiting(it) == (taken if overflow is REJECT else taken[len(taken) - len(it.contents) :])
