"""The arrival of rows in a local lake, from the files of its log's entries: which runs wrote them, and when."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.correlate.event_time import CONNECTION_REASONS, ConnectionChange, merged_runs
from qmf.pipeline.errors import lake_errors
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import LOG, RECORDED_FILES
from qmf.pipeline.lake.maintenance import WRITER as MAINTENANCE
from qmf.pipeline.lake.transaction_log import LogEntry, entry_name


@attrs.frozen
class EntryArrivals:
    """The arrivals of one entry's rows.

    Attributes:
        runs: first and last arrival of each run's rows; without rows of schemas.
        changes: of the runs' connections.
    """

    runs: dict[str, tuple[int, int]]
    changes: list[ConnectionChange]


def entry_arrivals(lake: Lake, entry: LogEntry) -> EntryArrivals:
    """Read the arrivals of an entry's rows."""
    runs: dict[str, tuple[int, int]] = {}
    changes: list[ConnectionChange] = []
    for path in entry.added:
        if path.startswith(f"{RowKind.SCHEMAS.value}/"):
            continue
        file = import_pyarrow().parquet.ParquetFile(lake.find(path))
        runs = merged_runs(runs, _file_runs(path, file))
        if path.startswith(f"{RowKind.GAPS.value}/"):
            changes += _connection_changes(file)
    return EntryArrivals(runs, changes)


def committed_at(lake: Lake, entry: LogEntry) -> int:
    """The time of a commit in ns; 0 where its entry was removed."""
    path = lake.root / LOG / entry_name(entry.number)
    return path.stat().st_mtime_ns if path.exists() else 0


def is_recording(lake: Lake) -> bool:
    """True while a recorder of the lake holds its lock."""
    for path in lake.root.glob("_lock_*"):
        if path.name == f"_lock_{MAINTENANCE}":
            continue
        with lake_errors(path):
            try:
                with path.open(encoding="utf-8") as file:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
    return False


def _connection_changes(file: Any) -> Iterator[ConnectionChange]:
    for row in file.read(["reason", "_received_ns", "_run"]).to_pylist():
        if row["reason"] in CONNECTION_REASONS:
            yield ConnectionChange(row["_run"], row["_received_ns"], CONNECTION_REASONS[row["reason"]])


def _file_runs(path: str, file: Any) -> dict[str, tuple[int, int]]:
    """First and last arrival of each run in a file: from the file's statistics, unless it was compacted."""
    if not fnmatch(Path(path).name, RECORDED_FILES):
        rows = file.read(["_run", "_received_ns"]).group_by("_run")
        found = rows.aggregate([("_received_ns", "min"), ("_received_ns", "max")]).to_pylist()
        return {row["_run"]: (row["_received_ns_min"], row["_received_ns_max"]) for row in found}
    index = file.schema_arrow.get_field_index("_received_ns")
    groups = [file.metadata.row_group(number).column(index) for number in range(file.metadata.num_row_groups)]
    ranges = [(group.statistics.min, group.statistics.max) for group in groups]
    run = Path(path).name.split("-")[1]
    return {run: (min(first for first, _ in ranges), max(last for _, last in ranges))} if ranges else {}
