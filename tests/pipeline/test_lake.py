"""Commits, what a killed writer leaves behind, full disks, joining and ageing."""

from __future__ import annotations

import errno
from collections import Counter
from pathlib import Path, PurePath

import pyarrow.parquet
import pytest

from qmf.pipeline import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake import maintenance, transaction_log
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import LOG, RECORDED_FILES, TRASH
from qmf.pipeline.recording.buffers import Cells, CommittedFile, RowBuffers, commit

DAY = 86_400 * 10**9
RUN = "00000000000000000001_1"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    lake.create()
    return lake


def beats(*rows: tuple[int, int]) -> RowBuffers:
    """Heartbeats with these numbers and days."""
    buffers = RowBuffers()
    for seq, days in rows:
        time_ns = days * DAY
        row: Cells = (RUN, seq, time_ns // 1000, time_ns, time_ns, "a", 1, 10.0)
        buffers.add(RowKind.HEARTBEATS, None, time_ns, row)
    return buffers


def put(lake: Lake, number: int, *rows: tuple[int, int], name: str = "recorder") -> list[CommittedFile]:
    """Commit heartbeats with these numbers and days."""
    return commit(lake, name, RUN, number, beats(*rows).take())


def seqs(lake: Lake) -> Counter[int]:
    """The rows that a follower of the log sees."""
    found: Counter[int] = Counter()
    for path, rows in lake.files().items():
        table = pyarrow.parquet.ParquetFile(lake.root / path).read()
        assert table.num_rows == rows
        found.update(table["_seq"].to_pylist())
    return found


def in_folders(lake: Lake) -> Counter[int]:
    """The rows that a reader of the folders sees."""
    found: Counter[int] = Counter()
    for path in lake.root.glob("heartbeats/*/[!.]*.parquet"):
        found.update(pyarrow.parquet.ParquetFile(path).read()["_seq"].to_pylist())
    return found


def test_a_commit_is_one_entry_for_all_its_files(lake: Lake) -> None:
    put(lake, 1, (1, 0), (2, 0), (3, 1))
    (entry,) = lake.entries()
    assert (entry.number, sorted(entry.added.values()), entry.moved) == (1, [1, 2], False)
    assert seqs(lake) == in_folders(lake) == Counter([1, 2, 3])


def test_two_writers_share_the_order_of_the_log(lake: Lake) -> None:
    other = Lake(lake.root)
    assert (lake.last_entry(), other.last_entry()) == (0, 0)
    put(lake, 1, (1, 0), name="a")
    put(other, 1, (2, 0), name="b")
    put(lake, 2, (3, 0), name="a")
    assert [entry.number for entry in lake.entries()] == [1, 2, 3]
    assert seqs(other) == Counter([1, 2, 3])


def test_a_name_belongs_to_one_writer(lake: Lake) -> None:
    with lake.lock("a"), pytest.raises(LakeError, match="another process writes as 'a'"):
        lake.lock("a")
    lake.lock("a").close()


@pytest.mark.parametrize("name", ["", "a-b", "a/b", "x" * 65])
def test_names_that_would_not_do_are_refused(lake: Lake, name: str) -> None:
    with pytest.raises(LakeError, match="1 to 64 letters"):
        lake.lock(name)


class Killed(BaseException):
    """Stands for a kill: nothing after it runs, not even clearing up."""


def test_killed_between_files_and_log_the_files_are_entered(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    put(lake, 1, (1, 0))

    def killed(*_args: object, **_kwargs: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(Lake, "append_to_log", killed)
        with pytest.raises(Killed):
            put(lake, 2, (2, 0), (3, 1))
    assert seqs(lake) == Counter([1])
    (lake.root / "heartbeats" / ".tmp-recorder-x.parquet").write_bytes(b"half a file")
    assert lake.recover("other") == (0, 0)
    assert lake.recover("recorder") == (1, 2)
    assert lake.recover("recorder") == (0, 0)
    assert seqs(lake) == in_folders(lake) == Counter([1, 2, 3])


@pytest.mark.parametrize("call", ["write_table", "rename", "hardlink_to"])
def test_a_full_disk_is_an_error_and_no_broken_file(lake: Lake, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    put(lake, 1, (1, 0))

    def full(*_args: object, **_kwargs: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(pyarrow.parquet if call == "write_table" else Path, call, full)
        with pytest.raises(LakeError, match="No space left on device"):
            put(lake, 2, (2, 0))
    assert seqs(lake) == Counter([1])
    assert list(lake.root.rglob(".tmp-*")) == []
    lake.recover("recorder")
    put(lake, 3, (3, 0))
    assert seqs(lake) == in_folders(lake)
    assert set(seqs(lake)) >= {1, 3}


def test_joining_keeps_every_row_and_tells_followers_nothing_new(lake: Lake) -> None:
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


def test_files_that_are_large_enough_are_left_alone(lake: Lake) -> None:
    for number in range(1, 4):
        put(lake, number, (number, 0))
    assert maintenance.compact(lake, before="1970-01-02", target_bytes=10) == maintenance.MaintenanceCounts()


@pytest.mark.parametrize("step", ["append_to_log", "move_to_trash"])
def test_a_killed_joining_is_finished_by_the_next(lake: Lake, monkeypatch: pytest.MonkeyPatch, step: str) -> None:
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


def test_old_days_go_and_the_trash_is_swept_later(lake: Lake) -> None:
    put(lake, 1, (1, 0), (2, 1), (3, 2))
    done = maintenance.retain(lake, 1, now_ns=2 * DAY + 5)
    assert (done.dropped, done.deleted) == (1, 0)
    assert seqs(lake) == in_folders(lake) == Counter([2, 3])
    assert len(list((lake.root / TRASH).rglob("*.parquet"))) == 1
    far = 2**62
    assert maintenance.retain(lake, 10**5, now_ns=far).deleted == 1
    with pytest.raises(LakeError, match="deleted before it was read"):
        lake.find(next(iter(next(lake.entries()).added)))


def test_half_an_entry_is_never_seen(lake: Lake) -> None:
    (lake.root / LOG / ".tmp-1-abc").write_text('{"added"')
    put(lake, 1, (1, 0))
    assert lake.last_entry() == 1
    assert seqs(lake) == Counter([1])


def test_files_are_rolled_by_size(lake: Lake) -> None:
    buffers = beats(*((n, 0) for n in range(1, 1001)))
    assert buffers.largest() == 1000 * 8 * 8.0  # rows, columns, bytes: nothing better is known yet
    assert len(buffers.take(limit=32_000).parts) == 2
    (file,) = put(lake, 1, *((n, 0) for n in range(1, 1001)))
    assert (file.rows, file.cells) == (1000, 8000)
    assert file.size == (lake.root / next(iter(lake.files()))).stat().st_size
    buffers = beats(*((n, 0) for n in range(1, 1001)))
    buffers.record_sizes([file])
    assert buffers.largest() == pytest.approx(file.size)
    parts = buffers.take(limit=file.size / 4 + 1).parts
    assert [len(rows) for _place, _columns, rows in parts] == [250] * 4
    assert [row[1] for _place, _columns, rows in parts for row in rows] == list(range(1, 1001))


def test_a_checkpoint_stands_for_the_entries_before_it(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.pipeline.lake.lake.CHECKPOINT_INTERVAL", 4)
    for number in range(1, 11):
        put(lake, number, (number, 0))
    assert (lake.last_checkpoint(), lake.last_checkpoint(until=7)) == (8, 4)
    before, halfway = lake.files(), lake.files(6)
    assert (len(before), len(halfway)) == (10, 6)
    assert lake.truncate_log(before_ns=0) == 0
    assert lake.truncate_log(before_ns=2**62) == 8
    assert sorted(path.name for path in (lake.root / LOG).iterdir()) == [
        transaction_log.checkpoint_name(8),
        transaction_log.entry_name(9),
        transaction_log.entry_name(10),
    ]
    again = Lake(lake.root)
    assert (again.files(), again.last_entry()) == (before, 10)
    assert lake.recover("recorder") == (0, 0)
    with pytest.raises(LakeError, match="No such file"):
        list(again.entries())
    with pytest.raises(LakeError, match="No such file"):
        again.checkpoint_files(4)
    put(again, 11, (11, 0))
    assert (again.last_entry(), seqs(again)) == (11, Counter(range(1, 12)))


def test_a_log_is_replayed_from_its_files_in_any_order(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.pipeline.lake.lake.CHECKPOINT_INTERVAL", 3)
    for number in range(1, 6):
        put(lake, number, (number, 0))
    maintenance.compact(lake, before="1970-01-02")
    named = [(path.name, path.read_text()) for path in (lake.root / LOG).glob("*.json")]
    assert transaction_log.replay(reversed(named)) == transaction_log.replay(named) == lake.files()
    assert transaction_log.replay([]) == {}


def test_joined_files_are_told_by_their_names(lake: Lake) -> None:
    for number in range(1, 4):
        put(lake, number, (number, 0))
    maintenance.compact(lake, before="1970-01-02")
    (joined,) = lake.files()
    assert not PurePath(joined).match(RECORDED_FILES)
    assert all(PurePath(path).match(RECORDED_FILES) for entry in lake.entries(0, 3) for path in entry.added)
