"""The nouns of QMF messages: object ids, objects, events, agents (QMF2.md 4.2, 5.1, 5.2)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.schema.model import ClassKey


@attrs.frozen(weakref_slot=False)
class ObjectId:
    """Names an object. Opaque: never take it apart.

    Attributes:
        object_name: unique within its agent, e.g. ``org.example:queue:orders``.
        agent_name: the agent that owns it, or None where the sender left it out (qpidd always does).
        agent_epoch: start of the agent that the object lives in; 0 for objects that outlive restarts.
    """

    object_name: str
    agent_name: str | None = None
    agent_epoch: int = 0

    def __str__(self) -> str:
        return self.object_name


@attrs.frozen(kw_only=True, weakref_slot=False)
class ObjectData:
    """One object, or the changed part of one.

    Attributes:
        values: property and statistic values by wire name. An indication may hold only one of the two groups.
        object_id: None only for anonymous data (results of some libqmf2 agents).
        class_key: None for data without schema.
        update_ts, create_ts, delete_ts: nanoseconds since 1970, 0 where not sent; once `delete_ts` is set it is gone.
        subtypes: hints on values, by name.
        left: in a subscription's publications: the object does not match any more, though it may live on.
    """

    values: Mapping[str, object]
    object_id: ObjectId | None = None
    class_key: ClassKey | None = None
    update_ts: int = 0
    create_ts: int = 0
    delete_ts: int = 0
    subtypes: Mapping[str, str] = attrs.field(factory=dict)
    left: bool = False


@attrs.frozen(kw_only=True)
class ObjectBlock:
    """Many objects of one class and one agent, as rows (docs/protocol.md); only sent where a console asked for rows.

    Attributes:
        class_key: of all of them, hash included.
        agent_name, agent_epoch: of all their ids, as in `ObjectId`.
        columns: wire names of the values.
        codes: one type code per column, see `qmf.protocol.objects.columns`.
        rows: the rows, one after the other.
    """

    class_key: ClassKey
    agent_name: str | None = None
    agent_epoch: int = 0
    columns: tuple[str, ...]
    codes: bytes
    rows: bytes


@attrs.frozen(kw_only=True, weakref_slot=False)
class EventData:
    """One event.

    Attributes:
        values: arguments by name.
        class_key: None for events without schema.
        timestamp: nanoseconds since 1970.
        severity: 0 (emergency) to 7 (debug).
        object_id: the object it is about, where sent.
    """

    values: Mapping[str, object]
    class_key: ClassKey | None = None
    timestamp: int = 0
    severity: int = 5
    object_id: ObjectId | None = None


@attrs.frozen(kw_only=True)
class AgentInfo:
    """What an agent sends about itself in locate responses and heartbeats.

    Attributes:
        name: ``vendor:product:instance``.
        vendor, product, instance: its parts, any of which may be empty.
        epoch: start number, or 0 where not sent.
        heartbeat_interval: seconds between heartbeats, or 0 where not sent.
        timestamp: nanoseconds since 1970 when it was sent.
        schema_updated: nanoseconds since 1970 of the last change to its schemas, or 0.
        capability: 1 when it answers v2 schema queries and evaluates locate predicates, else 0.
        direct_subject: key on the topic exchange that also reaches it, or None.
        attributes: everything else that it sent.
        path: ids of the brokers that its message left by links to others, the agent's own first (the annotation
            ``x-qpid.trace``); empty for an agent at the connected broker.
    """

    name: str
    vendor: str = ""
    product: str = ""
    instance: str = ""
    epoch: int = 0
    heartbeat_interval: float = 0
    timestamp: int = 0
    schema_updated: int = 0
    capability: int = 0
    direct_subject: str | None = None
    attributes: Mapping[str, object] = attrs.field(factory=dict)
    path: tuple[str, ...] = attrs.field(default=(), eq=False)
