"""The verbs of QMFv2: one frozen class per kind of message content (QMF2.md 4)."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence

import attrs

from qmf.protocol.ordering import OrderKey
from qmf.protocol.values import AgentInfo, EventData, ObjectBlock, ObjectData, ObjectId
from qmf.schema.model import ClassKey, ClassSchema, EventSchema

#: A predicate in wire form: nested lists (QMF2.md 4.4.2). Empty matches everything.
Predicate = Sequence[object]


class What(enum.Enum):
    """What a query asks for; the values are the names on the wire."""

    OBJECT = "OBJECT"
    OBJECT_ID = "OBJECT_ID"
    SCHEMA = "SCHEMA"
    SCHEMA_ID = "SCHEMA_ID"


@attrs.frozen
class LocateRequest:
    """Asks agents to say that they are there; `where` is a predicate over their attributes."""

    where: Predicate = ()


@attrs.frozen
class LocateResponse:
    """An agent's answer to a `LocateRequest`."""

    agent: AgentInfo


@attrs.frozen
class Heartbeat:
    """An agent is alive."""

    agent: AgentInfo


@attrs.frozen(kw_only=True)
class QueryRequest:
    """Asks an agent for objects or schemas.

    Attributes:
        what: what is asked for.
        class_key: objects of this class, or the schema with this key. An empty package matches any.
        object_id: this one object.
        where: predicate over values; empty matches all.
        text: only objects that contain it (`TextSearch`); empty for all. Only agents of this project search.
        select: names of the values wanted; empty means all.
        row_form: the newest form of rows that the asker reads, and so may be answered in; 0 for none.
        limit: the first so many objects are enough; 0 for all. Agents of this project keep to it.
        order: what comes first; empty leaves it to the agent. With a limit only, and as that.
    """

    what: What
    class_key: ClassKey | None = None
    object_id: ObjectId | None = None
    where: Predicate = ()
    text: str = ""
    select: Sequence[str] = ()
    row_form: int = 0
    limit: int = 0
    order: Sequence[OrderKey] = ()


@attrs.frozen
class ObjectsResponse:
    """Objects that answer a query; one part of several where the envelope is `partial`.

    Attributes:
        objects: the objects; in a received message those of its blocks, too.
        blocks: more objects, to be sent as rows. Empty in a received message.
        matched: how many objects match a query with a limit in all, in the last part of an answer that keeps to it.
    """

    objects: Sequence[ObjectData]
    blocks: Sequence[ObjectBlock] = ()
    matched: int | None = None


@attrs.frozen
class SchemaIdsResponse:
    """Keys of the classes and events that an agent knows."""

    keys: Sequence[ClassKey]


@attrs.frozen
class SchemasResponse:
    """Schemas that answer a query."""

    schemas: Sequence[ClassSchema | EventSchema]


@attrs.frozen(kw_only=True)
class MethodRequest:
    """Calls a method.

    Attributes:
        method: its name.
        object_id: of the object, or None for a method of the agent itself.
        arguments: inputs by name.
        subtypes: hints on arguments, by name.
        on_behalf_of: the user whom the console calls for, as it says; None for its own user (docs/protocol.md).
    """

    method: str
    object_id: ObjectId | None = None
    arguments: Mapping[str, object] = attrs.field(factory=dict)
    subtypes: Mapping[str, str] = attrs.field(factory=dict)
    on_behalf_of: str | None = None


@attrs.frozen(kw_only=True, weakref_slot=False)
class MethodResponse:
    """A method's outputs by name; empty when it has none."""

    arguments: Mapping[str, object] = attrs.field(factory=dict)
    subtypes: Mapping[str, str] = attrs.field(factory=dict)


class ErrorCode(enum.IntEnum):
    """Codes of QMF exceptions (QMF2.md 4.6); methods use their own from `METHOD` on."""

    UNKNOWN_OBJECT = 1
    UNKNOWN_METHOD = 2
    NOT_IMPLEMENTED = 3
    INVALID_PARAMETER = 4
    FEATURE_NOT_IMPLEMENTED = 5
    FORBIDDEN = 6
    EXCEPTION = 7
    METHOD = 0x10000


@attrs.frozen(kw_only=True)
class ExceptionResponse:
    """An agent's "no" to any request.

    Attributes:
        text: what went wrong; empty where the agent sent none.
        code: an `ErrorCode`, another number, or None where the agent sent none.
        values: all values of the exception, text and code included, as sent.
        class_key: of the exception's data, where it has a schema.
    """

    text: str
    code: int | None = None
    values: Mapping[str, object] = attrs.field(factory=dict)
    class_key: ClassKey | None = None


@attrs.frozen
class ObjectsIndication:
    """Objects that changed, of one class: published without being asked for. Attributes as of `ObjectsResponse`."""

    objects: Sequence[ObjectData]
    blocks: Sequence[ObjectBlock] = ()


@attrs.frozen
class EventsIndication:
    """Events that happened."""

    events: Sequence[EventData]


@attrs.frozen(kw_only=True)
class SubscribeRequest:
    """Asks an agent to keep publishing the objects that match a query: between our own agents and consoles only.

    Attributes:
        class_key, object_id, where, select, row_form: as in `QueryRequest`.
        interval: seconds wanted between publications, to the millisecond; 0 leaves it to the agent.
        lifetime: whole seconds wanted until the subscription ends unless refreshed; 0 leaves it to the agent.
        can_share: the console receives publications under a shared key, too.
    """

    class_key: ClassKey | None = None
    object_id: ObjectId | None = None
    where: Predicate = ()
    select: Sequence[str] = ()
    interval: float = 0
    lifetime: int = 0
    row_form: int = 0
    can_share: bool = False


@attrs.frozen(kw_only=True)
class SubscribeResponse:
    """An agent's "yes" to a `SubscribeRequest`.

    Attributes:
        subscription_id: what publications, refreshing and cancelling name it by.
        interval: seconds granted between publications, to the millisecond.
        lifetime: whole seconds granted.
    """

    subscription_id: str
    interval: float
    lifetime: int


@attrs.frozen(kw_only=True)
class SubscribeRefresh:
    """A console still wants a subscription; its life begins anew.

    Attributes:
        subscription_id: which.
        lifetime: whole seconds wanted from now on; 0 stands for as many as were granted.
        bound: the console has bound the shared key, and waits for its first sequence number.
    """

    subscription_id: str
    lifetime: int = 0
    bound: bool = False


@attrs.frozen(kw_only=True)
class SubscribeShare:
    """An agent publishes to several subscriptions under one key: asks a console to bind it, and says from when on.

    Attributes:
        subscription_id: which.
        shared_key: routing key on the topic exchange, and what publications there name the subscription by.
        last_sequence: number of the last publication that went to the subscription alone.
        first_sequence: number of the first publication under the key that continues it; 0 asks to bind the key.
    """

    subscription_id: str
    shared_key: str
    last_sequence: int = 0
    first_sequence: int = 0


@attrs.frozen(kw_only=True)
class SubscribeCancel:
    """A subscription ends: sent by the console that cancels it, or by the agent that drops it.

    Attributes:
        subscription_id: which.
        reason: as the agent gives it, or empty.
    """

    subscription_id: str
    reason: str = ""


Content = (
    LocateRequest
    | LocateResponse
    | Heartbeat
    | QueryRequest
    | ObjectsResponse
    | SchemaIdsResponse
    | SchemasResponse
    | MethodRequest
    | MethodResponse
    | ExceptionResponse
    | ObjectsIndication
    | EventsIndication
    | SubscribeRequest
    | SubscribeResponse
    | SubscribeRefresh
    | SubscribeShare
    | SubscribeCancel
)


@attrs.frozen(kw_only=True, weakref_slot=False)
class Envelope:
    """A QMFv2 message: its content, and what AMQP's properties say around it.

    Attributes:
        content: of the message.
        to: exchange it is sent to; absent when an answer goes straight to a queue.
        subject: routing key.
        reply_to: where the answer goes, ``exchange/key``.
        correlation_id: ties answers to requests; a short decimal string.
        agent: name of the agent that sends it, or ``broker`` (QMF2.md 4.4), or None.
        user_id: the authenticated sender, as the broker confirms it, or None.
        partial: more parts of the same answer follow.
        ttl: seconds that it is worth delivering, or None.
        subscription: id of the subscription that an indication belongs to, or None.
        sequence: number of the message among the parts of an answer, those of its subscription or, without one, of its
            agent and subject, from 1; None where not sent.
        events: how many events its agent sent with this subject in this run, those in the message included; None where
            not sent.
        suppressed: events of the same class and severity that were held back before this one.
    """

    content: Content
    to: str | None = None
    subject: str | None = None
    reply_to: str | None = None
    correlation_id: str | None = None
    agent: str | None = None
    user_id: str | None = None
    partial: bool = False
    ttl: float | None = None
    subscription: str | None = None
    sequence: int | None = None
    events: int | None = None
    suppressed: int = 0
