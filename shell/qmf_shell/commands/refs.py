"""`refs`: the references of an object, and the references to it."""

from __future__ import annotations

from qmf._natural_order import natural_key
from qmf.schema import Kind
from qmf.views.cells import Cell
from qmf.views.objects import ObjectKey, ObjectView
from qmf.views.text import clean, plural
from qmf_shell.objects.lookup import find_object, object_label
from qmf_shell.objects.relations import references, referring
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
    keys = [key for key in context.classes() if key.kind is Kind.DATA]
    context.report(f"asking for {plural(len(keys), 'class', 'classes')}")
    objects = context.objects(class_names(sorted(keys)), everything=True)
    by_key = {item.identity.key: item for item in objects}
    rows = [_row(context, "to", item.name, item.target, by_key.get(item.target)) for item in references(target)]
    back = referring(objects, target.identity.key)
    back.sort(key=lambda item: (item.owner.identity.class_key.name, natural_key(item.owner.identity.index)))
    rows += [_row(context, "from", item.name, item.owner.identity.key, item.owner) for item in back]
    title = f"References of {number} {object_label(target.identity)}"
    return Table(
        _COLUMNS,
        tuple(rows),
        title=title,
        empty=f"{object_label(target.identity)} has no references, in either direction.",
    )


def _row(context: Context, direction: str, name: str, key: ObjectKey, item: ObjectView | None) -> tuple[Cell, ...]:
    if item is None:
        return direction, None, "not found", clean(key.object_name), name
    identity = item.identity
    index = f"{identity.index} {identity.title}".strip()
    return direction, context.ids.assign(identity, item.created), identity.class_key.name, index, name


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
