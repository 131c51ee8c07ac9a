"""`export`: writes the objects of a class to a file for other programs."""

from __future__ import annotations

from pathlib import Path

from qmf.views.text import listing, plural
from qmf_shell.objects.lookup import find_classes
from qmf_shell.objects.selecting import select_objects
from qmf_shell.parsing.command import ALL, BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.parsing.selection import parse_selection
from qmf_shell.results.result import Notice, NoticeLevel
from qmf_shell.session.context import Context

#: Suffixes of the formats that can be written, see `qmf_shell.objects.export`.
FORMATS = (".csv", ".json", ".jsonl", ".yaml", ".parquet")


def run(context: Context, args: BoundArguments) -> Notice:
    """Request the objects, and write them."""
    path = Path(args.texts[1]).expanduser()
    if path.suffix.lower() not in FORMATS:
        raise EXPORT.misuse(f"the file's name must end in {listing(FORMATS)}, not {path.name!r}")
    if path.exists() and "force" not in args.options:
        raise EXPORT.misuse(f"{path} exists already: --force overwrites it")
    keys = find_classes(context.classes(), args.texts[0])
    selection = parse_selection(args.words[2:])
    selected = select_objects(context, keys, selection)
    # Imported here: most sessions export nothing.
    from qmf_shell.objects.export import write_file

    context.report(f"writing {path.name}")
    count = write_file(context, path, selected, selection.columns)
    return Notice(f"{plural(count, 'object')} written to {path}", NoticeLevel.GOOD)


EXPORT = Command(
    name="export",
    usage=("export [--force] CLASS FILE [where CONDITION] [sort [by] NAME [desc]] [columns NAME...] [limit COUNT]",),
    summary="Write the objects of a class to a file: .csv, .json, .jsonl, .yaml or .parquet",
    help=(
        "One row per object, with agent, index, times and every value, as `list CLASS` prints them as CSV, JSON or "
        "YAML. .json is one list, .jsonl has one object per line. Parquet has the values of the wire: times are "
        "nanoseconds since 1970. It needs pyarrow.",
    ),
    examples=(
        ("export queue queues.csv", "all queues"),
        ("export process busy.json where cpuPercent > 10 sort cpuPercent desc", "some processes"),
    ),
    parameters=(
        Parameter("CLASS", ParameterKind.CLASS, "a class", required=True),
        Parameter("FILE", ParameterKind.FILE, "the file; its suffix determines the format", required=True),
        Parameter("SELECTION", ParameterKind.SELECTION, "which objects, in which order", repeated=True),
    ),
    options=(Option(("-f", "--force"), "overwrite an existing file"), ALL),
    handler=run,
)
