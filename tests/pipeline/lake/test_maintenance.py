"""Small files are combined, old days dropped, files that no version needs deleted."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
import pytest
from pipeline.heartbeats import DAY, put, seqs
from pipeline.lakes import HERE

from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake import maintenance
from qmf.pipeline.lake.columns import DATE
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.location import job_path
from qmf.pipeline.lake.maintenance import MaintenanceCounts
from qmf.pipeline.lake.table_log import CHECKPOINT_COMMITS
from qmf.pipeline.maintenance.optimizing import optimize_lake


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return DeltaLake(str(tmp_path / "lake"))


def stored(lake: DeltaLake, path: str = "heartbeats") -> list[Path]:
    return sorted(found for found in (Path(lake.url) / path).rglob("*.parquet") if "_delta_log" not in found.parts)


def test_small_files_of_each_day_are_combined_once(lake: DeltaLake) -> None:
    for number in range(1, 6):
        put(lake, number, (number, 0), (number + 10, 1))
    put(lake, 9, (99, 5))
    before = seqs(lake)
    table = lake.table("heartbeats")
    position = table.version()
    assert optimize_lake(HERE, lake) == MaintenanceCounts(combined=10, written=2)
    assert seqs(lake) == before
    assert [file.rows for file in table.snapshot().files] == [5, 5, 1]
    assert optimize_lake(HERE, lake) == MaintenanceCounts()
    assert position is not None
    assert table.added_files(position, table.version() or 0) == ()
    assert table.snapshot(position).rows == 11


def test_only_days_before_one(lake: DeltaLake) -> None:
    for number in range(1, 4):
        put(lake, number, (number, 0), (number + 10, 1))
    assert optimize_lake(HERE, lake, before="1970-01-02") == MaintenanceCounts(combined=3, written=1)
    assert [file.rows for file in lake.table("heartbeats").snapshot().files] == [3, 1, 1, 1]


def test_large_files_are_left(lake: DeltaLake) -> None:
    for number in range(1, 4):
        put(lake, number, (number, 0))
    assert optimize_lake(HERE, lake, target_bytes=10) == MaintenanceCounts()


def test_tables_of_jobs_are_combined_too(lake: DeltaLake) -> None:
    put(lake, 1, (1, 0))
    path = job_path("rollup", "minutes", "a b")
    for batch in (1, 2):
        lake.table(path).append(pa.table({"x": [batch]}), writer="job", batch=batch, partition_by=())
    assert lake.job_paths() == [path]
    assert optimize_lake(HERE, lake) == MaintenanceCounts(combined=2, written=1)


def test_row_groups_have_the_rows_of_many_commits(lake: DeltaLake) -> None:
    table = lake.table(job_path("big"))
    for batch in range(1, 5):
        rows = pa.table({"x": pa.array(range(batch * 50_000, (batch + 1) * 50_000))})
        table.append(rows, writer="job", batch=batch, partition_by=())
    put(lake, 1, (1, 0))
    optimize_lake(HERE, lake)
    (file,) = table.snapshot().files
    metadata = pyarrow.parquet.ParquetFile(file.url).metadata
    assert (metadata.num_rows, metadata.num_row_groups) == (200_000, 1)


def test_old_days_are_dropped_and_their_files_deleted_later(lake: DeltaLake) -> None:
    put(lake, 1, (1, 0), (2, 1), (3, 2))
    rows = pa.table({"x": [1, 2], DATE: ["1970-01-01", "1970-01-03"]})
    job = lake.table(job_path("job"))
    job.append(rows, writer="job", batch=1)
    assert maintenance.retain(lake, 1, now_ns=2 * DAY + 5) == MaintenanceCounts(rows=2)
    assert seqs(lake) == [2, 3]
    assert job.snapshot().rows == 1
    assert len(stored(lake)) == 3
    assert maintenance.vacuum(lake, grace_days=0) == MaintenanceCounts(deleted=2)
    assert len(stored(lake)) == 2
    assert seqs(lake) == [2, 3]


def test_files_of_dropped_days_stay_though_they_are_old_and_no_checkpoint_has_them(lake: DeltaLake) -> None:
    put(lake, 1, (1, 0), (2, 1), (3, 2))
    table = lake.table("heartbeats")
    table.delta().alter.set_table_properties({"delta.deletedFileRetentionDuration": "interval 0 seconds"})
    month_ago = time.time() - 30 * 86_400
    for file in stored(lake):
        os.utime(file, (month_ago, month_ago))
    before = table.version()
    assert maintenance.retain(lake, 1, now_ns=2 * DAY + 5) == MaintenanceCounts(rows=1)
    again = DeltaLake(lake.url)
    again.table("heartbeats").delta().create_checkpoint()
    assert maintenance.vacuum(DeltaLake(lake.url)) == MaintenanceCounts()
    assert table.snapshot(before).rows == 3
    entry = Path(lake.url) / "heartbeats" / "_delta_log" / f"{(before or 0) + 1:020}.json"
    os.utime(entry, (month_ago, month_ago))
    assert maintenance.vacuum(DeltaLake(lake.url)) == MaintenanceCounts(deleted=1)


def test_schemas_are_kept(lake: DeltaLake) -> None:
    put(lake, 1, (1, 0))
    maintenance.retain(lake, 0)
    assert seqs(lake) == []
    assert lake.exists()


def test_whether_more_than_half_may_go_is_asked(lake: DeltaLake) -> None:
    put(lake, 1, (1, 0), (2, 0), (3, 2))
    asked: list[tuple[int, int]] = []

    def may_drop(count: int, total: int) -> bool:
        asked.append((count, total))
        return False

    assert maintenance.retain(lake, 1, now_ns=2 * DAY, may_drop=may_drop) == MaintenanceCounts()
    assert asked == [(2, 3)]
    assert seqs(lake) == [1, 2, 3]


@pytest.mark.parametrize(("days", "grace"), [(-1, 7.0), (1, -1.0)])
def test_negative_days_are_refused(lake: DeltaLake, days: int, grace: float) -> None:
    put(lake, 1, (1, 0))
    with pytest.raises(ValueError, match="must not be negative"):
        maintenance.retain(lake, days, grace_days=grace)
    assert seqs(lake) == [1]


def test_a_writer_and_a_reader_go_on_meanwhile(lake: DeltaLake) -> None:
    for number in range(1, 4):
        put(lake, number, (number, 0))
    other = DeltaLake(lake.url)
    assert other.table("heartbeats").snapshot().rows == 3
    optimize_lake(HERE, lake)
    put(other, 4, (4, 1))
    maintenance.retain(lake, 0, now_ns=DAY, grace_days=0)
    put(other, 5, (5, 1))
    assert seqs(other) == seqs(lake) == [4, 5]
    optimize_lake(HERE, lake)
    assert seqs(other) == [4, 5]


def log_files(lake: DeltaLake) -> list[Path]:
    return sorted((Path(lake.url) / "heartbeats" / "_delta_log").glob("0*"))


def test_a_log_does_not_outgrow_its_rows(lake: DeltaLake) -> None:
    for number in range(1, CHECKPOINT_COMMITS + 60):
        put(lake, number, (number, 0))
        if number % 50 == 0:
            maintenance.optimize_table(lake.table("heartbeats"))
    assert max(file.stat().st_size for file in log_files(lake) if file.suffix == ".json") < 25_000
    entry = next(file for file in log_files(lake) if file.name.startswith(f"{7:020}"))
    assert entry.stat().st_size < 1200
    maintenance.vacuum(lake, grace_days=1)
    assert log_files(lake)[0].name == f"{0:020}.json"
    maintenance.vacuum(lake, grace_days=0)
    assert [file.suffix for file in log_files(lake)] == [".parquet", ".json"]
    again = DeltaLake(lake.url)
    assert seqs(again) == list(range(1, CHECKPOINT_COMMITS + 60))
    assert again.table("heartbeats").last_batch("recorder") == CHECKPOINT_COMMITS + 59
    with pytest.raises(LakeError, match="another process records as 'recorder'"):
        put(again, CHECKPOINT_COMMITS + 59, (0, 0))


def test_what_is_gone_from_a_log_is_told(lake: DeltaLake) -> None:
    for number in range(1, 7):
        put(lake, number, (number, 0))
        if number == 4:
            maintenance.vacuum(lake, grace_days=0)
    table = lake.table("heartbeats")
    assert table.snapshot(4).rows == 5
    assert [file.rows for file in table.added_files(3, 5)] == [1, 1]
    with pytest.raises(LakeError, match="version 2 is not in the log any more; the oldest one is 3"):
        table.snapshot(2)
    with pytest.raises(LakeError, match="version 2 was removed before it was read; begin again"):
        table.added_files(1, 5)


def test_entries_stay_until_they_are_old_enough(lake: DeltaLake) -> None:
    for number in range(1, 6):
        put(lake, number, (number, 0))
        if number in (2, 4):
            lake.table("heartbeats").delta().create_checkpoint()
    day_ago = time.time() - 86_400
    for file in log_files(lake):
        if int(file.name[:20]) < 4:
            os.utime(file, (day_ago, day_ago))
    maintenance.vacuum(lake, grace_days=0.5)
    assert [file.name.lstrip("0").split(".")[0] for file in log_files(lake)][:3] == ["3", "3", "4"]
