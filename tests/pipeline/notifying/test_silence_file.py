"""The file of silences, also after kills in the middle of a write."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmf.pipeline.errors import LakeError, PipelineError
from qmf.pipeline.notifying.matchers import parse_matchers
from qmf.pipeline.notifying.silence_file import SilenceFile
from qmf.pipeline.notifying.silences import Silence, SilenceState

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
