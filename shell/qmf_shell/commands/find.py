"""`find`: a text anywhere: in names of objects and in their values, in classes and what they are made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from qmf.schema import ClassSchema, EventSchema, Kind
from qmf_shell.objects.lookup import class_names
from qmf_shell.parsing.command import BoundArguments, Command, Option, Parameter, ParameterKind
from qmf_shell.parsing.option_numbers import count_option
from qmf_shell.results.result import Cell, Column, Role, Table
from qmf_shell.session.backend import ObjectKey, ObjectRecord
from qmf_shell.session.context import Context
from qmf_shell.text import one_line, plural

#: Matches shown when the user does not say how many.
SHOWN = 50
#: Longest value shown in full; of longer ones the part around the match.
_ROOM = 60

_COLUMNS = (
    Column("ID", Role.ID),
    Column("Kind", Role.FAINT),
    Column("Name", Role.NAME, wraps=True),
    Column("Where", wraps=True),
    Column("Match", wraps=True),
)


def run(context: Context, args: BoundArguments) -> Table:
    """Everything that has the text."""
    wanted = " ".join(args.texts).lower()
    most = count_option(FIND, args, "number", SHOWN)
    found = list(_in_classes(context, wanted))
    names = class_names(sorted(key for key in context.classes() if key.kind is Kind.DATA))
    context.report(f"searching {plural(len(names), 'class', 'classes')}")
    for item in context.objects(names):
        match = _in_object(item, wanted)
        if match is not None:
            number = context.ids.assign(item.identity, item.created)
            name = f"{item.identity.index} {item.identity.title}".strip()
            found.append((number, item.identity.class_key.name, name, *match))
    shown = found[:most] if most else found
    left = len(found) - len(shown)
    return Table(
        _COLUMNS,
        tuple(shown),
        title=plural(len(found), "match", "matches"),
        empty=f"Nothing has {wanted!r} in it.",
        note=f"{left:,} more; find -n 0 shows all" if left else None,
    )


def _in_object(item: ObjectRecord, wanted: str) -> tuple[str, str] | None:
    """Where an object has the text: in its names first, then in its values."""
    identity = item.identity
    for name, text in (("index", identity.index), ("name", identity.title), ("object name", identity.key.name)):
        if wanted in text.lower():
            return name, _around(text, wanted)
    for name, value in item.values.items():
        for text in _texts(value):
            if wanted in text.lower():
                return name, _around(text, wanted)
    return None


def _texts(value: object) -> Iterator[str]:
    """The texts in a value; numbers count as what they look like."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, ObjectKey):
        yield value.name
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from _texts(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner)
    elif value is not None:
        yield str(value)


def _around(text: str, wanted: str) -> str:
    text = one_line(text)
    if len(text) <= _ROOM:
        return text
    at = max(0, text.lower().find(wanted) - _ROOM // 3)
    return ("..." if at else "") + text[at : at + _ROOM] + ("..." if at + _ROOM < len(text) else "")


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
    summary="Look for a text in objects, values, classes and descriptions",
    help=(
        "Upper and lower case are the same. Of each object it tells the first place that has the text: its index, its "
        "name, then its values. Objects get a short id.",
    ),
    examples=(("find orders", "everything that has to do with orders"), ("find -n 0 /home", "without a limit")),
    parameters=(Parameter("TEXT", ParameterKind.TEXT, "what to look for", required=True, many=True),),
    options=(Option(("-n", "--number"), "how many to show; 0 means all", "COUNT"),),
    handler=run,
)
