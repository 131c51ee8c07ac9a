"""Objects and events of a broker that agents and consoles of this project created for themselves, as conditions in SQL.

The same ones as of `qmf.views.internal`, by the same marks.
"""

from __future__ import annotations

from collections.abc import Iterable

from qmf._marks import OWN_CONNECTION, OWN_LINK
from qmf.pipeline.duckdb_queries import quoted, text
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.report.source import ROWS, FileQuery, ReportSource
from qmf.views.internal import BROKER_PACKAGE, CONNECTION, EVENT_NAMES, EVENT_PROPERTIES, SESSION, UNSUBSCRIBE

#: An own name, alone or as a part of the name of a binding or subscription.
_NAME = rf"(^|[:,_./]){OWN_LINK}"


def own_connections(source: ReportSource, first_ns: int, last_ns: int) -> list[str]:
    """The names of the connections of agents and consoles."""
    found: set[str] = set()
    for item in source.classes:
        version = item.version
        columns = {column.name for column in version.columns}
        if (version.package, version.name) == (BROKER_PACKAGE, CONNECTION) and "remoteProperties" in columns:
            rows = source.rows(RowKind.OBJECTS, first_ns, last_ns, version)
            if rows is not None:
                mark = text(f'"{OWN_CONNECTION}":')
                where = f"_properties and contains(remoteProperties, {mark})"
                query = FileQuery(rows, f"select distinct _object as object from {ROWS} where {where}")
                made = source.made([query], {"object": "varchar"})
                found.update(row[0] for row in source.query(f"from {made}"))
    return sorted(name for name in found if name is not None)


def own_object(package: str, name: str, connections: Iterable[str]) -> str | None:
    """A condition for the own objects of a class; None for a class without such.

    Args:
        package, name: of the class.
        connections: names of own connections.
    """
    if package != BROKER_PACKAGE:
        return None
    parts = [f"regexp_matches(_object, {text(_NAME)})"]
    keys = [connection.partition(":connection:")[2] for connection in connections]
    if name in (CONNECTION, SESSION) and keys:
        # The name of a session contains that of its connection.
        parts += [f"contains(_object, {text(key)})" for key in keys if key]
    return f"({' or '.join(parts)})"


def own_event(package: str, name: str, columns: Iterable[str]) -> str | None:
    """A condition for the own events of a class with these columns; None for a class without such."""
    if package != BROKER_PACKAGE:
        return None
    known = set(columns)
    names = [column for column in EVENT_NAMES if column in known]
    parts = [f"regexp_matches({quoted(column)}, {text(_NAME)})" for column in names]
    if EVENT_PROPERTIES in known:
        mark = text(f'"{OWN_CONNECTION}":')
        parts.append(f"contains(cast({quoted(EVENT_PROPERTIES)} as varchar), {mark})")
    if name == UNSUBSCRIBE and names:
        parts.append("(" + " and ".join(f"coalesce({quoted(column)}, '') = ''" for column in names) + ")")
    return f"coalesce({' or '.join(parts)}, false)" if parts else None
