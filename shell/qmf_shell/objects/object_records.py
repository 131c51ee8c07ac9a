"""Objects as records, for programs: what JSON, CSV, YAML and exported files have of an object, in every command.

A record has first what every object has (`COMMON_NAMES`), then its properties and statistics under their names. A value
that is called like one of the first gets a ``_`` in front. A reference is the name of the object that it refers to.
"""

from __future__ import annotations

from collections.abc import Sequence

from qmf.views.cells import Cell, Instant, Record
from qmf.views.objects import ObjectIdentity, ObjectView
from qmf_shell.objects.columns import ValueColumn
from qmf_shell.objects.value_cells import element_cells
from qmf_shell.session.context import Context

#: What every record begins with. ``object`` is the name of the object within its agent.
COMMON_NAMES = ("id", "package", "class", "agent", "broker", "object", "index", "created", "updated")
#: Further names that are not those of values.
_RESERVED = frozenset((*COMMON_NAMES, "time", "destroyed", "lost", "gone", "rates"))


def value_name(name: str) -> str:
    """The name of a value in records."""
    return f"_{name}" if name in _RESERVED else name


def object_record(context: Context, item: ObjectView) -> dict[str, Cell]:
    """The record of an object with all its values."""
    values = element_cells(context, item, complete=True)
    return {**_common(context, item), **{value_name(name): cell for (_, name), cell in values.items()}}


def record_of(context: Context, item: ObjectView, columns: Sequence[ValueColumn] | None) -> dict[str, Cell]:
    """The record of an object with the columns that the user chose; with all its values if there are none.

    Besides the columns, it has id and index; agent and broker can be chosen, too.
    """
    if columns is None:
        return object_record(context, item)
    common = _common(context, item)
    record = {name: common[name] for name in ("id", "index")}
    for column in columns:
        # Fields such as `created` are no values of the class.
        key = column.column.key if column.field.member is None else value_name(column.column.key)
        record[key] = column.cell(context, item, complete=True)
    return record


def file_record(context: Context, item: ObjectView, columns: Sequence[ValueColumn] | None) -> dict[str, Cell]:
    """The record of an object for a file: it names the object always, without its short id, which others don't know."""
    record = {**_common(context, item), **record_of(context, item, columns)}
    del record["id"]
    return record


def naming_record(context: Context, item: ObjectView) -> dict[str, Cell]:
    """What names an object, without its times and values."""
    common = _common(context, item)
    return {name: common[name] for name in COMMON_NAMES[:-2]}


def deleted_record(number: int, identity: ObjectIdentity, created: int, **times: int) -> Record:
    """The record of an object that does not exist any more, with the time of its end, e.g. ``destroyed``."""
    front: dict[str, Cell] = _identity(number, identity)
    return {**front, "created": Instant(created), **{name: Instant(at) for name, at in times.items()}}


def _common(context: Context, item: ObjectView) -> dict[str, Cell]:
    front = _identity(context.ids.assign(item.identity, item.created), item.identity)
    front["broker"] = item.identity.key.broker or item.broker
    return {**front, "created": Instant(item.created), "updated": Instant(item.updated)}


def _identity(number: int, identity: ObjectIdentity) -> dict[str, Cell]:
    key = identity.class_key
    texts = (
        key.package,
        key.name,
        identity.key.agent_name,
        identity.key.broker,
        identity.key.object_name,
        identity.index,
    )
    return dict(zip(COMMON_NAMES, (number, *texts), strict=False))
