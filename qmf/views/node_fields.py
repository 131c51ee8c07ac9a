"""What operators look for of queues and exchanges: the columns of `qpid-stat` and `qmf-stat`."""

from __future__ import annotations

import enum
from collections.abc import Sequence

import attrs


class FieldKind(enum.Enum):
    """What the values of a column are."""

    NAME = enum.auto()
    TEXT = enum.auto()
    FLAG = enum.auto()
    NUMBER = enum.auto()
    #: A number of bytes.
    SIZE = enum.auto()


_LEFT_OUT_FIRST = (FieldKind.FLAG, FieldKind.SIZE)


@attrs.frozen
class NodeField:
    """A column.

    Attributes:
        heading: its heading.
        value: name of the property or statistic of qpidd's class.
        kind: what it is.
        spare: whether it is left out first where there is no room; by default flags and sizes.
    """

    heading: str
    value: str
    kind: FieldKind = FieldKind.NUMBER
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
