"""What generated modules may import; the formatter removes what a module does not use."""

from __future__ import annotations

#: Modules and the names, joined by spaces, that may come from them.
ImportTable = dict[str, str]

_VALUES: ImportTable = {
    "collections.abc": "Mapping Sequence",
    "typing": "ClassVar",
    "uuid": "UUID",
    "qmf.schema": "ClassSchema EventSchema",
    ".": "schema",
}

#: Imports of agent modules, besides `attrs`.
AGENT: ImportTable = _VALUES | {
    "qmf.agent": (
        "Attribute CounterAttribute Event HiLoAttribute ManagedObject MaybeAwaitable MmaAttribute ObjectId Ref"
        " ReferenceAttribute Result"
    ),
}

#: Imports of console modules, besides `attrs`.
CONSOLE: ImportTable = _VALUES | {
    "qmf.console.typed": (
        "UNSET Attribute HiLoAttribute MmaAttribute ObjectId Ref TypedEvent TypedObject TypedResult Unset"
    ),
}

#: Imports of schema modules.
SCHEMA: ImportTable = {
    "uuid": "UUID",
    "qmf.schema": (
        "TYPES Access Argument ClassSchema Direction EventSchema Method Property Reference Schema Severity Statistic"
        " parse_value"
    ),
}

#: Every name that agent and console modules may import: names from a schema must differ from them.
IMPORTED = frozenset(name for table in (AGENT, CONSOLE) for names in table.values() for name in names.split()) | {
    "attrs"
}


def import_statements(table: ImportTable) -> str:
    """The import statements of a module, `attrs` and `__future__` left out."""
    return "\n".join(f"from {module} import {', '.join(names.split())}" for module, names in table.items())
