"""Messages with a delivery time in queues."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
from broker.nodes.parts import Clock, RecordingConsumer, depth_of, drain, message, put, text_of, waiting

from qmf.broker.nodes import delivery_times
from qmf.broker.nodes.counters import BrokerCounters
from qmf.broker.nodes.delivery_times import InvalidAnnotation
from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.last_values import Replacement
from qmf.broker.nodes.message import Message, read_message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.settings import OverflowPolicy, QueueLimits, QueueSettings
from qmf.codec import Message as CodecMessage
from qmf.codec import encode_message


@attrs.define(eq=False)
class Timer:
    at: float
    callback: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@attrs.define
class Time:
    """A clock with timers, which the test moves on."""

    clock: Clock = attrs.field(factory=Clock)
    timers: list[Timer] = attrs.field(factory=list)

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        self.timers.append(Timer(self.clock.now + delay, callback))
        return self.timers[-1]

    def go_to(self, now: float) -> None:
        self.clock.now = now
        due = [timer for timer in self.timers if timer.at <= now and not timer.cancelled]
        self.timers = [timer for timer in self.timers if timer.at > now and not timer.cancelled]
        for timer in due:
            timer.callback()


def delayed(text: str, at: float, expires: float | None = None, **headers: object) -> Message:
    made = message(text, expires, headers=headers)
    made.deliver_at = at
    return made


def make(limits: QueueLimits | None = None, **settings: Any) -> tuple[Queue, Time]:
    times = Time()
    made = QueueSettings(limits=limits or QueueLimits(), **settings)
    return Queue("q", made, BrokerCounters(), times.clock, call_later=times.call_later), times


def test_a_message_is_delivered_at_its_time_behind_those_that_wait() -> None:
    it, times = make()
    it.enqueue(delayed("later", 20))
    it.enqueue(delayed("soon", 10))
    put(it, "a")
    assert (len(it.contents), depth_of(it), it.contents.delayed_count) == (1, (3, 10), 2)
    times.go_to(9.9)
    assert waiting(it) == ["a"]
    times.go_to(10)
    assert waiting(it) == ["a", "soon"]
    put(it, "b")
    times.go_to(30)
    assert (drain(it), depth_of(it), it.contents.delayed_count) == (["a", "soon", "b", "later"], (0, 0), 0)


def test_a_consumer_that_waits_gets_it_at_once() -> None:
    it, times = make()
    consumer = RecordingConsumer()
    it.delivery.add_consumer(consumer)
    it.enqueue(delayed("later", 10))
    it.enqueue(delayed("past", 0))
    put(it, "a")
    assert consumer.delivered == ["past", "a"]
    times.go_to(10)
    assert consumer.delivered == ["past", "a", "later"]
    it.delivery.release(consumer.entries)
    assert depth_of(it) == (3, 6 + 4)


def test_a_selector_and_a_browser_see_it_when_it_is_available() -> None:
    it, times = make()
    stored: list[str] = []

    class Noting:
        def on_stored(self, entry: Entry) -> None:
            stored.append(text_of(entry.message))

    it.delivery.add_browser(Noting())
    consumer = RecordingConsumer(selector=lambda candidate: candidate.header_text("size") == "big")
    it.delivery.add_consumer(consumer)
    it.enqueue(delayed("big", 10, size="big"))
    it.enqueue(delayed("small", 10, size="small"))
    assert (stored, consumer.delivered) == ([], [])
    times.go_to(10)
    assert (stored, consumer.delivered, waiting(it)) == (["big", "small"], ["big"], ["small"])


def test_one_that_expires_first_is_never_delivered() -> None:
    it, times = make()
    it.enqueue(delayed("a", 10, expires=5))
    it.enqueue(delayed("b", 10, expires=5))
    times.clock.now = 6
    assert (it.contents.expire(), depth_of(it), it.contents.delayed_count) == (2, (0, 0), 0)
    it.enqueue(delayed("c", 20, expires=15))
    times.go_to(20)
    assert (drain(it), depth_of(it)) == ([], (0, 0))


def test_a_purge_removes_it_and_deleting_the_queue_stops_the_timer() -> None:
    it, times = make()
    it.enqueue(delayed("a", 10))
    put(it, "b")
    assert (it.contents.purge(), depth_of(it)) == (2, (0, 0))
    it.enqueue(delayed("c", 10))
    assert [text_of(each) for each in it.contents.abandon()] == ["c"]
    times.go_to(20)
    assert (depth_of(it), len(it.contents)) == ((0, 0), 0)


def test_what_is_moved_waits_in_the_other_queue_and_what_is_put_back_waits_again() -> None:
    it, times = make()
    it.enqueue(delayed("a", 10))
    taken = it.contents.take()
    assert (it.contents.delayed_count, it.contents.acquired_count) == (0, 1)
    it.delivery.put_back(taken)
    assert (it.contents.delayed_count, it.contents.acquired_count, waiting(it)) == (1, 0, [])
    other = Queue("other", QueueSettings(), BrokerCounters(), times.clock, call_later=times.call_later)
    for entry in it.contents.take():
        assert other.enqueue(entry.message)
        it.contents.remove(entry)
    times.go_to(10)
    assert (depth_of(it), waiting(other)) == ((0, 0), ["a"])


def test_messages_of_a_commit_wait_for_both() -> None:
    it, times = make()
    held: list[Entry] = []
    it.held = held
    it.enqueue(delayed("a", 10))
    it.enqueue(delayed("b", 20))
    it.held = None
    times.go_to(15)
    assert (waiting(it), len(held)) == ([], 2)
    it.delivery.offer(held)
    times.go_to(15)
    assert waiting(it) == ["a"]
    times.go_to(20)
    assert waiting(it) == ["a", "b"]


def test_limits_count_it_and_a_ring_drops_it_last() -> None:
    it, _ = make(QueueLimits(count=2), overflow=OverflowPolicy.REJECT)
    assert it.enqueue(delayed("a", 10))
    assert it.enqueue(delayed("b", 10))
    assert not it.enqueue(message("c"))
    ring, times = make(QueueLimits(count=2), overflow=OverflowPolicy.RING)
    ring.enqueue(delayed("a", 10))
    put(ring, "bc")
    assert (waiting(ring), ring.contents.delayed_count) == (["c"], 1)
    ring.enqueue(delayed("d", 5))
    ring.enqueue(delayed("e", 20))
    times.go_to(30)
    assert waiting(ring) == ["a", "e"]


@pytest.mark.parametrize("replacement", list(Replacement))
def test_a_last_value_takes_effect_at_its_time(replacement: Replacement) -> None:
    it, times = make(value_key="key", replacement=replacement)
    it.enqueue(delayed("new", 10, key="k"))
    it.enqueue(message("old", key="k"))
    assert waiting(it) == ["old"]
    times.go_to(10)
    assert (waiting(it), depth_of(it)) == (["new"], (1, 3))


def read(**annotations: object) -> Message:
    names = {name.replace("_", "-"): value for name, value in annotations.items()}
    return read_message(encode_message(CodecMessage(message_annotations=names)), 1000.0)


def test_annotations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delivery_times, "time", SimpleNamespace(time=lambda: 5_000.0))
    assert read(other=1).deliver_at is None
    assert read(x_opt_delivery_delay=2500).deliver_at == 1002.5
    assert read(x_opt_delivery_delay=0).deliver_at is None
    assert read(x_opt_delivery_delay=-5).deliver_at is None
    assert read(x_opt_delivery_time=5_060_000, x_opt_delivery_delay=1).deliver_at == 1060.0
    assert read(x_opt_delivery_time=5_000_000).deliver_at is None
    assert read(x_opt_delivery_time=1 << 62).deliver_at is not None


@pytest.mark.parametrize("value", ["soon", True, 1.5, [1], {"a": 1}, b"1"])
def test_annotations_of_wrong_types(value: object) -> None:
    with pytest.raises(InvalidAnnotation, match="x-opt-delivery-delay: must be a number of milliseconds"):
        read(x_opt_delivery_delay=value)


def test_a_rewritten_message_keeps_its_time() -> None:
    assert read(x_opt_delivery_delay=2500).with_sequence("n", 1).deliver_at == 1002.5
