"""`tree`: shows objects below their parents."""

from __future__ import annotations

from collections.abc import Sequence

from qmf._natural_order import natural_key
from qmf.views.cells import Cell, Record
from qmf.views.objects import ObjectKey, ObjectView
from qmf.views.text import clean, plural
from qmf_shell.objects.lookup import find_object, matching_classes
from qmf_shell.objects.object_records import naming_record
from qmf_shell.objects.relations import children, parents
from qmf_shell.parsing.command import ALL, BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.results.result import Role, Table, TableColumn
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_name, class_names
from qmf_shell.session.own_objects import own_note

#: Children of one class that are shown below one parent by default; 0 shows all.
SHOWN = 20

_Entry = tuple[ObjectKey | str, str, str]
"""An object, or a text for those left out; the prefix of its line, and the prefix of lines below it."""

_COLUMNS = (
    TableColumn("ID", Role.ID),
    TableColumn("Object", Role.TREE, shortens=True),
    TableColumn("Below", Role.NUMBER, spare=True),
)


def run(context: Context, args: BoundArguments) -> Table:
    """Show all objects, or those below an object or below the objects of a class."""
    most = TREE.count(args, "number", SHOWN)
    names = class_names(context.object_classes())
    context.report(f"asking for {plural(len(names), 'class', 'classes')}")
    objects = context.objects(names)
    above = parents(objects)
    below = children(above)
    by_key = {item.identity.key: item for item in objects}
    text = args.text(0)
    top = most if text is None else 0
    if text is None:
        roots = [key for key in by_key if key not in above]
    elif keys := matching_classes(context, text):
        wanted = set(class_names(keys))
        roots = [key for key, item in by_key.items() if class_name(item.identity) in wanted]
    else:
        roots = [find_object(context, text).identity.key]
    rows: list[tuple[Cell, ...]] = []
    _draw(context, rows, by_key, below, _layer(by_key, roots, "", top, top=True), most)
    note = "; ".join(own_note(context.left_out_rows(names))) or None

    def records() -> list[Record]:
        # Programs get all, unless the user wants fewer.
        limit = most if "number" in args.options else 0
        first = _layer(by_key, roots, "", limit if text is None else 0, top=True)
        drawn = _draw(context, [], by_key, below, first, limit)
        return [_record(context, by_key, key, above.get(key), len(below.get(key, ()))) for key in drawn]

    return Table(
        _COLUMNS, tuple(rows), title="Objects below their parents", empty="No objects.", note=note, records=records
    )


def _record(
    context: Context, by_key: dict[ObjectKey, ObjectView], key: ObjectKey, parent: ObjectKey | None, below: int
) -> Record:
    """What programs get of an object: what names it, the id of its parent, and how many are directly below it."""
    above = None if parent is None else context.ids.assign(by_key[parent].identity, by_key[parent].created)
    return {**naming_record(context, by_key[key]), "parent": above, "below": below}


def _draw(
    context: Context,
    rows: list[tuple[Cell, ...]],
    by_key: dict[ObjectKey, ObjectView],
    below: dict[ObjectKey, list[ObjectKey]],
    roots: Sequence[_Entry],
    most: int,
) -> list[ObjectKey]:
    """Make the rows depth first; without recursion, since a chain of parents may be longer than Python's stack.

    Returns:
        the objects in them, in order.
    """
    drawn: list[ObjectKey] = []
    pending = list(reversed(roots))
    while pending:
        key, lead, inner = pending.pop()
        if isinstance(key, str):
            rows.append((None, lead + key, None))
            continue
        drawn.append(key)
        item = by_key[key]
        identity = item.identity
        number = context.ids.assign(identity, item.created)
        title = f" {identity.title}" if identity.title else ""
        under = below.get(key, [])
        rows.append(
            (number, f"{lead}{clean(f'{identity.class_key.name} {identity.index}{title}')}", len(under) or None)
        )
        pending += reversed(_layer(by_key, under, inner, most, top=False))
    return drawn


def _layer(
    by_key: dict[ObjectKey, ObjectView], keys: Sequence[ObjectKey], prefix: str, most: int, *, top: bool
) -> list[_Entry]:
    """The entries below one parent."""
    ordered = sorted(
        (key for key in keys if key in by_key),
        key=lambda key: (by_key[key].identity.class_key.name, natural_key(by_key[key].identity.index)),
    )
    shown: list[ObjectKey | str] = []
    counts: dict[str, int] = {}
    for key in ordered:
        name = by_key[key].identity.class_key.name
        counts[name] = counts.get(name, 0) + 1
        if not most or counts[name] <= most:
            shown.append(key)
        elif counts[name] == most + 1:
            left = sum(1 for other in ordered if by_key[other].identity.class_key.name == name) - most
            shown.append(f"{left:,} more of {clean(name)}")
    if top:
        return [(key, "", "") for key in shown]
    last = len(shown) - 1
    return [
        (key, prefix + ("└─ " if at == last else "├─ "), prefix + ("   " if at == last else "│  "))
        for at, key in enumerate(shown)
    ]


TREE = Command(
    name="tree",
    usage=("tree [-n COUNT] [ID|CLASS]",),
    summary="Show objects below their parents",
    help=(
        "The parent of an object is the object that its reference marked parentRef refers to. For agents that do not "
        "mark it (qpidd and agents of libqmf2), the first reference in the key is used.",
        "Of many objects of one class below one parent, or without a parent, the first 20 are shown; -n changes this.",
    ),
    examples=(
        ("tree", "everything"),
        ("tree vhost", "what is below the virtual hosts of a broker"),
        ("tree -n 0 101", "everything below one object"),
    ),
    parameters=(Parameter("ID", ParameterKind.TARGET, "an object, or all of a class"),),
    options=(Option(("-n", "--number"), "objects of one class to show; 0 means all", "COUNT"), ALL),
    handler=run,
)
