"""Queues, messages and consumers for tests of nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from qmf.broker.nodes.consumers import AlternateExchange
from qmf.broker.nodes.counters import BrokerCounters
from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.settings import OverflowPolicy, QueueLimits, QueueSettings
from qmf.codec import Message as CodecMessage
from qmf.codec import Section, encode_message


@attrs.define
class Clock:
    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@attrs.define(eq=False)
class RecordingConsumer:
    """A consumer with some credit, which keeps what it gets."""

    credit: int = 1000
    presettled: bool = False
    selector: Callable[[Message], bool] | None = None
    entries: list[Entry] = attrs.field(factory=list)

    @property
    def delivered(self) -> list[str]:
        return [text_of(entry.message) for entry in self.entries]

    def ready(self) -> bool:
        return self.credit > 0

    def deliver(self, entry: Entry) -> None:
        self.credit -= 1
        self.entries.append(entry)

    def room(self) -> int:
        return self.credit

    def deliver_all(self, entries: Sequence[Entry]) -> int:
        sent = min(self.credit, len(entries))
        for entry in entries[:sent]:
            self.deliver(entry)
        return sent


def message(
    text: str = "",
    expires: float | None = None,
    *,
    priority: int = 4,
    headers: Mapping[str, object] | None = None,
    **more: object,
) -> Message:
    """A message without encoding: its data are the text."""
    fields = CodecMessage(application_properties={**(headers or {}), **more})
    return Message(text.encode(), None, "", fields, expires, priority=priority)


def encoded(text: str = "", subject: str | None = None, **headers: object) -> bytes:
    """An encoded message."""
    return encode_message(
        CodecMessage(subject=subject, application_properties=headers, section=Section.VALUE, body=text)
    )


def text_of(message: Message) -> str:
    return message.data.decode()


def queue(
    overflow: OverflowPolicy = OverflowPolicy.RING,
    count: int | None = 10,
    size: int | None = 1000,
    *,
    alternate: AlternateExchange | None = None,
    delete: Callable[[Queue], None] = lambda _: None,
    **settings: Any,
) -> tuple[Queue, BrokerCounters, Clock]:
    counters, clock = BrokerCounters(), Clock()
    limits = QueueLimits(count, size)
    made = Queue(
        "q",
        QueueSettings(overflow=overflow, limits=limits, **settings),
        counters,
        clock,
        alternate=alternate,
        delete=delete,
    )
    return made, counters, clock


def plain(name: str = "q") -> Queue:
    return Queue(name, QueueSettings(), BrokerCounters(), Clock())


def put(it: Queue, texts: str) -> None:
    """Enqueue a message for each letter."""
    for text in texts:
        assert it.enqueue(message(text))


def drain(it: Queue) -> list[str]:
    """What a new consumer gets and accepts."""
    consumer = RecordingConsumer(presettled=True)
    it.delivery.add_consumer(consumer)
    it.delivery.dispatch()
    it.delivery.remove_consumer(consumer)
    return consumer.delivered


def depth_of(it: Queue) -> tuple[int, int]:
    """Number and bytes of all messages."""
    return it.contents.depth.count, it.contents.depth.size


def waiting(it: Queue) -> list[str]:
    return [text_of(entry.message) for entry in it.contents.waiting()]
