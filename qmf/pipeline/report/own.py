"""Objects and events of a broker that agents and consoles of this project created for themselves, as conditions in SQL.

The same ones as of `qmf.views.internal`, by the same marks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from qmf._marks import OWN_CONNECTION, OWN_LINK
from qmf.pipeline.duckdb_queries import text
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.report.source import ROWS, FileQueries, ReportSource
from qmf.views.internal import BROKER_PACKAGE, CONNECTION, EVENT_NAMES, EVENT_PROPERTIES, SESSION, UNSUBSCRIBE

#: An own name, alone or as a part of the name of a binding or subscription.
_NAME = rf"(^|[:,_./]){OWN_LINK}"

_OWN = "own"


def own_connections(source: ReportSource, first_ns: int, last_ns: int) -> list[str]:
    """The names of the connections of agents and consoles."""
    queries: list[FileQueries] = []
    for item in source.classes:
        version = item.version
        columns = {column.name for column in version.columns}
        if (version.package, version.name) == (BROKER_PACKAGE, CONNECTION) and "remoteProperties" in columns:
            rows = source.rows(RowKind.OBJECTS, first_ns, last_ns, version)
            if rows is not None:
                mark = text(f'"{OWN_CONNECTION}":')
                where = f"_properties and contains(remoteProperties, {mark})"
                sql = f"select distinct _object as object from {ROWS} where {where}"
                queries.append(FileQueries(rows, {_OWN: sql}))
    if not queries:
        return []
    made = source.tables_of_queries(queries, {_OWN: {"object": "varchar"}})
    found = source.query(f"select distinct object from {made[_OWN]} where object is not null order by object")
    return [name for (name,) in found]


def own_object(package: str, name: str, connections: Iterable[str], column: str = "_object") -> str | None:
    """A condition for the own objects of a class; None for a class without such.

    Args:
        package, name: of the class.
        connections: names of own connections.
        column: with the names of objects.
    """
    if package != BROKER_PACKAGE:
        return None
    parts = [f"regexp_matches({column}, {text(_NAME)})"]
    keys = [connection.partition(":connection:")[2] for connection in connections]
    if name in (CONNECTION, SESSION) and keys:
        # The name of a session contains that of its connection.
        parts += [f"contains({column}, {text(key)})" for key in keys if key]
    return f"({' or '.join(parts)})"


def own_event(package: str, name: str, columns: Mapping[str, str]) -> str | None:
    """A condition for the own events of a class; None for a class without such.

    Args:
        package, name: of the class.
        columns: the arguments as SQL, by name.
    """
    if package != BROKER_PACKAGE:
        return None
    names = [columns[column] for column in EVENT_NAMES if column in columns]
    parts = [f"regexp_matches({column}, {text(_NAME)})" for column in names]
    if EVENT_PROPERTIES in columns:
        mark = text(f'"{OWN_CONNECTION}":')
        parts.append(f"contains(cast({columns[EVENT_PROPERTIES]} as varchar), {mark})")
    if name == UNSUBSCRIBE and names:
        parts.append("(" + " and ".join(f"coalesce({column}, '') = ''" for column in names) + ")")
    return f"coalesce({' or '.join(parts)}, false)" if parts else None
