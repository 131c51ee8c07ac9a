"""Objects and events of a broker that agents and consoles of this project created for themselves, as conditions in SQL.

They have the marks of `qmf.bus.marks`: names of links and of the queues made for them, and a property of connections.
"""

from __future__ import annotations

from collections.abc import Iterable

from qmf.bus.marks import OWN_CONNECTION
from qmf.pipeline.duckdb_queries import quoted, text
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.report.source import ReportSource

BROKER = "org.apache.qpid.broker"

#: An own name, alone or as a part of the name of a binding or subscription.
_NAME = r"(^|[:,_./])qmf-(in|out)-[0-9a-f]"
#: The end of a link without a name is reported as one of nobody.
_UNSUBSCRIBE = "unsubscribe"


def own_connections(source: ReportSource, first_ns: int, last_ns: int) -> list[str]:
    """The names of the connections of agents and consoles."""
    found: set[str] = set()
    for item in source.classes:
        version = item.version
        columns = {column.name for column in version.columns}
        if (version.package, version.name) == (BROKER, "connection") and "remoteProperties" in columns:
            rows = source.rows(RowKind.OBJECTS, first_ns, last_ns, version)
            if rows is not None:
                mark = text(f'"{OWN_CONNECTION}":')
                found.update(
                    row[0]
                    for row in source.query(
                        f"select distinct _object from {rows} where _properties and contains(remoteProperties, {mark})"
                    )
                )
    return sorted(name for name in found if name is not None)


def own_object(package: str, name: str, connections: Iterable[str]) -> str | None:
    """A condition for the own objects of a class; None for a class without such.

    Args:
        package, name: of the class.
        connections: names of own connections.
    """
    if package != BROKER:
        return None
    parts = [f"regexp_matches(_object, {text(_NAME)})"]
    keys = [connection.partition(":connection:")[2] for connection in connections]
    if name in ("connection", "session") and keys:
        # The name of a session contains that of its connection.
        parts += [f"contains(_object, {text(key)})" for key in keys if key]
    return f"({' or '.join(parts)})"


def own_event(package: str, name: str, columns: Iterable[str]) -> str | None:
    """A condition for the own events of a class with these columns; None for a class without such."""
    if package != BROKER:
        return None
    known = set(columns)
    names = [column for column in ("qName", "dest") if column in known]
    parts = [f"regexp_matches({quoted(column)}, {text(_NAME)})" for column in names]
    if "properties" in known:
        mark = text(f'"{OWN_CONNECTION}":')
        parts.append(f"contains(cast({quoted('properties')} as varchar), {mark})")
    if name == _UNSUBSCRIBE and names:
        parts.append("(" + " and ".join(f"coalesce({quoted(column)}, '') = ''" for column in names) + ")")
    return f"coalesce({' or '.join(parts)}, false)" if parts else None
