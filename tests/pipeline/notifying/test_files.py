"""The files of silences and of the state, also after kills in the middle of a write."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from qmf.pipeline.errors import LakeError, PipelineError
from qmf.pipeline.notifying.active_alert import ActiveAlert
from qmf.pipeline.notifying.matchers import parse_matchers
from qmf.pipeline.notifying.silence_file import SilenceFile
from qmf.pipeline.notifying.silences import Silence, SilenceState
from qmf.pipeline.notifying.state import IntegrationCounts, NotificationState, Told
from qmf.pipeline.notifying.state_file import STATE, StateFile, read_state

ONE = parse_matchers(["agent=a", 'severity=~"crit|ä"'])


def add(file: SilenceFile, start: int = 10, end: int = 20, comment: str = "why", by: str = "me") -> Silence:
    return file.add(ONE, start=start, end=end, created_by=by, comment=comment, now=5)


def test_silences_are_added_and_expired_and_stay_as_history(tmp_path: Path) -> None:
    file, running = SilenceFile(tmp_path / "new"), SilenceFile(tmp_path / "new")
    assert file.read() == running.read_changed() == []
    first, second = add(file, 12), add(file, 10)
    assert file.read() == running.read_changed() == [second, first]
    assert running.read_changed() is None
    expired = file.expire(first.id[:12], 15)
    assert (expired.ends_ns, expired.state(15), expired.comment) == (15, SilenceState.EXPIRED, "why")
    assert running.read_changed() == [second, expired]
    assert len(file.path.read_text().splitlines()) == 3
    file.path.unlink()
    assert running.read_changed() == []


def test_what_is_no_silence(tmp_path: Path) -> None:
    file = SilenceFile(tmp_path)
    with pytest.raises(PipelineError, match="before it begins or in the past"):
        add(file, 10, 10)
    with pytest.raises(PipelineError, match="before it begins or in the past"):
        add(file, 1, 5)
    with pytest.raises(PipelineError, match="who creates it"):
        add(file, by=" ")
    with pytest.raises(PipelineError, match="a comment"):
        add(file, comment="")
    for matchers in ([], ["agent=~.*"], ["a!=b", "c="]):
        with pytest.raises(PipelineError, match="that not every alert fulfils"):
            file.add(parse_matchers(matchers), start=1, end=9, created_by="me", comment="x", now=5)
    assert not file.path.exists()


def test_what_cannot_be_expired(tmp_path: Path) -> None:
    file = SilenceFile(tmp_path)
    one, two = add(file), add(file)
    file.expire(one.id, 6)
    with pytest.raises(PipelineError, match="ended already"):
        file.expire(one.id, 7)
    with pytest.raises(PipelineError, match="no such silence"):
        file.expire("x", 7)
    with pytest.raises(PipelineError, match="no such silence"):
        file.expire("", 7)
    text = file.path.read_text()
    file.path.write_text(text.replace(one.id, f"0{one.id[1:]}").replace(two.id, f"0{two.id[1:]}"))
    with pytest.raises(PipelineError, match="several silences"):
        file.expire("0", 7)


def test_a_line_that_a_kill_cut_off_is_no_silence(tmp_path: Path) -> None:
    file = SilenceFile(tmp_path)
    first = add(file)
    whole = file.path.read_bytes()
    add(file, 11)
    both = file.path.read_bytes()
    for cut in range(len(whole), len(both)):
        file.path.write_bytes(both[:cut])
        assert file.read() == [first]
    third = add(file, 11)
    assert file.read() == [first, third]


def test_a_damaged_file_is_named_with_its_line(tmp_path: Path) -> None:
    file = SilenceFile(tmp_path)
    add(file)
    with file.path.open("a") as lines:
        lines.write("{}\n")
    with pytest.raises(LakeError, match=r"silences\.jsonl:2: not a silence: .*matchers|.*id"):
        file.read_changed()
    assert file.read_changed() is None


def state() -> NotificationState:
    of = NotificationState()
    alert = ActiveAlert(id="1", incident="i", labels={"a": "ä"}, starts_ns=5, detail={"x": [1, None]}, value=1.5)
    of.alerts.put("1", alert)
    of.alerts.put("2", ActiveAlert(id="2", incident="j", labels={}, starts_ns=5, ends_ns=6))
    of.held.put("2", True)
    of.tell("1", "one", Told.OWED)
    of.tell("1", "two", Told.FIRING)
    of.tell("2", "two", Told.FIRING)
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
    assert file.finished(["1", "2", "3"]) == {"2"}
    file.forget_finished(0)
    assert file.finished(["2"]) == {"2"}
    file.forget_finished(1 << 60)
    assert file.finished(["2"]) == set()
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
