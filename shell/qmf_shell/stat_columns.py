"""The columns of the views of `qmf-stat`, by the classes of qpidd."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs

from qmf.views.broker_fields import (
    CONNECTION_FIELDS,
    EXCHANGE_FIELDS,
    MQTT_PACKAGE,
    MQTT_SESSION_FIELDS,
    QUEUE_FIELDS,
    FieldKind,
    NodeField,
)
from qmf.views.cells import Cell, CellForm, Duration, Quantity
from qmf.views.internal import BROKER_PACKAGE
from qmf.views.objects import ObjectKey, ObjectView
from qmf_shell.results.result import Role, TableColumn


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
