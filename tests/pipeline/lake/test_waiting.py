"""Recorders and readers know of each other, by small files in the lake."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmf.pipeline import LakeError
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.waiting import (
    ENDED_NS,
    LEASE_NS,
    READERS,
    RENEWAL_NS,
    WAITING,
    Note,
    ReaderNote,
    complete_until,
    followed_tables,
    waiting_since,
)

NOW = 10**18


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return DeltaLake(str(tmp_path))


def test_a_table_is_complete_until_the_first_row_that_waits(lake: DeltaLake) -> None:
    assert waiting_since(lake, NOW) == {}
    Note(lake, WAITING, "one").write({"time_ns": NOW, "tables": {"objects/p/c": NOW - 7, "events/p/d": NOW - 9}})
    Note(lake, WAITING, "two").write({"time_ns": NOW, "tables": {"objects/p/c": NOW - 8}})
    assert waiting_since(lake, NOW) == {"objects/p/c": NOW - 8, "events/p/d": NOW - 9}
    assert complete_until(lake, ["objects/p/c", "heartbeats"], NOW) == NOW - 8
    assert complete_until(lake, ["heartbeats"], NOW) is None
    # A recorder that ended is not waited for.
    assert waiting_since(lake, NOW + ENDED_NS) != {}
    assert waiting_since(lake, NOW + ENDED_NS + 1) == {}


def test_readers_follow_tables_until_they_end(lake: DeltaLake) -> None:
    now = NOW
    one, two = (ReaderNote(lake, f"a job/{number}", lambda: now) for number in range(2))
    one.renew(["objects/p/c"])
    two.renew(["objects/p/c", "events/p/d"])
    assert followed_tables(lake, now) == {"objects/p/c", "events/p/d"}
    two.close()
    two.close()
    assert followed_tables(lake, now) == {"objects/p/c"}
    # One that was killed follows nothing after a while, and is forgotten later.
    assert followed_tables(lake, now + LEASE_NS + 1) == set()
    assert list(Path(lake.url, READERS).iterdir()) != []
    followed_tables(lake, now + LEASE_NS + 3600 * 10**9 + 1)
    assert list(Path(lake.url, READERS).iterdir()) == []


def test_a_reader_names_its_tables_again_when_that_is_due(lake: DeltaLake) -> None:
    now = NOW
    note = ReaderNote(lake, "job", lambda: now)
    note.renew(["a"])
    (path,) = Path(lake.url, READERS).iterdir()
    path.unlink()
    note.renew(["a"])
    assert not path.exists()
    note.renew(["a", "b"])
    assert path.exists()
    path.unlink()
    now += RENEWAL_NS
    note.renew(["a", "b"])
    assert path.exists()


def test_a_lake_that_cannot_be_written_is_read_all_the_same(lake: DeltaLake, caplog: pytest.LogCaptureFixture) -> None:
    Path(lake.url, READERS).write_text("a file in the place of the folder")
    note = ReaderNote(lake, "job", lambda: NOW)
    note.renew(["a"])
    assert "rows of quiet tables come later" in caplog.text
    note.close()


def test_a_damaged_file_is_named(lake: DeltaLake) -> None:
    path = Path(lake.url, WAITING, "one.json")
    path.parent.mkdir()
    path.write_text('{"tables": {}}')
    with pytest.raises(LakeError, match=r"_waiting/one.json: damaged"):
        waiting_since(lake, NOW)
