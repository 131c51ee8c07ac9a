"""The views of `qmf-stat`: from the objects of a qpidd to tables. Asks the bus through a context, prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import attrs

from qmf.errors import CallerError, NotFoundError
from qmf.schema import Kind
from qmf_shell.commands.agents import run as agents_table
from qmf_shell.objects.cells import free_cell
from qmf_shell.objects.filtering import sorted_by
from qmf_shell.objects.lookup import class_names, find_classes
from qmf_shell.parsing.command import BoundArguments
from qmf_shell.results.result import (
    Cell,
    Column,
    Details,
    Duration,
    HiLo,
    Instant,
    MinMaxMean,
    Quantity,
    ReferenceCell,
    Result,
    ResultGroup,
    Role,
    Table,
    WatchedValue,
)
from qmf_shell.session.backend import ObjectKey, ObjectRecord
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_name
from qmf_shell.text import listing, natural_key, plural

#: The package of qpidd's own classes.
PACKAGE = "org.apache.qpid.broker"


class UnmanagedError(CallerError):
    """No agent has the classes of a qpidd, so there is nothing to show."""


class UnknownColumnError(NotFoundError):
    """A view has no column of that name; tells which it has.

    Attributes:
        columns: their headings.
    """

    def __init__(self, name: str, columns: Sequence[str]) -> None:
        super().__init__("column", name, columns)
        self.columns = columns

    def __str__(self) -> str:
        return f"no column {self.name!r}; there are {listing(self.columns, 'and')}"


@attrs.frozen
class _Field:
    """A column of a view.

    Attributes:
        title: its heading.
        value: makes the cell.
        role, wraps, spare: as of `Column`.
    """

    title: str
    value: Callable[[ObjectRecord], Cell]
    role: Role = Role.NUMBER
    wraps: bool = False
    spare: bool = False


def make_view(context: Context, view: str, sort: str | None, *, up: bool = False, limit: int | None = None) -> Result:
    """A view as it is now.

    Args:
        context: the session.
        view: one of `qmf_shell.stat.VIEWS`.
        sort: heading of the column to sort by, or None for the usual order.
        up: the smallest first.
        limit: rows at most, or None.

    Raises:
        UnmanagedError: the broker is no qpidd.
        NotFoundError: no such column.
        QmfError: the question failed.
    """
    match view:
        case "overview":
            return _overview(context)
        case "agents":
            return _arranged(agents_table(context, BoundArguments()), sort, up, limit)
        case "classes":
            return _arranged(_classes(context), sort, up, limit)
        case _:
            names, fields = _VIEWS[view]
            return _arranged(_table(context, names, fields), sort, up, limit)


def _value(*names: str) -> Callable[[ObjectRecord], Cell]:
    """A cell of the first of these values that an object has."""
    return lambda item: next((_plain(item.values[name]) for name in names if name in item.values), None)


def _plain(value: object) -> Cell:
    if isinstance(value, ObjectKey):
        return short_name(value.name)
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return Quantity(value)
    return value if isinstance(value, str) else None


def short_name(name: str) -> str:
    """An object's name without package and class: ``org.apache.qpid.broker:queue:orders`` is ``orders``."""
    parts = name.split(":", 2)
    return parts[2] if len(parts) == 3 else name


def _since(item: ObjectRecord) -> Cell:
    return Duration(max(0, item.updated - item.created)) if item.created else None


_QUEUES = (
    _Field("queue", lambda item: item.identity.index, Role.NAME, wraps=True),
    _Field("dur", _value("durable"), Role.TEXT, spare=True),
    _Field("autoDel", _value("autoDelete"), Role.TEXT, spare=True),
    _Field("excl", _value("exclusive"), Role.TEXT, spare=True),
    _Field("msg", _value("msgDepth")),
    _Field("msgIn", _value("msgTotalEnqueues")),
    _Field("msgOut", _value("msgTotalDequeues")),
    _Field("bytes", _value("byteDepth"), spare=True),
    _Field("bytesIn", _value("byteTotalEnqueues"), spare=True),
    _Field("bytesOut", _value("byteTotalDequeues"), spare=True),
    _Field("cons", _value("consumerCount")),
    _Field("bind", _value("bindingCount"), spare=True),
)
_EXCHANGES = (
    _Field("exchange", lambda item: item.identity.index or "(default)", Role.NAME, wraps=True),
    _Field("type", _value("type"), Role.TEXT),
    _Field("dur", _value("durable"), Role.TEXT, spare=True),
    _Field("bind", _value("bindingCount")),
    _Field("msgIn", _value("msgReceives")),
    _Field("msgOut", _value("msgRoutes")),
    _Field("msgDrop", _value("msgDrops")),
    _Field("byteIn", _value("byteReceives"), spare=True),
    _Field("byteOut", _value("byteRoutes"), spare=True),
    _Field("byteDrop", _value("byteDrops"), spare=True),
)
_CONNECTIONS = (
    _Field("connection", lambda item: item.identity.index, Role.NAME, wraps=True),
    _Field("process", _value("remoteProcessName"), Role.TEXT),
    _Field("pid", lambda item: _identifier(item.values.get("remotePid")), spare=True),
    _Field("mech", _value("saslMechanism"), Role.TEXT, spare=True),
    _Field("user", _value("authIdentity"), Role.TEXT, wraps=True),
    _Field("protocol", _value("protocol"), Role.TEXT, spare=True),
    _Field("since", _since),
    _Field("msgIn", _value("msgsFromClient")),
    _Field("msgOut", _value("msgsToClient")),
)
_SUBSCRIPTIONS = (
    _Field("subscription", lambda item: _plain(item.values.get("name")) or item.identity.index, Role.NAME, wraps=True),
    _Field("queue", _value("queueRef", "source"), Role.TEXT, wraps=True),
    _Field("session", _value("sessionRef"), Role.FAINT, wraps=True, spare=True),
    _Field("browse", _value("browsing"), Role.TEXT, spare=True),
    _Field("acked", _value("acknowledged"), Role.TEXT, spare=True),
    _Field("excl", _value("exclusive"), Role.TEXT, spare=True),
    _Field("credit", _value("creditMode"), Role.TEXT, spare=True),
    _Field("delivered", _value("delivered", "transfers")),
)
#: Who reads: over AMQP 0-10, and over AMQP 1.0. A broker without AMQP 1.0 lacks the second class.
_READERS = ("subscription", "outgoing")
#: Views with the classes of their rows, the one that every qpidd has in front.
_VIEWS: dict[str, tuple[Sequence[str], Sequence[_Field]]] = {
    "queues": (("queue",), _QUEUES),
    "exchanges": (("exchange",), _EXCHANGES),
    "connections": (("connection",), _CONNECTIONS),
    "subscriptions": (_READERS, _SUBSCRIPTIONS),
}


def _identifier(value: object) -> Cell:
    """A number that names something: without separators."""
    return value if isinstance(value, int) else None


def _objects(context: Context, name: str, *more: str) -> Sequence[ObjectRecord]:
    """All objects of a class that must be there, and of others, by key."""
    classes = context.classes()
    try:
        keys = find_classes(classes, f"{PACKAGE}:{name}")
    except NotFoundError:
        where = _there(context)
        be = "is" if len(where) == 1 else "are"
        raise UnmanagedError(
            f"{listing(where, 'and')} {be} not managed by QMF: no agent has the class {PACKAGE}:{name}"
        ) from None
    keys += [key for key in classes if key.package == PACKAGE and key.name in more]
    return sorted(context.objects(class_names(keys)), key=lambda item: natural_key(item.identity.index))


def _there(context: Context) -> list[str]:
    """URLs of the brokers that answer."""
    return [item.url for item in context.backend.statuses if item.connected]


def _table(context: Context, names: Sequence[str], fields: Sequence[_Field]) -> Table:
    name = names[0]
    objects = _objects(context, *names)
    several = len(context.backend.statuses) > 1
    columns = [Column(item.title, item.role, item.wraps, item.spare, item.title) for item in fields]
    rows = [tuple(item.value(one) for item in fields) for one in objects]
    if several:
        columns.append(Column("broker", Role.FAINT, wraps=True))
        rows = [(*row, one.identity.key.broker) for row, one in zip(rows, objects, strict=True)]
    return Table(tuple(columns), tuple(rows), title=plural(len(rows), name), empty=f"No {name}s.")


def _classes(context: Context) -> Table:
    names = class_names(sorted(key for key in context.classes() if key.kind is Kind.DATA))
    counts: dict[tuple[str, str], int] = dict.fromkeys(names, 0)
    for item in context.objects(names):
        counts[class_name(item.identity)] = counts.get(class_name(item.identity), 0) + 1
    rows = tuple((*name, counts[name]) for name in names)
    columns = (
        Column("package", Role.FAINT),
        Column("class", Role.NAME),
        Column("objects", Role.NUMBER),
    )
    return Table(columns, rows, title=plural(len(rows), "class", "classes"), empty="No classes.")


_TOTALS = (
    ("queue depth", "msgDepth", "byteDepth"),
    ("enqueued", "msgTotalEnqueues", "byteTotalEnqueues"),
    ("dequeued", "msgTotalDequeues", "byteTotalDequeues"),
    ("persistent enqueued", "msgPersistEnqueues", "bytePersistEnqueues"),
    ("persistent dequeued", "msgPersistDequeues", "bytePersistDequeues"),
    ("transactional enqueued", "msgTxnEnqueues", "byteTxnEnqueues"),
    ("transactional dequeued", "msgTxnDequeues", "byteTxnDequeues"),
    ("acquired", "acquires", ""),
    ("released", "releases", ""),
    ("discarded: no route", "discardsNoRoute", ""),
    ("discarded: expired", "discardsTtl", ""),
    ("discarded: limit, ring, LVQ", "discardsOverflow,discardsRing,discardsLvq", ""),
    ("discarded: by subscriber, purge", "discardsSubscriber,discardsPurge", ""),
    ("abandoned", "abandoned,abandonedViaAlt", ""),
)
_COUNTED = (("connection",), ("session",), ("exchange",), ("queue",), _READERS, ("binding",))


def _overview(context: Context) -> Result:
    try:
        brokers = _objects(context, "broker")
    except UnmanagedError:
        return _plain_overview(context)
    parts: list[Result] = []
    counted = context.objects([(PACKAGE, name) for names in _COUNTED for name in names])
    agents = context.agents()
    for broker in brokers:
        key = broker.identity.key
        urls = [item.url for item in context.backend.statuses if key.broker in ("", item.name)]
        mine = [
            item for item in counted if (item.identity.key.agent, item.identity.key.broker) == (key.agent, key.broker)
        ]
        pairs: list[tuple[str, Cell]] = [
            ("broker", key.broker or context.backend.status.url),
            ("name", broker.identity.index),
            ("version", free_cell(context, broker.values.get("version"))),
            ("uptime", Duration(up) if isinstance(up := broker.values.get("uptime"), int) else None),
            ("since", Instant(broker.created)),
            ("agents", sum(1 for item in agents if item.broker in urls)),
        ]
        for names in _COUNTED:
            pairs.append((f"{names[0]}s", sum(1 for item in mine if item.identity.class_key.name.lower() in names)))
        parts += [Details(tuple(pairs), title="Broker"), _totals(broker)]
    return ResultGroup(tuple(parts))


def _totals(broker: ObjectRecord) -> Table:
    columns = (
        Column("statistic", Role.NAME),
        Column("messages", Role.NUMBER),
        Column("bytes", Role.NUMBER),
    )
    rows = [
        (title, _sum(broker, messages), _sum(broker, octets) if octets else None) for title, messages, octets in _TOTALS
    ]
    shown = tuple(row for row in rows if row[1] is not None)
    return Table(columns, shown, title="In total", empty="The broker counts nothing.")


def _sum(broker: ObjectRecord, names: str) -> Quantity | None:
    values = [value for name in names.split(",") if isinstance(value := broker.values.get(name), int)]
    return Quantity(sum(values)) if values else None


def _plain_overview(context: Context) -> Details:
    """Of a broker that is not managed itself: who is there."""
    names = class_names(sorted(key for key in context.classes() if key.kind is Kind.DATA))
    pairs: list[tuple[str, Cell]] = [
        ("broker", listing(_there(context), "and")),
        ("managed by QMF", "no: it has no agent of its own"),
        ("agents", len(context.agents())),
        ("classes", len(names)),
        ("objects", len(context.objects(names))),
    ]
    return Details(tuple(pairs), title="Broker")


def _arranged(table: Table, sort: str | None, up: bool, limit: int | None) -> Table:
    rows = list(table.rows)
    if sort is not None:
        titles = [column.title.lower() for column in table.columns]
        if sort.lower() not in titles:
            raise UnknownColumnError(sort, [column.title for column in table.columns])
        at = titles.index(sort.lower())
        rows = sorted_by(rows, lambda row: sort_value(row[at]), down=not up)
    shown = rows if limit is None else rows[:limit]
    left = len(rows) - len(shown)
    return attrs.evolve(table, rows=tuple(shown), note=f"{left:,} more beyond the limit" if left else table.note)


def sort_value(cell: Cell) -> object:
    """What a cell is sorted by: a number or a text; None where it has none."""
    match cell:
        case Quantity(value, _) | HiLo(value, _, _, _):
            return value
        case Instant(value) | Duration(value):
            return value
        case MinMaxMean():
            return cell.mean
        case ReferenceCell(number, _):
            return number
        case WatchedValue(inner, _, _, _):
            return sort_value(inner)
        case None | "":
            return None
        case bool() | int() | float() | str():
            return cell
        case _:
            return str(cell)
