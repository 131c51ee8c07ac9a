"""The job `audit` over a whole lake, in this process: neither Spark nor Java is needed.

::

    OUT/events, OUT/calls                     by day
    OUT/availability, OUT/lives, OUT/history

Each table is replaced as a whole, by one commit.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from typing import Any

from qmf.pipeline.audit.options import AuditOptions
from qmf.pipeline.audit.state import AuditState
from qmf.pipeline.duckdb_queries import connect, duckdb_errors
from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.row_columns import DATE

#: The tables that have days, and the day of a row as SQL.
DATED, DAY = ("events", "calls"), "strftime(time, '%Y-%m-%d')"

#: The order of the rows of tables.
_ORDERS = {"availability": "agent, start_ns", "lives": "package, class, object, created_ns", "calls": "time_ns"}


def audit_lake(options: AuditOptions, print_line: Callable[[str], None]) -> dict[str, int]:
    """Audit a whole lake.

    Args:
        options: of the audit.
        print_line: called for each table that is written.

    Returns:
        rows of each table.

    Raises:
        LakeError: there is no lake, a file cannot be read, or a table cannot be written.
        MissingExtraError: DuckDB or deltalake is not installed.
    """
    lake = DeltaLake(options.lake, options.storage)
    lake.class_versions()  # refuses what is no lake
    counts: dict[str, int] = {}
    try:
        with duckdb_errors(options.lake), closing(connect()) as connection:
            connection.execute("set timezone = 'UTC'")
            state = AuditState(connection)
            state.add(lake, {path: lake.table(path).snapshot().files for path in lake.paths()})
            events = state.events()
            state.fold()
            for name, made in {"events": events, "calls": state.calls(events), **state.tables()}.items():
                replace_table(connection, options, name, made)
                ((counts[name],),) = connection.execute(f"select count(*) from {made}").fetchall()
                print_line(f"{name}: {counts[name]} rows")
    except FileNotFoundError as error:
        raise LakeError(f"{options.lake}: {error}") from error
    return counts


def replace_table(connection: Any, options: AuditOptions, name: str, made: str) -> None:
    """Replace a table as a whole.

    Args:
        connection: that has the rows.
        options: of the audit.
        name: of the table.
        made: the table of the connection.
    """
    by = (DATE,) if name in DATED else ()
    order = f" order by {_ORDERS[name]}" if name in _ORDERS else ""
    rows = connection.sql(f"{dated(name, made)}{order}")
    options.table(name).replace(rows, where=None, partition_by=by)


def dated(name: str, made: str) -> str:
    """The rows of a table as a query, with `DATE` where the table has days."""
    return f"select *, {DAY} as {DATE} from {made}" if name in DATED else f"from {made}"
