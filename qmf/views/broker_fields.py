"""What operators look for of the classes of brokers: the statistics that matter, whatever they are now, the columns of
`qpid-stat` and `qmf-stat`, and what is computed from the statistics of a queue: is it in order, what waits in it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.schema import TYPES, ClassSchema
from qmf.views.fields import ObjectField
from qmf.views.internal import BROKER_PACKAGE

#: Of the classes of MQTT.
MQTT_PACKAGE = "qmf.mqtt"

#: The package and the class of routes between brokers, which brokers of this project have.
FEDERATION_PACKAGE, ROUTE = "qmf.federation", "route"

#: The package and the classes of what forwards messages to other domains, and between queues.
FORWARDING_PACKAGE, RELAY, QUEUE_LINK = "qmf.forwarding", "relay", "queuelink"

#: The statistics that matter, by class in lower case.
_IMPORTANT: Mapping[str, Sequence[str]] = {
    "broker": ("queueCount", "msgDepth", "msgTotalEnqueues", "msgTotalDequeues"),
    "connection": ("msgsFromClient", "msgsToClient", "bytesFromClient", "bytesToClient"),
    "exchange": ("bindingCount", "msgReceives", "msgRoutes", "msgDrops"),
    "incoming": ("transfers",),
    "link": ("state", "lastError"),
    "outgoing": ("transfers",),
    "queue": ("msgDepth", "consumerCount", "msgTotalEnqueues", "msgTotalDequeues"),
}


#: The same of those that brokers of this project have besides, by package and class.
_IMPORTANT_OF_OURS: Mapping[tuple[str, str], Sequence[str]] = {
    (FEDERATION_PACKAGE, ROUTE): (
        *("place", "state", "backlog", "behind", "transfers", "rate", "lastError", "since"),
        *("credit", "inDoubt"),
    ),
    (FORWARDING_PACKAGE, RELAY): ("state", "waiting", "forwarded", "retried", "deadLettered", "lastError", "since"),
    (FORWARDING_PACKAGE, QUEUE_LINK): ("state", "passed", "skipped", "lastError", "since"),
}


def important_values(schema: ClassSchema) -> Sequence[str]:
    """The statistics of a class of brokers that operators look for; none for others."""
    if schema.package == MQTT_PACKAGE:
        return ("subscriptions", "queued", "inflight")
    if schema.package == BROKER_PACKAGE:
        return _IMPORTANT.get(schema.name.lower(), ())
    return _IMPORTANT_OF_OURS.get((schema.package, schema.name.lower()), ())


def is_queue(schema: ClassSchema) -> bool:
    """True for the class of a broker's queues."""
    return schema.package == BROKER_PACKAGE and schema.name.lower() == "queue"


class FieldKind(enum.Enum):
    """What the values of a column are."""

    NAME = enum.auto()
    TEXT = enum.auto()
    FLAG = enum.auto()
    NUMBER = enum.auto()
    #: A number of bytes.
    SIZE = enum.auto()
    #: A number that identifies something.
    IDENTIFIER = enum.auto()
    #: How long the object has existed, and how long ago its values changed; no value of the object.
    AGE = enum.auto()
    IDLE = enum.auto()


_LEFT_OUT_FIRST = (FieldKind.FLAG, FieldKind.SIZE)


@attrs.frozen
class NodeField:
    """A column.

    Attributes:
        heading: its heading; empty if only `qpid-stat` shows it.
        value: name of the property or statistic of qpidd's class.
        kind: what it is.
        published: its heading in `qpid-stat`, where that is another one; empty if only `qmf-stat` shows it.
        shortens: whether its texts may be shortened where there is no room.
        spare: whether it is left out first where there is no room; by default flags and sizes.
    """

    heading: str
    value: str
    kind: FieldKind = FieldKind.NUMBER
    published: str = attrs.field(default=attrs.Factory(lambda self: self.heading, takes_self=True), kw_only=True)
    shortens: bool = attrs.field(default=False, kw_only=True)
    spare: bool = attrs.field(default=attrs.Factory(lambda self: self.kind in _LEFT_OUT_FIRST, takes_self=True))


QUEUE_FIELDS: Sequence[NodeField] = (
    NodeField("queue", "name", FieldKind.NAME),
    NodeField("dur", "durable", FieldKind.FLAG),
    NodeField("autoDel", "autoDelete", FieldKind.FLAG),
    NodeField("excl", "exclusive", FieldKind.FLAG),
    NodeField("msg", "msgDepth"),
    NodeField("msgIn", "msgTotalEnqueues"),
    NodeField("msgOut", "msgTotalDequeues"),
    NodeField("bytes", "byteDepth", FieldKind.SIZE),
    NodeField("bytesIn", "byteTotalEnqueues", FieldKind.SIZE),
    NodeField("bytesOut", "byteTotalDequeues", FieldKind.SIZE),
    NodeField("cons", "consumerCount"),
    NodeField("bind", "bindingCount", spare=True),
)
EXCHANGE_FIELDS: Sequence[NodeField] = (
    NodeField("exchange", "name", FieldKind.NAME),
    NodeField("type", "type", FieldKind.TEXT),
    NodeField("dur", "durable", FieldKind.FLAG),
    NodeField("bind", "bindingCount"),
    NodeField("msgIn", "msgReceives"),
    NodeField("msgOut", "msgRoutes"),
    NodeField("msgDrop", "msgDrops"),
    NodeField("byteIn", "byteReceives", FieldKind.SIZE),
    NodeField("byteOut", "byteRoutes", FieldKind.SIZE),
    NodeField("byteDrop", "byteDrops", FieldKind.SIZE),
)
CONNECTION_FIELDS: Sequence[NodeField] = (
    NodeField("connection", "address", FieldKind.NAME),
    NodeField("process", "remoteProcessName", FieldKind.TEXT, published="cproc"),
    NodeField("pid", "remotePid", FieldKind.IDENTIFIER, published="cpid", spare=True),
    NodeField("mech", "saslMechanism", FieldKind.TEXT, spare=True),
    NodeField("user", "authIdentity", FieldKind.TEXT, published="auth", shortens=True),
    NodeField("protocol", "protocol", FieldKind.TEXT, published="", spare=True),
    NodeField("since", "", FieldKind.AGE, published="connected"),
    NodeField("", "", FieldKind.IDLE, published="idle"),
    NodeField("msgIn", "msgsFromClient"),
    NodeField("msgOut", "msgsToClient"),
)
MQTT_SESSION_FIELDS: Sequence[NodeField] = (
    NodeField("client", "clientId", FieldKind.NAME),
    NodeField("user", "user", FieldKind.TEXT, shortens=True),
    NodeField("version", "version", FieldKind.TEXT, spare=True),
    NodeField("conn", "connected", FieldKind.FLAG, spare=False),
    NodeField("dur", "durable", FieldKind.FLAG),
    NodeField("expiry", "expiry", FieldKind.IDENTIFIER, spare=True),
    NodeField("subs", "subscriptions"),
    NodeField("queued", "queued"),
    NodeField("inflight", "inflight"),
    NodeField("will", "willTopic", FieldKind.TEXT, shortens=True, spare=True),
)


@attrs.frozen
class TotalField:
    """A statistic of a broker, and of its queues, in messages and mostly in bytes.

    Attributes:
        heading: in `qmf-stat`, which adds those up that have the same; empty if it doesn't show this one.
        published: in `qpid-stat`.
        messages, octets: names of the statistics of qpidd's classes; empty where there is none in bytes.
        of_queues: queues have it as well.
    """

    heading: str
    published: str
    messages: str
    octets: str = ""
    of_queues: bool = attrs.field(default=True, kw_only=True)


TOTAL_FIELDS: Sequence[TotalField] = (
    TotalField("queue depth", "queue-depth", "msgDepth", "byteDepth"),
    TotalField("enqueued", "total-enqueues", "msgTotalEnqueues", "byteTotalEnqueues"),
    TotalField("dequeued", "total-dequeues", "msgTotalDequeues", "byteTotalDequeues"),
    TotalField("persistent enqueued", "persistent-enqueues", "msgPersistEnqueues", "bytePersistEnqueues"),
    TotalField("persistent dequeued", "persistent-dequeues", "msgPersistDequeues", "bytePersistDequeues"),
    TotalField("transactional enqueued", "transactional-enqueues", "msgTxnEnqueues", "byteTxnEnqueues"),
    TotalField("transactional dequeued", "transactional-dequeues", "msgTxnDequeues", "byteTxnDequeues"),
    TotalField("", "flow-to-disk-depth", "msgFtdDepth", "byteFtdDepth"),
    TotalField("", "flow-to-disk-enqueues", "msgFtdEnqueues", "byteFtdEnqueues"),
    TotalField("", "flow-to-disk-dequeues", "msgFtdDequeues", "byteFtdDequeues"),
    TotalField("acquired", "acquires", "acquires"),
    TotalField("released", "releases", "releases"),
    TotalField("discarded: no route", "discards-no-route", "discardsNoRoute", of_queues=False),
    TotalField("discarded: expired", "discards-ttl-expired", "discardsTtl"),
    TotalField("discarded: limit, ring, LVQ", "discards-limit-overflow", "discardsOverflow"),
    TotalField("discarded: limit, ring, LVQ", "discards-ring-overflow", "discardsRing"),
    TotalField("discarded: limit, ring, LVQ", "discards-lvq-replace", "discardsLvq"),
    TotalField("discarded: by subscriber, purge", "discards-subscriber-reject", "discardsSubscriber"),
    TotalField("discarded: by subscriber, purge", "discards-purged", "discardsPurge"),
    TotalField("", "reroutes", "reroutes"),
    TotalField("abandoned", "abandoned", "abandoned", of_queues=False),
    TotalField("abandoned", "abandoned-via-alt", "abandonedViaAlt", of_queues=False),
)


@attrs.frozen
class ComputedField:
    """A value that is computed from those of an object.

    Attributes:
        field: what it is.
        read: computes it from the values by wire name; None where they are missing.
    """

    field: ObjectField
    read: Callable[[Mapping[str, object]], object]


def _number(values: Mapping[str, object], name: str) -> int | None:
    value = values.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _consumers(values: Mapping[str, object]) -> int | None:
    return _number(values, "consumerCount")


def _count_unacknowledged(values: Mapping[str, object]) -> int | None:
    counted = _number(values, "unackedMessages")
    acquires, removed = _number(values, "acquires"), _number(values, "msgTotalDequeues")
    if acquires is None or removed is None:
        return counted
    # Expired messages and those that a full ring drops are removed without having been acquired.
    never_acquired = sum(_number(values, name) or 0 for name in ("discardsTtl", "discardsRing"))
    return max(0, counted or 0, acquires - (_number(values, "releases") or 0) - (removed - never_acquired))


def _ready(values: Mapping[str, object]) -> int | None:
    depth = _number(values, "msgDepth")
    return None if depth is None else max(0, depth - (_count_unacknowledged(values) or 0))


def _state(values: Mapping[str, object]) -> str | None:
    consumers = _consumers(values)
    if values.get("flowStopped"):
        return "flow stopped"
    if values.get("redirectSource"):
        return "redirected"
    if consumers is None:
        return None
    if consumers:
        return "running"
    return "no consumer" if _number(values, "msgDepth") else "idle"


_COUNT = TYPES["uint64"]
#: What people ask of a queue.
QUEUE_COMPUTED: Sequence[ComputedField] = (
    ComputedField(
        ObjectField(
            "state",
            TYPES["sstr"],
            desc="flow stopped: senders wait because the queue is almost full; redirected: new messages go to another "
            "queue; no consumer: messages wait and nobody receives; running: it has consumers; idle: neither messages "
            "nor consumers",
        ),
        _state,
    ),
    ComputedField(ObjectField("ready", _COUNT, "message", "Messages that wait for a consumer"), _ready),
    ComputedField(
        ObjectField(
            "unacknowledged",
            _COUNT,
            "message",
            "Messages that consumers hold. Of qpidd, which does not count them: messages that were acquired, and "
            "neither released nor removed since; too few after messages were moved",
        ),
        _count_unacknowledged,
    ),
    ComputedField(ObjectField("consumers", _COUNT, desc="Receivers of the queue"), _consumers),
)
