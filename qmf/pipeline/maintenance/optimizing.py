"""The job `optimize`: combines the small files of all tables of a lake, table by table, wherever it runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.maintenance import TARGET_BYTES, MaintenanceCounts, all_paths, optimize_table
from qmf.pipeline.runners.runner import Runner


def optimize_lake(
    runner: Runner, lake: DeltaLake, *, before: str | None = None, target_bytes: int = TARGET_BYTES
) -> MaintenanceCounts:
    """Combine the small files of each day in all tables, those of jobs too.

    Args:
        runner: where to run: a task reads, writes and commits one table.
        lake: to work on; others may write and read meanwhile.
        before, target_bytes: as of `optimize_table`.

    Returns:
        what was done. Running it again does nothing more.

    Raises:
        LakeError: the file system failed.
    """
    work = partial(_optimized, lake.url, lake.options, before, target_bytes)
    return sum(runner.each(all_paths(lake), work), MaintenanceCounts())


def _optimized(
    lake: str, options: Mapping[str, str], before: str | None, target_bytes: int, path: str
) -> MaintenanceCounts:
    table = DeltaLake(lake, options).table(path)
    return optimize_table(table, before=before, target_bytes=target_bytes)
