"""`columns`: which values of a class are shown by default."""

from __future__ import annotations

import re

from qmf.views.text import clean
from qmf_shell.objects.columns import ALL_COLUMNS
from qmf_shell.objects.lookup import find_classes
from qmf_shell.objects.selecting import classes_with
from qmf_shell.parsing.command import BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.results.result import Notice, NoticeLevel, Result, Role, Table, TableColumn
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_names

_COLUMNS = (
    TableColumn("Package", Role.FAINT, shortens=True, spare=True),
    TableColumn("Class", Role.NAME),
    TableColumn("Columns", wraps=True),
)


def run(context: Context, args: BoundArguments) -> Result:
    """Show the choices, or make or forget one."""
    chosen = context.columns.chosen
    if not args.words:
        rows = tuple((*name, ", ".join(names)) for name, names in sorted(chosen.items()))
        return Table(_COLUMNS, rows, title="Columns chosen for classes", empty="No columns are chosen for any class.")
    keys = find_classes(context.classes(), args.texts[0])
    names = class_names(keys)
    wanted = [text for word in args.texts[1:] for text in re.split(r"[,\s]+", word) if text]
    if "delete" in args.options:
        if wanted:
            raise COLUMNS.misuse("-d takes no columns", 1)
        for name in names:
            context.columns.choose(name, ())
        return Notice(f"{clean(args.texts[0])} has its default columns again", NoticeLevel.GOOD)
    if wanted:
        keys = classes_with(context, keys, [text for text in wanted if text.lower() not in ALL_COLUMNS])
        for name in class_names(keys):
            context.columns.choose(name, tuple(dict.fromkeys(wanted)))
    rows = tuple((*name, ", ".join(found)) for name in names if (found := context.columns.names(name)))
    return Table(_COLUMNS, rows, empty=f"{clean(args.texts[0])} has its default columns: the statistics that matter.")


COLUMNS = Command(
    name="columns",
    usage=("columns [CLASS [NAME...]]", "columns -d CLASS"),
    summary="Choose the values of a class that are shown by default",
    help=(
        "`list` and `watch` show them unless the line has columns of its own. The choice is kept for later sessions, "
        "in $XDG_STATE_HOME/qmf-shell/columns.json. Without a choice, the statistics that matter are shown: first "
        "those that differ between the objects, as many as there is room for.",
        "Output as JSON, CSV or YAML always has all values.",
    ),
    examples=(
        ("columns queue msgDepth, byteDepth, consumerCount", "what `list queue` shows from now on"),
        ("columns queue all", "everything"),
        ("columns -d queue", "the default columns again"),
        ("columns", "all choices"),
    ),
    parameters=(
        Parameter("CLASS", ParameterKind.CLASS, "a class, or package:class"),
        Parameter("NAME", ParameterKind.COLUMN, "a value of the class; all for everything", repeated=True),
    ),
    options=(Option(("-d", "--delete"), "forget the choice"),),
    handler=run,
)
