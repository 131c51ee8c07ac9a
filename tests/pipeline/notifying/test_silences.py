"""Silences: their states, their JSON, their times; their file, also after kills in the middle of a write."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.pipeline.errors import LakeError, PipelineError
from qmf.pipeline.notifying.matchers import parse_matchers
from qmf.pipeline.notifying.silences import (
    Silence,
    SilenceFile,
    SilenceState,
    find_silence,
    format_time,
    parse_time,
)


def silence(start: int, end: int, *matchers: str, id: str = "1") -> Silence:
    return Silence(
        id=id, matchers=parse_matchers(matchers), starts_ns=start, ends_ns=end, created_by="me", comment="why",
        updated_ns=0,
    )  # fmt: skip


def test_the_states_of_a_silence() -> None:
    of = silence(10, 20, "a=1")
    assert [of.state(now) for now in (9, 10, 19, 20)] == [
        SilenceState.PENDING, SilenceState.ACTIVE, SilenceState.ACTIVE, SilenceState.EXPIRED,
    ]  # fmt: skip
    assert [find_silence([of], {"a": "1"}, now) is of for now in (9, 10, 20)] == [False, True, False]
    assert find_silence([of], {"a": "2"}, 15) is None
    assert of.expire(15).state(15) is of.expire(5).state(5) is SilenceState.EXPIRED
    assert of.expire(30).ends_ns == 20


@given(st.integers(0, 2**62), st.integers(0, 2**62))
def test_a_silence_survives_its_json(start: int, end: int) -> None:
    of = silence(start, end, "a=1", 'b=~"x|y"')
    assert Silence.from_json(of.to_json()) == of


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01T00:00:01Z", 10**9),
        ("1970-01-01T00:00:01.000000005Z", 10**9 + 5),
        ("1970-01-01 01:00:01.5+01:00", 15 * 10**8),
        ("1970-01-02", 86_400 * 10**9),
    ],
)
def test_times(text: str, expected: int) -> None:
    assert parse_time(text) == expected


def test_a_time_is_written_as_the_standard_says() -> None:
    at = datetime.datetime(2030, 1, 31, 12, tzinfo=datetime.UTC)
    assert format_time(int(at.timestamp()) * 10**9 + 5 * 10**8) == "2030-01-31T12:00:00.5Z"


@pytest.mark.parametrize("text", ["", "now", "2030-13-01", "2030-01-01T00:00:00.Z"])
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="must be a time"):
        parse_time(text)


# -- the file


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
