"""`schema`: lists the classes, or describes one."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.schema import Access, Argument, ClassKey, ClassSchema, EventSchema, Method, Property, format_value
from qmf.schema.documentation import bounds
from qmf.views.cells import Cell
from qmf.views.conditions.words import quote
from qmf.views.text import one_line, plural
from qmf_shell.objects.lookup import find_classes
from qmf_shell.objects.schema_text import DIRECTIONS, schema_tree
from qmf_shell.parsing.command import BoundArguments, Command, Parameter, ParameterKind
from qmf_shell.results.result import Notice, Result, ResultGroup, Role, Table, TableColumn
from qmf_shell.session.context import Context

_CLASSES = (
    TableColumn("Package", Role.FAINT),
    TableColumn("Name", Role.NAME),
    TableColumn("Kind"),
    TableColumn("Properties", Role.NUMBER),
    TableColumn("Statistics", Role.NUMBER),
    TableColumn("Methods", Role.NUMBER),
)
_DESCRIPTION = TableColumn("Description", wraps=True)
_ELEMENTS = (
    TableColumn("Element", Role.NAME),
    TableColumn("Type"),
    TableColumn("Access"),
    TableColumn("Unit"),
    TableColumn("Notes", wraps=True),
    _DESCRIPTION,
)
_STATISTICS = (TableColumn("Element", Role.NAME), TableColumn("Type"), TableColumn("Unit"), _DESCRIPTION)
_ARGUMENTS = (
    TableColumn("Argument", Role.NAME),
    TableColumn("Type"),
    TableColumn("Direction"),
    TableColumn("Unit"),
    TableColumn("Notes", wraps=True),
    _DESCRIPTION,
)
_ACCESS = {Access.RC: "ReadCreate", Access.RW: "ReadWrite", Access.RO: "ReadOnly"}


def run(context: Context, args: BoundArguments) -> Result:
    """List all classes, or describe one."""
    name = args.text(0)
    existing = context.classes()
    if name is None:
        return _summary(context, existing)
    keys = find_classes(existing, name, kind=None)
    parts: list[Result] = []
    schemas = [context.backend.schema(key) for key in keys]
    for schema in schemas:
        parts += _class(schema) if isinstance(schema, ClassSchema) else _event(schema)
    return ResultGroup(tuple(parts), data=[schema_tree(schema) for schema in schemas])


def _summary(context: Context, keys: Sequence[ClassKey]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for key in sorted(keys):
        schema = context.backend.schema(key)
        if isinstance(schema, ClassSchema):
            counts = len(schema.properties), len(schema.statistics), len(schema.methods)
            rows.append((key.package, key.name, "object", *counts))
        else:
            rows.append((key.package, key.name, "event", len(schema.arguments), None, None))
    return Table(_CLASSES, tuple(rows), title="Classes", empty="No classes yet: no agent has sent one.")


def _class(schema: ClassSchema) -> list[Result]:
    parts: list[Result] = [_heading("Class", schema)]
    if schema.properties:
        parts.append(
            Table(
                _ELEMENTS,
                tuple(
                    (item.name, item.type.name, _ACCESS[item.access], item.unit or "", _notes(item), _text(item.desc))
                    for item in schema.properties
                ),
                title="Properties",
            )
        )
    if schema.statistics:
        parts.append(
            Table(
                _STATISTICS,
                tuple((item.name, item.type.name, item.unit or "", _text(item.desc)) for item in schema.statistics),
                title="Statistics",
            )
        )
    parts += [_method(item) for item in schema.methods]
    return parts


def _event(schema: EventSchema) -> list[Result]:
    heading = _heading("Event", schema)
    severity = "" if schema.severity is None else f"\nDefault severity: {schema.severity.schema_name}"
    rows = tuple((item.name, item.type.name, item.unit or "", _text(item.desc)) for item in schema.arguments)
    columns = (TableColumn("Argument", Role.NAME), TableColumn("Type"), TableColumn("Unit"), _DESCRIPTION)
    return [Notice(heading.text + severity), Table(columns, rows, title="Arguments", empty="No arguments.")]


def _heading(kind: str, schema: ClassSchema | EventSchema) -> Notice:
    version = f" ({schema.hash})" if schema.hash else ""
    text = f"{kind} {schema.package}:{schema.name}{version}"
    return Notice(f"{text}\n{_text(schema.desc)}" if schema.desc else text)


def _method(item: Method) -> Table:
    about = f": {_text(item.desc)}" if item.desc else ""
    rows = tuple(
        (arg.name, arg.type.name, DIRECTIONS[arg.direction], arg.unit or "", _argument_notes(arg), _text(arg.desc))
        for arg in item.arguments
    )
    title = f"Method {item.name}{about}"
    return Table(_ARGUMENTS, rows, title=title, empty=f"{title} ({plural(0, 'argument')})")


def _notes(item: Property) -> str:
    words = [word for word, applies in (("index", item.index), ("optional", item.optional)) if applies]
    if item.references:
        words.append(f"refers to {item.references}")
    return ", ".join([*words, *bounds(item)])


def _argument_notes(item: Argument) -> str:
    words = [] if item.default is None else [f"default {quote(format_value(item.default))}"]
    if item.references:
        words.append(f"refers to {item.references}")
    return ", ".join([*words, *bounds(item)])


def _text(text: str | None) -> str:
    return one_line(text) if text else ""


SCHEMA = Command(
    name="schema",
    usage=("schema [CLASS]",),
    summary="List all classes and events, or describe one",
    help=(
        "Without arguments, it lists every class of objects and events. For an event, Properties is its number of "
        "arguments.",
        "With a class, it shows properties, statistics and methods with types, units, access and descriptions. If a "
        "class has several versions, it shows all of them.",
    ),
    examples=(("schema", "every class"), ("schema filesystem", "properties, statistics and methods of a filesystem")),
    parameters=(Parameter("CLASS", ParameterKind.ANY_CLASS, "a class or event class, or package:class"),),
    handler=run,
)
