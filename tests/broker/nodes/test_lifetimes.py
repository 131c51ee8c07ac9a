"""Queues that are deleted by themselves."""

from __future__ import annotations

from collections.abc import Callable

import attrs
import pytest
from broker.nodes.parts import RecordingConsumer, put

from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.settings import Lifetime, QueueSettings


@attrs.define(eq=False)
class Timer:
    """A call that was asked for; the test decides when its time comes."""

    seconds: float
    callback: Callable[[], None]
    cancelled: bool = False

    def cancel(self) -> None:
        self.cancelled = True


@attrs.define
class Timers:
    made: list[Timer] = attrs.field(factory=list)

    def call_later(self, seconds: float, callback: Callable[[], None]) -> Timer:
        self.made.append(Timer(seconds, callback))
        return self.made[-1]

    def fire(self) -> None:
        due, self.made = [timer for timer in self.made if not timer.cancelled], []
        for timer in due:
            timer.callback()


@pytest.fixture
def timers() -> Timers:
    return Timers()


@pytest.fixture
def registry(timers: Timers) -> NodeRegistry:
    return NodeRegistry(call_later=timers.call_later)


def used(registry: NodeRegistry, it: Queue) -> None:
    """A consumer comes and goes."""
    consumer = RecordingConsumer()
    it.delivery.add_consumer(consumer)
    it.delivery.dispatch()
    for entry in consumer.entries:
        it.delivery.accept(entry)
    it.delivery.remove_consumer(consumer)
    registry.on_unused(it)


def test_after_the_last_use(registry: NodeRegistry) -> None:
    kept, it = registry.declare_queue("kept"), registry.declare_queue("q", QueueSettings(auto_delete=True))
    other = RecordingConsumer()
    it.delivery.add_consumer(other)
    used(registry, it)
    used(registry, kept)
    assert set(registry.queues) == {kept, it}
    it.delivery.remove_consumer(other)
    registry.on_unused(it)
    registry.on_unused(it)
    assert set(registry.queues) == {kept}


def test_some_time_after_the_last_use(registry: NodeRegistry, timers: Timers) -> None:
    it = registry.declare_queue("q", QueueSettings(auto_delete=True, delete_delay=30))
    used(registry, it)
    assert [timer.seconds for timer in timers.made] == [30]
    again = RecordingConsumer()
    it.delivery.add_consumer(again)
    timers.fire()
    assert registry.find("q") is it
    it.delivery.remove_consumer(again)
    registry.on_unused(it)
    timers.fire()
    assert registry.find("q") is None


def test_a_queue_that_is_deleted_earlier_is_not_deleted_again(registry: NodeRegistry, timers: Timers) -> None:
    settings = QueueSettings(auto_delete=True, delete_delay=30)
    used(registry, registry.declare_queue("q", settings))
    it = registry.find("q")
    assert isinstance(it, Queue)
    registry.delete_queue(it)
    newer = registry.declare_queue("q", settings)
    timers.fire()
    assert registry.find("q") is newer
    used(registry, newer)
    registry.close()
    timers.fire()
    assert registry.find("q") is newer


def test_when_it_is_empty(registry: NodeRegistry, timers: Timers) -> None:
    it = registry.declare_queue("q", QueueSettings(auto_delete=True, lifetime=Lifetime.EMPTY))
    used(registry, registry.declare_queue("other"))
    put(it, "ab")
    it.contents.purge()
    put(it, "c")
    timers.fire()
    assert registry.find("q") is it
    it.contents.purge()
    timers.fire()
    assert registry.find("q") is None


def test_when_it_is_empty_and_unused(registry: NodeRegistry, timers: Timers) -> None:
    it = registry.declare_queue("q", QueueSettings(auto_delete=True, lifetime=Lifetime.UNUSED_AND_EMPTY))
    put(it, "a")
    browser = RecordingConsumer(credit=0)
    it.delivery.add_consumer(browser)
    it.delivery.remove_consumer(browser)
    registry.on_unused(it)
    timers.fire()
    assert registry.find("q") is it
    used(registry, it)
    timers.fire()
    assert registry.find("q") is None


def test_without_timers_at_once(timers: Timers) -> None:
    registry = NodeRegistry()
    used(registry, registry.declare_queue("q", QueueSettings(auto_delete=True, delete_delay=30)))
    assert registry.find("q") is None
