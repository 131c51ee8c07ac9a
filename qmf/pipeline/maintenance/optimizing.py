"""The job `optimize`: combines the small files of all tables of a lake, table by table, wherever it runs.

Large days of objects are sorted instead, see `qmf.pipeline.lake.clustering`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import attrs

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.clustering import CLUSTER_ROWS, cluster, days_to_cluster
from qmf.pipeline.lake.days import day
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.maintenance import TARGET_BYTES, MaintenanceCounts, all_paths, optimize_table
from qmf.pipeline.runners.runner import Runner


def optimize_lake(
    runner: Runner,
    lake: DeltaLake,
    *,
    before: str | None = None,
    target_bytes: int = TARGET_BYTES,
    cluster_rows: int = CLUSTER_ROWS,
) -> MaintenanceCounts:
    """Combine the small files of each day in all tables, those of jobs too, and cluster large days of objects.

    Args:
        runner: where to run: a task reads, writes and commits one table.
        lake: to work on; others may write and read meanwhile.
        before, target_bytes: as of `optimize_table`.
        cluster_rows: days before today that have more rows of a class are clustered by object.

    Returns:
        what was done. Running it again does nothing more.

    Raises:
        LakeError: the file system failed.
    """
    work = _Optimize(lake.url, lake.options, before, target_bytes, cluster_rows).optimize
    return sum(runner.each(all_paths(lake), work), MaintenanceCounts())


@attrs.frozen
class _Optimize:
    """The work on a table; see `optimize_lake`."""

    lake: str
    options: Mapping[str, str]
    before: str | None
    target_bytes: int
    cluster_rows: int

    def optimize(self, path: str) -> MaintenanceCounts:
        """Combine, or sort, the files of the table with a path."""
        table = DeltaLake(self.lake, self.options).table(path)
        if not path.startswith(f"{RowKind.OBJECTS.value}/"):
            return optimize_table(table, before=self.before, target_bytes=self.target_bytes)
        today = day(time.time_ns())
        before = today if self.before is None else min(today, self.before)
        done = MaintenanceCounts()
        for own in days_to_cluster(table.snapshot().files, before, self.cluster_rows).values():
            written = cluster(table, own, self.target_bytes)
            done += MaintenanceCounts(combined=len(own), written=written)
        return done + optimize_table(table, before=self.before, target_bytes=self.target_bytes)
