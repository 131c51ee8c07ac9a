"""`find`: searches for a text in names and values of objects, and in classes and their descriptions."""

from __future__ import annotations

from collections.abc import Iterator

from qmf.console.aio import texts_in
from qmf.schema import ClassSchema, EventSchema, Kind
from qmf.views.cells import Cell
from qmf.views.objects import ObjectView
from qmf.views.text import one_line, plural
from qmf_shell.parsing.command import ALL, BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.results.result import Role, Table, TableColumn
from qmf_shell.session.context import Context
from qmf_shell.session.object_names import class_names
from qmf_shell.session.own_objects import own_note

#: Matches shown when the user does not say how many.
SHOWN = 50
#: Longest value shown in full; of longer ones, the part around the match is shown.
_MAX_SHOWN = 60

_COLUMNS = (
    TableColumn("ID", Role.ID),
    TableColumn("Kind", Role.FAINT),
    TableColumn("Name", Role.NAME, shortens=True),
    TableColumn("Where", wraps=True),
    TableColumn("Match", wraps=True),
)


def run(context: Context, args: BoundArguments) -> Table:
    """Everything that contains the text."""
    wanted = " ".join(args.texts).lower()
    most = FIND.count(args, "number", SHOWN)
    found = list(_in_classes(context, wanted))
    names = class_names(context.object_classes())
    context.report(f"searching {plural(len(names), 'class', 'classes')}")
    first = context.objects_with(names, wanted, most)
    for item in first.objects:
        match = _in_object(item, wanted)
        if match is not None:
            number = context.ids.assign(item.identity, item.created)
            name = f"{item.identity.index} {item.identity.title}".strip()
            found.append((number, item.identity.class_key.name, name, *match))
    shown = found[:most] if most else found
    count = len(found) + (first.others or 0)
    title = plural(count, "match", "matches")
    if first.others is None:
        title, more = f"first {plural(len(shown), 'match', 'matches')}", ["there may be more; find -n 0 shows all"]
    else:
        upto = "" if first.sure else "up to "
        title = f"{upto}{title}"
        more = [f"{upto}{count - len(shown):,} more; find -n 0 shows all"] if count > len(shown) else []
    return Table(
        _COLUMNS,
        tuple(shown),
        title=title,
        empty=f"Nothing contains {wanted!r}.",
        note="; ".join([*more, *own_note(context.left_out_rows(names))]) or None,
    )


def _in_object(item: ObjectView, wanted: str) -> tuple[str, str] | None:
    """The first place where an object contains the text: its names, then its values."""
    identity = item.identity
    for name, text in (("index", identity.index), ("name", identity.title), ("object name", identity.key.object_name)):
        if wanted in text.lower():
            return name, _around(text, wanted)
    for name, value in item.values.items():
        for text in texts_in(value):
            if wanted in text.lower():
                return name, _around(text, wanted)
    return None


def _around(text: str, wanted: str) -> str:
    text = one_line(text)
    if len(text) <= _MAX_SHOWN:
        return text
    at = max(0, text.lower().find(wanted) - _MAX_SHOWN // 3)
    return ("..." if at else "") + text[at : at + _MAX_SHOWN] + ("..." if at + _MAX_SHOWN < len(text) else "")


def _in_classes(context: Context, wanted: str) -> Iterator[tuple[Cell, ...]]:
    for key in sorted(context.classes()):
        kind = "event" if key.kind is Kind.EVENT else "class"
        name = f"{key.package}:{key.name}"
        if wanted in name.lower():
            yield None, kind, name, "name", name
            continue
        schema = context.backend.schema(key)
        for where, text in _parts(schema):
            if wanted in text.lower():
                yield None, kind, name, where, _around(text, wanted)
                break


def _parts(schema: ClassSchema | EventSchema) -> Iterator[tuple[str, str]]:
    yield "description", schema.desc or ""
    if isinstance(schema, EventSchema):
        for argument in schema.arguments:
            yield f"argument {argument.name}", f"{argument.name} {argument.desc or ''}"
        return
    for item in schema.properties:
        yield item.name, f"{item.name} {item.desc or ''}"
    for statistic in schema.statistics:
        yield statistic.name, f"{statistic.name} {statistic.desc or ''}"
    for method in schema.methods:
        yield f"method {method.name}", f"{method.name} {method.desc or ''}"


FIND = Command(
    name="find",
    usage=("find [-n COUNT] TEXT",),
    summary="Search for a text in objects, values, classes and descriptions",
    help=(
        "Case is ignored. For each object the first place that contains the text is shown: its index, its name, then "
        "its values. Objects get a short id.",
    ),
    examples=(("find orders", "everything that contains orders"), ("find -n 0 /home", "without a limit")),
    parameters=(Parameter("TEXT", ParameterKind.TEXT, "what to search for", required=True, repeated=True),),
    options=(Option(("-n", "--number"), "how many to show; 0 means all", "COUNT"), ALL),
    handler=run,
)
