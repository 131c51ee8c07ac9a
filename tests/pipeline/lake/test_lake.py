"""Commits, what a killed writer leaves behind, full disks, and the log."""

from __future__ import annotations

import errno
from collections import Counter
from pathlib import Path

import pyarrow.parquet
import pytest
from pipeline.heartbeats import Killed, in_folders, put, seqs

from qmf.pipeline import LakeError
from qmf.pipeline.lake import maintenance, transaction_log
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import LOG


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    lake.create()
    return lake


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
def test_invalid_names_are_refused(lake: Lake, name: str) -> None:
    with pytest.raises(LakeError, match="1 to 64 letters"):
        lake.lock(name)


def test_after_a_kill_between_files_and_log_the_files_are_added(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_partial_entry_is_never_read(lake: Lake) -> None:
    (lake.root / LOG / ".tmp-1-abc").write_text('{"added"')
    put(lake, 1, (1, 0))
    assert lake.last_entry() == 1
    assert seqs(lake) == Counter([1])


def test_a_checkpoint_replaces_the_entries_before_it(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
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
