"""The job `audit` over a whole lake, wherever it runs.

::

    OUT/events, OUT/calls                     by day
    OUT/availability, OUT/lives, OUT/history
    OUT/parts                                 the parts, and what was read of the lake, for reports

A map makes parts of files. Reduces make the tables of these, see `tables`. Each table is replaced as a whole, by one
commit. Without events and calls this is the job `history`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

from qmf.pipeline.audit.schemas import ALL_TABLES, arrow_schema
from qmf.pipeline.audit.state import PART
from qmf.pipeline.audit.tables import (
    DATED,
    EVENT_TABLES,
    AuditOptions,
    StoredParts,
    event_tables,
    made_parts,
    presence_and_object_tables,
)
from qmf.pipeline.lake.columns import DATE
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.runners.runner import Rows, Runner

#: The order of the rows of tables.
_ORDERS = {
    "availability": ("agent", "start_ns"),
    "lives": ("package", "class", "object", "created_ns"),
    "calls": ("time_ns",),
}


def audit_lake(runner: Runner, options: AuditOptions, print_line: Callable[[str], None]) -> dict[str, int]:
    """Audit a whole lake.

    Args:
        runner: where to run.
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
    snapshots = {path: lake.table(path).snapshot() for path in options.paths(lake)}
    files = {path: snapshot.files for path, snapshot in snapshots.items()}
    with ExitStack() as stack:
        parts = stack.enter_context(made_parts(runner, options, files).persist())
        if options.events:
            events = stack.enter_context(event_tables(parts).persist())
            for name in EVENT_TABLES:
                counts[name] = replace_table(events, options, name)
                print_line(f"{name}: {counts[name]} rows")
        for name, rows in presence_and_object_tables(parts):
            counts[name] = replace_table(rows, options, name)
            print_line(f"{name}: {counts[name]} rows")
        StoredParts(options).store(parts, {path: snapshot.version for path, snapshot in snapshots.items()})
    return counts


def replace_table(rows: Rows, options: AuditOptions, name: str) -> int:
    """Replace a table as a whole by its rows among those of others, and return their number."""
    columns, by = (EVENT_TABLES[name], (DATE,)) if name in DATED else (ALL_TABLES[name], ())
    own, table = rows.where(PART, [name]).select(list(columns)), options.table(name)
    written = own.write(table, by=by, order=_ORDERS.get(name, ()))
    table.commit_files(written.files, arrow_schema(columns), partition_by=by, replace=True)
    return written.rows
