"""Compacting files, and dropping old days."""

from __future__ import annotations

from collections import Counter
from pathlib import Path, PurePath

import pyarrow.parquet
import pytest
from pipeline.heartbeats import DAY, Killed, in_folders, put, seqs

from qmf.pipeline import LakeError
from qmf.pipeline.lake import maintenance
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import RECORDED_FILES, TRASH


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    lake.create()
    return lake


def test_compacting_keeps_every_row_and_adds_none_for_readers_of_the_log(lake: Lake) -> None:
    for number in range(1, 6):
        put(lake, number, (number, 0), (number + 10, 1))
    put(lake, 9, (99, 5))
    before = seqs(lake)
    done = maintenance.compact(lake, before="1970-01-03")
    assert (done.compacted, done.written) == (10, 2)
    assert seqs(lake) == in_folders(lake) == before
    assert len(lake.files()) == 3
    assert [entry.moved for entry in lake.entries()][-2:] == [True, True]
    assert maintenance.compact(lake, before="1970-01-03") == maintenance.MaintenanceCounts()
    for entry in lake.entries():
        for path in entry.added:
            assert lake.find(path).exists()


def test_large_files_are_not_compacted(lake: Lake) -> None:
    for number in range(1, 4):
        put(lake, number, (number, 0))
    assert maintenance.compact(lake, before="1970-01-02", target_bytes=10) == maintenance.MaintenanceCounts()


@pytest.mark.parametrize("step", ["append_to_log", "move_to_trash"])
def test_a_killed_compaction_is_finished_by_the_next(lake: Lake, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    for number in range(1, 4):
        put(lake, number, (number, 0))
    before = seqs(lake)
    original = getattr(Lake, step)

    def killed(self: Lake, *args: object, **kwargs: object) -> object:
        if (args and args[0]) or kwargs:
            raise Killed
        return original(self, *args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(Lake, step, killed)
        with pytest.raises(Killed):
            maintenance.compact(lake, before="1970-01-02")
    assert seqs(lake) == before
    maintenance.compact(lake, before="1970-01-02")
    assert seqs(lake) == in_folders(lake) == before
    assert len(lake.files()) == 1


def test_old_days_are_dropped_and_deleted_from_the_trash_later(lake: Lake) -> None:
    put(lake, 1, (1, 0), (2, 1), (3, 2))
    done = maintenance.retain(lake, 1, now_ns=2 * DAY + 5)
    assert (done.dropped, done.deleted) == (1, 0)
    assert seqs(lake) == in_folders(lake) == Counter([2, 3])
    assert len(list((lake.root / TRASH).rglob("*.parquet"))) == 1
    far = 2**62
    assert maintenance.retain(lake, 10**5, now_ns=far).deleted == 1
    with pytest.raises(LakeError, match="deleted before it was read"):
        lake.find(next(iter(next(lake.entries()).added)))


def test_compacted_files_are_recognised_by_their_names(lake: Lake) -> None:
    for number in range(1, 4):
        put(lake, number, (number, 0))
    maintenance.compact(lake, before="1970-01-02")
    (joined,) = lake.files()
    assert not PurePath(joined).match(RECORDED_FILES)
    assert all(PurePath(path).match(RECORDED_FILES) for entry in lake.entries(0, 3) for path in entry.added)


def test_a_row_group_of_a_compacted_file_holds_the_rows_of_many_commits(lake: Lake) -> None:
    for number in range(1, 21):
        put(lake, number, (number, 0))
    maintenance.compact(lake, before="1970-01-02")
    (path,) = lake.files()
    metadata = pyarrow.parquet.ParquetFile(lake.root / path).metadata
    assert (metadata.num_rows, metadata.num_row_groups) == (20, 1)
