"""`refs`: the references of an object, and the references to it."""

from __future__ import annotations

from qmf._natural_order import natural_key
from qmf.views.cells import Cell
from qmf.views.text import clean, plural
from qmf_shell.objects.lookup import find_object, object_label
from qmf_shell.objects.relations import Relation, relations_of
from qmf_shell.parsing.command import BoundArguments, Command, Parameter, ParameterKind
from qmf_shell.results.result import Role, Table, TableColumn
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_names

_COLUMNS = (
    TableColumn("Direction"),
    TableColumn("ID", Role.ID),
    TableColumn("Class", wraps=True),
    TableColumn("Index", Role.NAME, shortens=True),
    TableColumn("Property"),
)


def run(context: Context, args: BoundArguments) -> Table:
    """Show references in both directions."""
    target = find_object(context, args.texts[0])
    number = context.ids.assign(target.identity, target.created)
    keys = context.object_classes()
    context.report(f"asking for {plural(len(keys), 'class', 'classes')}")
    objects = context.objects(class_names(keys), everything=True)
    found = relations_of(target.identity.key, objects, target)
    found.sort(key=_order)
    rows = tuple(_row(context, item) for item in found)
    title = f"References of {number} {object_label(target.identity)}"
    return Table(
        _COLUMNS,
        rows,
        title=title,
        empty=f"{object_label(target.identity)} has no references, in either direction.",
    )


def _order(item: Relation) -> tuple[object, ...]:
    """Those of the object in the order of its schema, then those to it by class and index."""
    if item.direction == "to" or item.other is None:
        return (0,)
    return 1, item.other.identity.class_key.name, natural_key(item.other.identity.index)


def _row(context: Context, item: Relation) -> tuple[Cell, ...]:
    if item.other is None:
        return item.direction, None, "not found", clean(item.key.object_name), item.name
    identity = item.other.identity
    index = f"{identity.index} {identity.title}".strip()
    number = context.ids.assign(identity, item.other.created)
    return item.direction, number, identity.class_key.name, index, item.name


REFS = Command(
    name="refs",
    usage=("refs ID",),
    summary="Show the references of an object, and the references to it",
    help=("to: a property of this object refers to the other. from: a property of the other refers to this one.",),
    examples=(
        ("refs 101", "in both directions"),
        ("refs queue:orders", "bindings, subscriptions and so on of a queue"),
    ),
    parameters=(Parameter("ID", ParameterKind.OBJECT, "short id, name or index", required=True),),
    handler=run,
)
