"""Objects that `list` shows although they do not exist any more: destroyed ones, and those whose agent is gone."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import attrs

from qmf._natural_order import natural_key
from qmf.views.cells import Instant, Quantity
from qmf.views.objects import ObjectIdentity, ObjectKey
from qmf.views.text import plural
from qmf_shell.results.result import Role, Table, TableColumn
from qmf_shell.session.backend import ClassName
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_name
from qmf_shell.session.recent import LostIdentity

#: Lost objects that a list of existing ones shows at most; `list --lost` shows all.
LOST_SHOWN = 20

_LOST = (
    TableColumn("ID", Role.ID),
    TableColumn("Class", shortens=True),
    TableColumn("Index", Role.NAME, shortens=True),
    TableColumn("Created", Role.TIME, spare=True),
    TableColumn("Lost", Role.TIME),
    TableColumn("Agent", Role.FAINT, shortens=True),
)


@attrs.frozen
class EndedObject:
    """An object that does not exist any more, or is lost.

    Attributes:
        number: its short id.
        identity: how it was named.
        created, destroyed, lost: nanoseconds since 1970; 0 if unknown, or if that did not happen.
    """

    number: int
    identity: ObjectIdentity
    created: int
    destroyed: int = 0
    lost: int = 0


def destroyed_objects(context: Context, name: ClassName, existing: Collection[ObjectKey]) -> list[EndedObject]:
    """Objects of a class that have a short id and were destroyed."""
    return [
        EndedObject(entry.number, entry.identity, entry.created, destroyed=entry.deleted)
        for entry in context.ids.entries()
        if entry.deleted and entry.identity.key not in existing and class_name(entry.identity) == name
    ]


def lost_objects(context: Context, names: Collection[ClassName] | None = None) -> list[EndedObject]:
    """The lost objects of some classes, or of all, by class and index; each gets a short id."""
    found = context.lost.of(names, everything=context.everything)
    found.sort(
        key=lambda item: (class_name(item.identity), natural_key(item.identity.index), item.identity.key.agent_name)
    )
    return [_ended_object(context, item) for item in found]


def _ended_object(context: Context, item: LostIdentity) -> EndedObject:
    number = context.ids.number(item.identity.key) or context.ids.assign(item.identity, item.created)
    return EndedObject(number, item.identity, item.created, lost=item.time)


def lost_names(context: Context) -> set[ClassName]:
    """The classes of lost objects."""
    return {class_name(item.identity) for item in context.lost.of(everything=context.everything)}


def lost_table(found: Iterable[EndedObject]) -> Table:
    """Lost objects, one per row."""
    rows = tuple(
        (
            item.number,
            f"{item.identity.class_key.package}:{item.identity.class_key.name}",
            item.identity.index,
            Instant(item.created),
            Instant(item.lost),
            item.identity.key.agent_name,
        )
        for item in found
    )
    return Table(_LOST, rows, title=plural(len(rows), "lost object"), empty="No object is lost.")


def lost_count(context: Context, name: ClassName) -> Quantity:
    """How many objects of a class are lost."""
    return Quantity(len(context.lost.of({name}, everything=context.everything)))
