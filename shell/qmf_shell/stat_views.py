"""The views of `qmf-stat`: tables about the objects of a qpidd, with columns by its classes. Prints nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf._natural_order import natural_key
from qmf.errors import CallerError, NotFoundError
from qmf.views.broker_fields import (
    CONNECTION_FIELDS,
    EXCHANGE_FIELDS,
    MQTT_PACKAGE,
    MQTT_SESSION_FIELDS,
    QUEUE_FIELDS,
    TOTAL_FIELDS,
    FieldKind,
    NodeField,
)
from qmf.views.cells import (
    Cell,
    CellForm,
    Duration,
    HiLoCell,
    Instant,
    MinMaxMeanCell,
    Quantity,
    ReferenceCell,
    WatchedValue,
)
from qmf.views.fields import sort_by
from qmf.views.internal import BROKER_PACKAGE
from qmf.views.objects import ObjectKey, ObjectView
from qmf.views.text import listing, plural
from qmf.views.value_cells import free_cell
from qmf_shell.commands.agents import run as agents_table
from qmf_shell.objects.lookup import find_classes
from qmf_shell.parsing.command import BoundArguments
from qmf_shell.results.result import Details, Result, ResultGroup, Role, Table, TableColumn
from qmf_shell.session.backend import AgentRecord
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_name, class_names
from qmf_shell.session.own_objects import own_note


@attrs.frozen
class ViewColumn:
    """A column of a view.

    Attributes:
        title: its heading.
        value: makes the cell of an object.
        role, shortens, spare: as in `TableColumn`.
    """

    title: str
    value: Callable[[ObjectView], Cell]
    role: Role = Role.NUMBER
    shortens: bool = False
    spare: bool = False

    @property
    def column(self) -> TableColumn:
        """The column of a table."""
        form = CellForm.BRIEF if self.role is Role.NUMBER else CellForm.FULL
        return TableColumn(self.title, self.role, spare=self.spare, key=self.title, form=form, shortens=self.shortens)


def _identifier(value: object) -> Cell:
    """The cell of a number that identifies something: without separators."""
    return value if isinstance(value, int) else None


def _value(*names: str, unit: str | None = None) -> Callable[[ObjectView], Cell]:
    """Makes the cell of the first of these values that an object has."""
    return lambda item: next((_plain(item.values[name], unit) for name in names if name in item.values), None)


def _plain(value: object, unit: str | None = None) -> Cell:
    if isinstance(value, ObjectKey):
        return short_name(value.object_name)
    if isinstance(value, bool):
        return value
    if isinstance(value, int | float):
        return Quantity(value, unit)
    return value if isinstance(value, str) else None


def short_name(name: str) -> str:
    """An object's name without package and class: ``org.apache.qpid.broker:queue:orders`` is ``orders``."""
    parts = name.split(":", 2)
    return parts[2] if len(parts) == 3 else name


def _since(item: ObjectView) -> Cell:
    return Duration(max(0, item.updated - item.created)) if item.created else None


def _node_column(field: NodeField) -> ViewColumn:
    """The column of a queue, an exchange or a connection."""
    match field.kind:
        case FieldKind.NAME:
            return ViewColumn(field.heading, lambda item: item.identity.index or "(default)", Role.NAME, shortens=True)
        case FieldKind.TEXT | FieldKind.FLAG:
            return ViewColumn(field.heading, _value(field.value), Role.TEXT, field.shortens, field.spare)
        case FieldKind.IDENTIFIER:
            return ViewColumn(field.heading, lambda item: _identifier(item.values.get(field.value)), spare=field.spare)
        case FieldKind.AGE | FieldKind.IDLE:
            return ViewColumn(field.heading, _since)
        case FieldKind.NUMBER:
            return ViewColumn(field.heading, _value(field.value), spare=field.spare)
        case FieldKind.SIZE:
            return ViewColumn(field.heading, _value(field.value, unit="octet"), spare=field.spare)


def _node_columns(fields: Sequence[NodeField]) -> list[ViewColumn]:
    return [_node_column(field) for field in fields if field.heading]


_SUBSCRIPTIONS = (
    ViewColumn(
        "subscription", lambda item: _plain(item.values.get("name")) or item.identity.index, Role.NAME, shortens=True
    ),
    ViewColumn("queue", _value("queueRef", "source"), Role.TEXT, shortens=True),
    ViewColumn("session", _value("sessionRef"), Role.FAINT, shortens=True, spare=True),
    ViewColumn("browse", _value("browsing"), Role.TEXT, spare=True),
    ViewColumn("acked", _value("acknowledged"), Role.TEXT, spare=True),
    ViewColumn("excl", _value("exclusive"), Role.TEXT, spare=True),
    ViewColumn("credit", _value("creditMode"), Role.TEXT, spare=True),
    ViewColumn("delivered", _value("delivered", "transfers")),
)
#: Classes of subscriptions in AMQP 0-10 and in AMQP 1.0. A broker without AMQP 1.0 lacks the second one.
SUBSCRIPTION_CLASSES = ("subscription", "outgoing")


@attrs.frozen
class StatView:
    """A view that lists objects.

    Attributes:
        classes: names of their classes; an agent that has some of these objects has the first one.
        columns: of the view.
        package: of the classes.
        title: what a row is; by default the name of the first class.
    """

    classes: Sequence[str]
    columns: Sequence[ViewColumn]
    package: str = BROKER_PACKAGE
    title: str = attrs.field(default=attrs.Factory(lambda self: self.classes[0], takes_self=True))


#: By the names of `qmf_shell.stat.VIEWS`. Every qpidd has the first class of those in its package.
STAT_VIEWS: Mapping[str, StatView] = {
    "queues": StatView(("queue",), _node_columns(QUEUE_FIELDS)),
    "exchanges": StatView(("exchange",), _node_columns(EXCHANGE_FIELDS)),
    "connections": StatView(("connection",), _node_columns(CONNECTION_FIELDS)),
    "subscriptions": StatView(SUBSCRIPTION_CLASSES, _SUBSCRIPTIONS),
    "mqtt": StatView(("mqttsession",), _node_columns(MQTT_SESSION_FIELDS), MQTT_PACKAGE, "MQTT session"),
}


#: The package of qpidd's own classes.
PACKAGE = "org.apache.qpid.broker"


class UnmanagedError(CallerError):
    """No agent has the classes of a qpidd."""


class UnknownColumnError(NotFoundError):
    """A view has no column of this name; the message lists its columns.

    Attributes:
        columns: their headings.
    """

    def __init__(self, name: str, columns: Sequence[str]) -> None:
        super().__init__("column", name, columns)
        self.columns = columns

    def __str__(self) -> str:
        return f"no column {self.name!r}; there are {listing(self.columns, 'and')}"


def stat_view(
    context: Context, view: str, sort: str | None, *, increasing: bool = False, limit: int | None = None
) -> Result:
    """A view with its current values.

    Args:
        view: one of `qmf_shell.stat.VIEWS`.
        sort: heading of the column to sort by; None for the default order.
        increasing: the smallest first.
        limit: rows at most, or None.

    Raises:
        UnmanagedError: the broker has no classes of qpidd.
        NotFoundError: the view has no such column.
        QmfError: the request failed.
    """
    match view:
        case "overview":
            return _overview(context)
        case "agents":
            return _arrange(agents_table(context, BoundArguments()), sort, increasing, limit)
        case "classes":
            return _arrange(_classes(context), sort, increasing, limit)
        case _:
            return _arrange(_table(context, STAT_VIEWS[view]), sort, increasing, limit)


def _objects(context: Context, name: str, *more: str, package: str = PACKAGE) -> Sequence[ObjectView]:
    """All objects of a class that must exist, and of further classes, ordered by index."""
    classes = context.classes()
    try:
        keys = find_classes(classes, f"{package}:{name}")
    except NotFoundError:
        brokers = _connected_urls(context)
        be = "is" if len(brokers) == 1 else "are"
        what = f"{be} not managed by QMF" if package == PACKAGE else "have nothing of this view"
        raise UnmanagedError(f"{listing(brokers, 'and')} {what}: no agent has the class {package}:{name}") from None
    keys += [key for key in classes if key.package == package and key.name in more]
    return sorted(context.objects(class_names(keys)), key=lambda item: natural_key(item.identity.index))


def _connected_urls(context: Context) -> list[str]:
    """URLs of the connected brokers."""
    return [item.url for item in context.backend.statuses if item.connected]


def _table(context: Context, view: StatView) -> Table:
    name, fields, package = view.title, view.columns, view.package
    objects = _objects(context, *view.classes, package=package)
    several = len(context.backend.statuses) > 1
    columns = [item.column for item in fields]
    rows = [tuple(item.value(one) for item in fields) for one in objects]
    if several:
        columns.append(TableColumn("broker", Role.FAINT, shortens=True))
        rows = [(*row, one.identity.key.broker) for row, one in zip(rows, objects, strict=True)]
    hidden = context.left_out_rows((package, one) for one in view.classes)
    return Table(
        tuple(columns),
        tuple(rows),
        title=plural(len(rows), name),
        empty=" ".join([f"No {name}s.", *(f"{text}." for text in own_note(hidden))]),
        note="; ".join(own_note(hidden)) or None,
    )


def _classes(context: Context) -> Table:
    names = class_names(context.object_classes())
    counts: dict[tuple[str, str], int] = dict.fromkeys(names, 0)
    for item in context.objects(names):
        counts[class_name(item.identity)] = counts.get(class_name(item.identity), 0) + 1
    rows = tuple((*name, Quantity(counts[name])) for name in names)
    columns = (
        TableColumn("package", Role.FAINT),
        TableColumn("class", Role.NAME),
        TableColumn("objects", Role.NUMBER),
    )
    return Table(columns, rows, title=plural(len(rows), "class", "classes"), empty="No classes.")


_COUNTED = (("connection",), ("session",), ("exchange",), ("queue",), SUBSCRIPTION_CLASSES, ("binding",))


def _overview(context: Context) -> Result:
    try:
        brokers = _objects(context, "broker")
    except UnmanagedError:
        return _plain_overview(context)
    parts: list[Result] = []
    counted = context.objects([(PACKAGE, name) for names in _COUNTED for name in names])
    agents = context.agents()
    for broker in brokers:
        parts += [_summary(context, broker, counted, agents), _totals(broker)]
    return ResultGroup(tuple(parts))


def _summary(
    context: Context, broker: ObjectView, counted: Sequence[ObjectView], agents: Sequence[AgentRecord]
) -> Details:
    """A broker, with the numbers of its agents and objects."""
    key = broker.identity.key
    urls = [item.url for item in context.backend.statuses if key.broker in ("", item.name)]
    own = key.agent_name, key.broker
    mine = [item.identity for item in counted if (item.identity.key.agent_name, item.identity.key.broker) == own]
    uptime = broker.values.get("uptime")
    pairs: list[tuple[str, Cell]] = [
        ("broker", key.broker or context.backend.status.url),
        ("name", broker.identity.index),
        ("version", free_cell(broker.values.get("version"))),
        ("uptime", Duration(uptime) if isinstance(uptime, int) else None),
        ("since", Instant(broker.created)),
        ("agents", sum(1 for item in agents if item.broker in urls)),
    ]
    pairs += [(f"{names[0]}s", sum(item.class_key.name.lower() in names for item in mine)) for names in _COUNTED]
    return Details(tuple(pairs), title="Broker")


def _totals(broker: ObjectView) -> Table:
    columns = (
        TableColumn("statistic", Role.NAME),
        TableColumn("messages", Role.NUMBER, form=CellForm.BRIEF),
        TableColumn("bytes", Role.NUMBER, form=CellForm.BRIEF),
    )
    headings = dict.fromkeys(field.heading for field in TOTAL_FIELDS if field.heading)
    groups = {heading: [field for field in TOTAL_FIELDS if field.heading == heading] for heading in headings}
    rows = [
        (
            heading,
            _sum(broker, [field.messages for field in group]),
            _sum(broker, [field.octets for field in group], "octet"),
        )
        for heading, group in groups.items()
    ]
    shown = tuple(row for row in rows if row[1] is not None)
    return Table(columns, shown, title="In total", empty="The broker has no statistics.")


def _sum(broker: ObjectView, names: Sequence[str], unit: str | None = None) -> Quantity | None:
    values = [value for name in names if isinstance(value := broker.values.get(name), int)]
    return Quantity(sum(values), unit) if values else None


def _plain_overview(context: Context) -> Details:
    """The overview of a broker that is not managed itself: its agents and objects."""
    names = class_names(context.object_classes())
    pairs: list[tuple[str, Cell]] = [
        ("broker", listing(_connected_urls(context), "and")),
        ("managed by QMF", "no: it has no agent of its own"),
        ("agents", len(context.agents())),
        ("classes", len(names)),
        ("objects", len(context.objects(names))),
    ]
    return Details(tuple(pairs), title="Broker")


def _arrange(table: Table, sort: str | None, increasing: bool, limit: int | None) -> Table:
    rows = list(table.rows)
    if sort is not None:
        titles = [column.title.lower() for column in table.columns]
        if sort.lower() not in titles:
            raise UnknownColumnError(sort, [column.title for column in table.columns])
        at = titles.index(sort.lower())
        rows = sort_by(rows, lambda row: sort_value(row[at]), descending=not increasing)
    shown = rows if limit is None else rows[:limit]
    left = len(rows) - len(shown)
    notes = [f"{left:,} more beyond the limit"] if left else []
    notes += [table.note] if table.note else []
    return attrs.evolve(table, rows=tuple(shown), note="; ".join(notes) or None)


def sort_value(cell: Cell) -> object:
    """The value by which a cell is sorted: a number or a text; None if it has no value."""
    match cell:
        case Quantity(value, _) | HiLoCell(value, _, _, _):
            return value
        case Instant(value) | Duration(value):
            return value
        case MinMaxMeanCell():
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
