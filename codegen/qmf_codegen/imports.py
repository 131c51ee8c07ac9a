"""What each generated module imports: exactly what it uses, in the order of isort."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Collection, Mapping, Sequence, Set

from qmf_codegen.filters.layout import Code, Group, lay_out
from qmf_codegen.filters.text import LINE

#: Modules and the names that may come from them, in isort's order.
Table = Mapping[str, Sequence[str]]

_STANDARD: Table = {
    "collections.abc": ("Mapping", "Sequence"),
    "typing": ("ClassVar",),
    "uuid": ("UUID",),
}

#: Imports of agent modules.
AGENT: Table = {
    "qmf.agent": (
        "Attribute",
        "CounterAttribute",
        "Event",
        "HiLoAttribute",
        "ManagedObject",
        "MaybeAwaitable",
        "MmaAttribute",
        "ObjectId",
        "Ref",
        "ReferenceAttribute",
        "Result",
    ),
    "qmf.schema": ("ClassSchema", "EventSchema"),
}

#: Imports of console modules.
CONSOLE: Table = {
    "qmf.console.typed": (
        "UNSET",
        "Attribute",
        "HiLoAttribute",
        "MmaAttribute",
        "ObjectId",
        "Ref",
        "TypedEvent",
        "TypedObject",
        "TypedResult",
        "Unset",
    ),
    "qmf.schema": ("ClassSchema", "EventSchema"),
}

#: Imports of schema modules.
SCHEMA: Table = {
    "qmf.schema": (
        "TYPES",
        "Access",
        "Argument",
        "ClassSchema",
        "Direction",
        "EventSchema",
        "Method",
        "Property",
        "Reference",
        "Schema",
        "Severity",
        "Statistic",
        "parse_value",
    ),
}

#: Every name that a module with names of the schema's author may import: those names must evade it.
IMPORTED = frozenset(name for table in (_STANDARD, AGENT, CONSOLE) for names in table.values() for name in names) | {
    "attrs",
    "schema",
}


def import_lines(body: str, own: Table) -> str:
    """The import statements that a module with this body needs, sections parted by blank lines, `__future__` left out.

    Args:
        body: the code below the imports.
        own: what it may import of this project.
    """
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    sections = (
        _section(_STANDARD, used),
        "import attrs" if "attrs" in used else "",
        _section(own, used),
        "from . import schema" if "schema" in used else "",
    )
    return "\n\n".join(filter(None, sections))


def _section(table: Table, used: Set[str]) -> str:
    lines = (_from(module, [name for name in names if name in used]) for module, names in table.items())
    return "\n".join(filter(None, lines))


def _from(module: str, names: Sequence[str]) -> str:
    if not names:
        return ""
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= LINE:
        return line
    group = Group("(", tuple(("", Code(name)) for name in names), ")")
    return f"from {module} import {lay_out(group, explode=True)}"


def exports(names: Collection[str]) -> str:
    """The statement that sets `__all__`, sorted like isort sorts: constants, then classes; numbers by value."""
    if not names:
        return "__all__: list[str] = []"
    group = Group("[", tuple(("", Code(f'"{name}"')) for name in sorted(names, key=_sort_key)), "]")
    return f"__all__ = {lay_out(group, before=len('__all__ = '))}"


def _sort_key(name: str) -> tuple[bool, object]:
    is_constant = len(name) > 1 and name.isupper()
    return not is_constant, functools.cmp_to_key(_natural)(name)


def _natural(left: str, right: str) -> int:
    """Compare like the natural order of the linter: numbers within names by value, unless they begin with zero."""
    pairs = zip(re.findall(r"[0-9]+|[^0-9]", left), re.findall(r"[0-9]+|[^0-9]", right), strict=False)
    for a, b in pairs:
        if a == b:
            continue
        if a.isdigit() and b.isdigit() and a[0] != "0" and b[0] != "0":
            return -1 if int(a) < int(b) else 1
        return -1 if a < b else 1
    return -1 if len(left) < len(right) else int(left != right)
