"""The tables of `qpid-stat`, in the formats of release 1.40. Reads from the broker, prints nothing."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import attrs

from qmf.client import BrokerAgent, BrokerObject
from qmf.client.objects import referenced_name
from qmf.errors import CallerError
from qmf.tools.tables import CellFormat, Row, TextColumn, format_cell
from qmf.views.broker_fields import (
    CONNECTION_FIELDS,
    EXCHANGE_FIELDS,
    MQTT_SESSION_FIELDS,
    QUEUE_FIELDS,
    TOTAL_FIELDS,
    FieldKind,
    NodeField,
    TotalField,
)

_STATISTIC_COLUMNS = (
    TextColumn("Statistic"),
    TextColumn("Messages", CellFormat.GROUPED),
    TextColumn("Bytes", CellFormat.GROUPED),
)


class NoDataError(CallerError):
    """The broker, or a view, has nothing of what was asked for; the message says what."""


@attrs.frozen
class View:
    """A table.

    Attributes:
        title: the line before it.
        columns, rows: of the table.
    """

    title: str
    columns: Sequence[TextColumn]
    rows: Sequence[Row]


def general(broker: BrokerAgent) -> list[View]:
    """The broker: numbers of what it has, and totals."""
    found = _broker(broker)
    cluster = broker.getCluster()
    columns = [TextColumn("uptime", CellFormat.DURATION), TextColumn("cluster")]
    counted = ("connection", "session", "exchange", "queue")
    columns += [TextColumn(f"{name}s", CellFormat.GROUPED) for name in counted]
    name = f"{cluster.clusterName}<{cluster.status}>" if cluster else "<standalone>"
    counts = [len(broker.find_all(item)) for item in counted]
    summary = View("Broker Summary:", columns, [[found.getUpdateTime() - found.getCreateTime(), name, *counts]])
    if "queueCount" not in found.values:
        return [summary]
    rows = _statistics(found, TOTAL_FIELDS)
    return [summary, View("Aggregate Broker Statistics:", _STATISTIC_COLUMNS, rows)]


def connections(broker: BrokerAgent) -> list[View]:
    """Connections of clients."""
    return [_nodes("Connections", CONNECTION_FIELDS, broker.getAllConnections(), _broker(broker).getUpdateTime())]


def mqtt_sessions(broker: BrokerAgent) -> list[View]:
    """Sessions of MQTT, with the client that is connected and without."""
    return [_nodes("MQTT Sessions", MQTT_SESSION_FIELDS, broker.getAllMqttSessions())]


def exchanges(broker: BrokerAgent) -> list[View]:
    """Exchanges."""
    return [_nodes("Exchanges", EXCHANGE_FIELDS, broker.getAllExchanges())]


def queues(broker: BrokerAgent) -> list[View]:
    """Queues."""
    return [_nodes("Queues", QUEUE_FIELDS, broker.getAllQueues())]


_FORMS = {
    FieldKind.NAME: CellFormat.PLAIN,
    FieldKind.TEXT: CellFormat.PLAIN,
    FieldKind.FLAG: CellFormat.YES,
    FieldKind.NUMBER: CellFormat.SHORT,
    FieldKind.SIZE: CellFormat.SHORT,
    FieldKind.IDENTIFIER: CellFormat.PLAIN,
    FieldKind.AGE: CellFormat.DURATION,
    FieldKind.IDLE: CellFormat.DURATION,
}


def _nodes(title: str, fields: Sequence[NodeField], items: Iterable[BrokerObject], now: int = 0) -> View:
    """The objects of a class; `now` is the broker's time."""
    shown = [field for field in fields if field.published]
    columns = [TextColumn(field.published, _FORMS[field.kind]) for field in shown]
    return View(title, columns, [[_node_value(item, field, now) for field in shown] for item in items])


def _node_value(item: BrokerObject, field: NodeField, now: int) -> object:
    match field.kind:
        case FieldKind.TEXT:
            return getattr(item, field.value) or "-"
        case FieldKind.AGE:
            return now - item.getCreateTime()
        case FieldKind.IDLE:
            return now - item.getUpdateTime()
    return getattr(item, field.value)


#: Columns with the value that each shows.
_Fields: TypeAlias = Sequence[tuple[TextColumn, str]]

_PROPERTY_FIELDS: _Fields = (
    (TextColumn("Name"), "name"),
    (TextColumn("Durable", CellFormat.YES_NO), "durable"),
    (TextColumn("AutoDelete", CellFormat.YES_NO), "autoDelete"),
    (TextColumn("Exclusive", CellFormat.YES_NO), "exclusive"),
    (TextColumn("FlowStopped", CellFormat.YES_NO), "flowStopped"),
    (TextColumn("FlowStoppedCount", CellFormat.GROUPED), "flowStoppedCount"),
    (TextColumn("Consumers", CellFormat.GROUPED), "consumerCount"),
    (TextColumn("Bindings", CellFormat.GROUPED), "bindingCount"),
)


def queue(broker: BrokerAgent, name: str) -> list[View]:
    """One queue.

    Raises:
        NoDataError: there is none of this name.
    """
    found = broker.getQueue(name)
    if found is None:
        raise NoDataError(f"Queue '{name}' not found")
    optional = [["arguments", found.arguments or {}], ["alt-exchange", found.altExchange]]
    return [
        _fields_view("Properties:", _PROPERTY_FIELDS, [found]),
        View("Optional Properties:", [TextColumn("Property"), TextColumn("Value")], optional),
        View(
            "Statistics:", _STATISTIC_COLUMNS, _statistics(found, [field for field in TOTAL_FIELDS if field.of_queues])
        ),
    ]


_SUBSCRIPTION_COLUMNS = (
    TextColumn("subscr"),
    TextColumn("queue"),
    TextColumn("conn"),
    TextColumn("procName"),
    TextColumn("procId"),
    TextColumn("browse", CellFormat.YES),
    TextColumn("acked", CellFormat.YES),
    TextColumn("excl", CellFormat.YES),
    TextColumn("creditMode"),
    TextColumn("delivered", CellFormat.GROUPED),
    TextColumn("sessUnacked", CellFormat.GROUPED),
)


def subscriptions(broker: BrokerAgent) -> list[View]:
    """Consumers of queues. Those of AMQP 1.0 have a class of their own, and on qpidd no other."""
    sessions = {_key(item): item for item in broker.getAllSessions()}
    connections = {item.address: item for item in broker.getAllConnections()}
    rows = []
    shown = set()
    for item in broker.getAllSubscriptions():
        shown.add(_link_of(item.values))
        details = [item.browsing, item.acknowledged, item.exclusive, item.creditMode, item.delivered]
        rows.append(_subscription(item.values, item.queueRef, details, sessions, connections))
    for values in broker.list("outgoing"):
        if _link_of(values) not in shown:
            details = [None, None, None, None, values.get("transfers")]
            rows.append(_subscription(values, values.get("source"), details, sessions, connections))
    return [View("Subscriptions", _SUBSCRIPTION_COLUMNS, rows)]


def _link_of(values: Mapping[str, Any]) -> tuple[str, object]:
    """Session and name of a link: the same for its objects of both classes."""
    return str(referenced_name(values.get("sessionRef"))), values.get("name")


def _subscription(
    values: Mapping[str, Any],
    source: object,
    details: Sequence[object],
    sessions: Mapping[str, BrokerObject],
    connections: Mapping[str, BrokerObject],
) -> Row:
    session = sessions.get(str(referenced_name(values.get("sessionRef"))))
    connection = connections.get(session.connectionRef) if session else None
    client = (
        [connection.address, connection.remoteProcessName or "-", connection.remotePid] if connection else ["-"] * 3
    )
    return [values.get("name"), source, *client, *details, session.unackedMessages if session else None]


def memory(broker: BrokerAgent) -> list[View]:
    """The memory that the broker uses.

    Raises:
        NoDataError: it does not tell.
    """
    found = broker.getMemory()
    if found is None:
        raise NoDataError("this broker has no memory statistics")
    rows = [[name, value] for name, value in found.values.items() if name != "name"]
    return [View("Broker Memory Statistics:", [TextColumn("Statistic"), TextColumn("Value", CellFormat.GROUPED)], rows)]


def acl(broker: BrokerAgent) -> list[View]:
    """The access control.

    Raises:
        NoDataError: the broker has none.
    """
    found = broker.getAcl()
    if found is None:
        raise NoDataError("ACL Policy Module is not installed")
    loaded = int(found.lastAclLoad or 0) / 1e9
    rows = [
        ["policy-file", found.policyFile],
        ["enforcing", format_cell(CellFormat.YES_NO, found.enforcingAcl)],
        ["has-transfer-acls", format_cell(CellFormat.YES_NO, found.transferAcl)],
        ["last-acl-load", time.strftime("%c", time.gmtime(loaded))],
        ["acl-denials", format_cell(CellFormat.GROUPED, found.aclDenyCount)],
    ]
    return [View("ACL Policy Statistics:", [TextColumn("Statistic"), TextColumn("Value")], rows)]


VIEWS: Mapping[str, Callable[[BrokerAgent], list[View]]] = {
    "general": general,
    "connections": connections,
    "exchanges": exchanges,
    "queues": queues,
    "subscriptions": subscriptions,
    "memory": memory,
    "mqtt": mqtt_sessions,
    "acl": acl,
}
#: Views whose rows can be sorted and limited.
SORTABLE = ("connections", "exchanges", "mqtt", "queues", "subscriptions")


def arrange(view: View, sort_by: str | None, *, increasing: bool, limit: int | None) -> View:
    """A view with its rows sorted, and at most so many of them.

    Args:
        view: to arrange.
        sort_by: heading of a column; None for the broker's order.
        increasing: the smallest first.
        limit: rows at most; None for all.

    Raises:
        NoDataError: there is no such column.
    """
    rows = list(view.rows)
    if sort_by is not None:
        titles = [column.title for column in view.columns]
        if sort_by not in titles:
            raise NoDataError(f"no column {sort_by!r}; there are {', '.join(titles)}")
        at = titles.index(sort_by)
        rows.sort(key=lambda row: _order(row[at]), reverse=not increasing)
    return attrs.evolve(view, rows=rows[:limit])


def _order(value: object) -> tuple[int, float, str]:
    """Sorts numbers before texts, and what has no value before both."""
    if value is None:
        return 0, 0.0, ""
    return (1, float(value), "") if isinstance(value, int | float) else (2, 0.0, str(value))


def _broker(broker: BrokerAgent) -> BrokerObject:
    found = broker.getBroker()
    if found is None:
        raise NoDataError("the broker has no statistics")
    return found


def _statistics(item: BrokerObject, fields: Iterable[TotalField]) -> list[Row]:
    return [
        [field.published, getattr(item, field.messages), getattr(item, field.octets) if field.octets else None]
        for field in fields
    ]


def _fields_view(title: str, fields: _Fields, items: Iterable[BrokerObject]) -> View:
    rows = [[getattr(item, name) for _, name in fields] for item in items]
    return View(title, [column for column, _ in fields], rows)


def _key(item: BrokerObject) -> str:
    """The key of an object, as references to it have it."""
    return item.getObjectId().split(":", 2)[2]
