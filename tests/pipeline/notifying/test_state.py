"""The files of the state of notifications, also after kills in the middle of a write."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.errors import LakeError
from qmf.pipeline.notifying.state import STATE, IntegrationCounts, NotificationState, SentState, StateFile, read_state


def state() -> NotificationState:
    of = NotificationState()
    alert = Alert(id="1", incident="i", labels={"a": "ä"}, starts_ns=5, detail={"x": [1, None]}, value=1.5)
    of.alerts.put("1", alert)
    of.alerts.put("2", Alert(id="2", incident="j", labels={}, starts_ns=5, ends_ns=6))
    of.held.put("2", True)
    of.tell("1", "one", SentState.OWED)
    of.tell("1", "two", SentState.FIRING)
    of.tell("2", "two", SentState.FIRING)
    of.sent.put(("one", "group"), 7)
    of.counts.put("one", IntegrationCounts(1, 2, 3, "x", 4))
    return of


def content(of: NotificationState) -> tuple[object, ...]:
    return dict(of.alerts), dict(of.held), dict(of.told), dict(of.sent), dict(of.counts)


def test_the_state_survives(tmp_path: Path) -> None:
    file, of = StateFile(tmp_path / "s"), state()
    file.save(of, step="5")
    assert content(read_state(tmp_path / "s")[0]) == content(of)
    of.tell("1", "one", None)
    of.tell("1", "two", None)
    of.alerts.discard("2")
    of.held.discard("2")
    of.sent.discard(("one", "group"))
    of.counts.discard("one")
    file.save(of, ["2"])
    assert file.finished_incidents(["1", "2", "3"]) == {"2"}
    file.forget_finished(0)
    assert file.finished_incidents(["2"]) == {"2"}
    file.forget_finished(1 << 60)
    assert file.finished_incidents(["2"]) == set()
    file.close()
    file = StateFile(tmp_path / "s")
    assert content(file.load()) == content(of)
    assert (file.text("step"), file.text("other")) == ("5", "")
    file.close()


def test_what_was_not_written_is_written_next_time(tmp_path: Path) -> None:
    file, of = StateFile(tmp_path), state()
    other = sqlite3.connect(tmp_path / STATE)
    other.execute("CREATE TRIGGER full BEFORE INSERT ON sent BEGIN SELECT RAISE(ABORT, 'no space'); END")
    with pytest.raises(LakeError, match=r"notifications\.db: no space"):
        file.save(of)
    assert content(read_state(tmp_path)[0]) == content(NotificationState())
    other.execute("DROP TRIGGER full")
    other.close()
    file.save(of)
    assert content(read_state(tmp_path)[0]) == content(of)
    file.close()


def test_one_process_notifies_from_a_folder(tmp_path: Path) -> None:
    file = StateFile(tmp_path)
    with pytest.raises(LakeError, match="another process notifies from this folder"):
        StateFile(tmp_path)
    file.close()
    StateFile(tmp_path).close()


def test_files_that_are_not_the_state(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="no such file"):
        read_state(tmp_path)
    (tmp_path / STATE).write_text("something else that is long enough" * 10)
    with pytest.raises(LakeError, match="not a database"):
        StateFile(tmp_path)
    with pytest.raises(LakeError, match="not a database"):
        read_state(tmp_path)
    (tmp_path / STATE).unlink()
    other = sqlite3.connect(tmp_path / STATE)
    other.execute("PRAGMA user_version = 77")
    other.close()
    with pytest.raises(LakeError, match="another version"):
        StateFile(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(LakeError, match="file"):
        StateFile(tmp_path / "file")
