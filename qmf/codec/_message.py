"""What an AMQP 1.0 message is, decoded, and how its sections are numbered; see `qmf.codec.message`."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from typing import Any

import attrs

#: Priority of messages that do not say (AMQP 1.0, part 3.2.1).
DEFAULT_PRIORITY = 4


class Section(enum.Enum):
    """The kind of section that the body is in, and so what type it has."""

    NONE = "none"  #: no body; None
    DATA = "data"  #: bytes; of several data sections, joined
    VALUE = "amqp-value"  #: any value
    SEQUENCE = "amqp-sequence"  #: a list; of several sequence sections, joined


@attrs.frozen(kw_only=True)
class Message:
    """An AMQP 1.0 message.

    Ids are str, `UUID`, int (sent as ulong) or bytes. Times of the properties are milliseconds since 1970.

    Attributes:
        durable, priority: of the header; None where it does not say, which means False and `DEFAULT_PRIORITY`.
        ttl, first_acquirer, delivery_count: the rest of the header; `ttl` in seconds, None for no limit.
        message_id, user_id, to, subject, reply_to, correlation_id, content_type, content_encoding,
            absolute_expiry_time, creation_time, group_id, group_sequence, reply_to_group_id: the properties; None
            where absent.
        application_properties: values by name; empty where absent.
        delivery_annotations, message_annotations, footer: values by symbol or number; empty where absent.
        section: where the body is.
        body: see `Section`.
    """

    durable: bool | None = None
    priority: int | None = None
    ttl: float | None = None
    first_acquirer: bool = False
    delivery_count: int = 0
    message_id: object = None
    user_id: bytes | None = None
    to: str | None = None
    subject: str | None = None
    reply_to: str | None = None
    correlation_id: object = None
    content_type: str | None = None
    content_encoding: str | None = None
    absolute_expiry_time: int | None = None
    creation_time: int | None = None
    group_id: str | None = None
    group_sequence: int | None = None
    reply_to_group_id: str | None = None
    application_properties: Mapping[str, object] = attrs.field(factory=dict)
    delivery_annotations: Mapping[Any, object] = attrs.field(factory=dict)
    message_annotations: Mapping[Any, object] = attrs.field(factory=dict)
    footer: Mapping[Any, object] = attrs.field(factory=dict)
    section: Section = Section.NONE
    body: object = None


#: Descriptors of the sections, in the order in which they stand in a message.
HEADER, DELIVERY_ANNOTATIONS, MESSAGE_ANNOTATIONS, PROPERTIES, APPLICATION_PROPERTIES = 0x70, 0x71, 0x72, 0x73, 0x74
DATA, SEQUENCE, VALUE, FOOTER = 0x75, 0x76, 0x77, 0x78
