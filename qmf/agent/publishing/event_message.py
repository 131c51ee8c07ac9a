"""Messages of events: events of one class and severity that follow each other are sent together."""

from __future__ import annotations

from collections import deque
from typing import Any

import attrs

from qmf.agent.metrics import AgentMetrics
from qmf.agent.publishing.event_rate_limiter import RateWindow
from qmf.agent.sending.message_sender import MessageSender
from qmf.errors import QmfError
from qmf.protocol import BodyForm, EventData, EventsIndication, MessageTemplate
from qmf.protocol.objects import encode_event, list_body
from qmf.schema import ClassKey

#: An event: encoded, or for the general encoder.
Item = bytes | EventData


@attrs.frozen(eq=False)
class EventKind:
    """Events of one class and severity: they have the same subject.

    Attributes:
        key, severity: of the events.
        subject: routing key.
        window: limits their rate, or None.
    """

    key: ClassKey
    severity: int
    subject: str
    window: RateWindow | None


@attrs.define(eq=False)
class EventMessage:
    """Events of one kind in one message.

    Attributes:
        kind: of the events.
        items: the events; the first ones are removed when the buffer overflows.
        sequence: sequence number, or None. It stays when the message is sent again.
        total: number of events of this subject up to the last one here, or None. It counts those that are lost, too.
        suppressed: number of events that were suppressed before the first one.
        size: bytes of the items.
    """

    kind: EventKind
    items: deque[Item]
    sequence: int | None
    total: int | None
    suppressed: int
    size: int


class EventMessageEncoder:
    """Encodes the event messages of one agent."""

    def __init__(self, sender: MessageSender, topic: str, metrics: AgentMetrics) -> None:
        self._sender = sender
        self._topic = topic
        self._metrics = metrics
        self._encoded = sender.form is BodyForm.DATA010
        self._templates: dict[EventKind, MessageTemplate] = {}

    def encode(self, message: EventMessage) -> tuple[bytes, int]:
        """The encoded message and the number of events in it; events that cannot be encoded are left out."""
        items = self._encodable(message)
        if not items:
            return b"", 0
        if self._encoded and not message.suppressed:
            return self._template(message).encode(message.sequence, list_body(items), message.total), len(items)
        data = self._sender.encode(
            EventsIndication(() if self._encoded else items),
            self._topic,
            message.kind.subject,
            sequence=message.sequence,
            events=message.total,
            suppressed=message.suppressed,
            body=list_body(items) if self._encoded else None,
        )
        return data, len(items)

    def _template(self, message: EventMessage) -> MessageTemplate:
        template = self._templates.get(message.kind)
        if template is None:
            numbered = message.sequence is not None
            template = self._sender.template(EventsIndication(()), self._topic, message.kind.subject, numbered=numbered)
            self._templates[message.kind] = template
        return template

    def _encodable(self, message: EventMessage) -> list[Any]:
        """The events that can be encoded: as bytes if the body is encoded here."""
        items: list[Any] = []
        for item in message.items:
            if isinstance(item, bytes):
                items.append(item)
                continue
            try:
                if self._encoded:
                    items.append(encode_event(item))
                else:
                    self._sender.encode(EventsIndication((item,)), None, None)
                    items.append(item)
            except (ValueError, QmfError) as error:
                self._metrics.add("unencodable")
                self._metrics.warn_once("unencodable", "skipped event %s: %s", item.class_key, error)
        return items
