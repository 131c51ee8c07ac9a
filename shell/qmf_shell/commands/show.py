"""`show`: all values of one or more objects."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from qmf.views.objects import ObjectView
from qmf.views.text import clean, plural
from qmf_shell.objects.lookup import matching_classes
from qmf_shell.objects.object_records import object_record
from qmf_shell.objects.selecting import find_objects, select_objects
from qmf_shell.objects.value_cells import element_rows
from qmf_shell.parsing.command import ALL, EXACT, BoundArguments, Command, Parameter, ParameterKind
from qmf_shell.parsing.selection import parse_selection
from qmf_shell.results.result import Notice, Result, Role, Table, TableColumn, in_one
from qmf_shell.session.backend import ClassName
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_name, class_names


def run(context: Context, args: BoundArguments) -> Result:
    """Show the objects that the user named, or those of a class."""
    keys = matching_classes(context, args.texts[0])
    if not keys:
        return _show_targets(find_objects(context, args.texts), context, args)
    selection = parse_selection(args.words[1:])
    found = [item for chosen in select_objects(context, keys, selection) for item in chosen.shown]
    if not found:
        lost = len(context.lost.of(class_names(keys), everything=context.everything))
        note = f" {plural(lost, 'object')} of an agent that is gone: list --lost" if lost else ""
        return Notice(f"No objects of {clean(args.texts[0])}.{note}")
    return _show_targets(found, context, args)


def _show_targets(targets: Sequence[ObjectView], context: Context, args: BoundArguments) -> Result:
    return show_objects(targets, context, exact="exact" in args.options)


def show_objects(targets: Sequence[ObjectView], context: Context, *, exact: bool = False) -> Result:
    """Objects side by side, one table per class, in the order in which the classes were named.

    Args:
        exact: numbers with every digit.
    """
    targets = list({item.identity.key: item for item in targets}.values())
    groups: dict[ClassName, list[ObjectView]] = {}
    for item in targets:
        groups.setdefault(class_name(item.identity), []).append(item)
    # All short ids are assigned before the first reference is shown, so that references show them where possible.
    numbers = {item.identity.key: context.ids.assign(item.identity, item.created) for item in targets}
    tables = [
        attrs.evolve(_table(context, group, [numbers[item.identity.key] for item in group]), exact=exact)
        for group in groups.values()
    ]
    return in_one(tables)


def _table(context: Context, group: Sequence[ObjectView], numbers: Sequence[int]) -> Table:
    columns = (
        TableColumn("Type", Role.FAINT, spare=True),
        TableColumn("Element", Role.NAME),
        *(TableColumn(str(number), Role.TEXT, wraps=True) for number in numbers),
    )
    rows = tuple((kind, name, *cells) for kind, name, cells in element_rows(context, group))
    identity = group[0].identity
    title = f"{identity.class_key.package}:{identity.class_key.name}"
    if len(group) == 1:
        title = f"{title} {identity.index}".rstrip()
    return Table(columns, rows, title=title, records=lambda: [object_record(context, item) for item in group])


SHOW = Command(
    name="show",
    usage=("show ID...", "show CLASS [active] [ID...] [where CONDITION] [sort [by] NAME [desc]] [limit COUNT]"),
    summary="Show all values of an object",
    help=(
        "Several objects are shown side by side. An object is written as its short id from `list`, its full name, "
        "class:index, or only its index if no other object has the same. 104-110 means all objects with a short id in "
        "that range. A short id takes precedence over an index that is the same number, and a class over an object of "
        "the same name: then write class:index.",
        "With a class, it shows all its objects, or those that the rest of the line selects as in `list`.",
        "Large numbers are shortened, such as 12.5 MB; -e (--exact) shows every digit.",
        "config marks properties, inst marks statistics. References are shown with the short id of the object if it "
        "has one.",
    ),
    examples=(
        ("show 101", "the object that `list` called 101"),
        ("show 101-103 107", "several of them"),
        ("show /", "the filesystem mounted there"),
        ("show process:1", "process 1"),
        ("show memory", "all objects of a class"),
    ),
    parameters=(
        Parameter("ID", ParameterKind.TARGET, "short id, range, name, index, or a class", required=True),
        Parameter("SELECTION", ParameterKind.SELECTION, "more ids; of a class, a condition and so on", repeated=True),
    ),
    options=(EXACT, ALL),
    handler=run,
)
