"""The job `optimize`: combines the small files of all tables of a lake, table by table, wherever it runs.

Large days of objects are sorted instead, see `qmf.pipeline.lake.clustering`.
"""

from __future__ import annotations

import time
from functools import partial

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
    """Combine the small files of each day in all tables, those of jobs too, as of `optimize_table`.

    Days before today that have more than `cluster_rows` of a class of objects are clustered. A task reads, writes and
    commits one table.
    """
    work = partial(_optimize, lake, before, target_bytes, cluster_rows)
    return sum(runner.each(all_paths(lake), work), MaintenanceCounts())


def _optimize(
    lake: DeltaLake, before: str | None, target_bytes: int, cluster_rows: int, path: str
) -> MaintenanceCounts:
    table = DeltaLake(lake.url, lake.options).table(path)  # of this thread
    done = MaintenanceCounts()
    if path.startswith(f"{RowKind.OBJECTS.value}/"):
        today = day(time.time_ns())
        first = today if before is None else min(today, before)
        for own in days_to_cluster(table.snapshot().files, first, cluster_rows).values():
            written = cluster(table, own, target_bytes)
            done += MaintenanceCounts(combined=len(own), written=written)
    return done + optimize_table(table, before=before, target_bytes=target_bytes)
