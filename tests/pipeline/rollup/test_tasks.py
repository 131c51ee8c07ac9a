"""Pieces of the work of a roll-up."""

from __future__ import annotations

from pathlib import Path

from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.rollup.tables import RollupOptions
from qmf.pipeline.rollup.tasks import KeptRows, SmallClassesTask, Task, together


def test_tasks_that_read_few_rows_are_done_together(tmp_path: Path) -> None:
    table = LakeTable(str(tmp_path))

    def kept(rows: int) -> KeptRows:
        return KeptRows(table, TableFile(f"part-{rows}", "", None, rows, 0), "1m", "true")

    classes = SmallClassesTask(RollupOptions(lake=str(tmp_path), out=str(tmp_path)), ())
    tasks: list[Task] = [kept(100_000), kept(150_000), classes, kept(1), kept(400_000), kept(2)]
    assert together(tasks) == [(classes,), (tasks[0], tasks[1]), (tasks[3],), (tasks[4],), (tasks[5],)]
    assert together([]) == []
