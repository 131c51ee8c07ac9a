"""`qmf-pipeline retain`, `vacuum` and `optimize`: what is refused, and what is asked before data are dropped."""

from __future__ import annotations

import datetime
import io
import sys
from pathlib import Path

import pytest
from pipeline.heartbeats import put, seqs

from qmf.pipeline.cli import main
from qmf.pipeline.lake.delta_lake import DeltaLake


class Terminal(io.StringIO):
    """A terminal on which something was typed."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    """A lake of three days of 1970."""
    lake = DeltaLake(str(tmp_path / "lake"))
    for number in range(1, 4):
        put(lake, number, (number, number - 1))
    return lake


@pytest.mark.parametrize(
    ("option", "value"), [("--days", "-1"), ("--days", "1.5"), ("--grace-days", "-1"), ("--grace-days", "nan")]
)
def test_numbers_of_days_that_are_refused(
    lake: DeltaLake, capsys: pytest.CaptureFixture[str], option: str, value: str
) -> None:
    before = seqs(lake)
    with pytest.raises(SystemExit):
        main(["retain", "--lake", lake.url, "--days", "1", option, value])
    assert f"argument {option}" in capsys.readouterr().err
    assert seqs(lake) == before


def test_more_than_half_is_not_dropped_unasked(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = seqs(lake)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert main(["retain", "--lake", lake.url, "--days", "1"]) == 2
    assert "this would drop 3 of 3 rows, more than half of the lake; --yes does so" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", Terminal("n\n"))
    assert main(["retain", "--lake", lake.url, "--days", "1"]) == 0
    assert seqs(lake) == before
    assert capsys.readouterr().out.endswith("Dropped 0 rows, deleted 0 files\n")


@pytest.mark.parametrize(("options", "typed"), [(["--yes"], ""), ([], "y\n")])
def test_it_is_dropped_when_the_user_says_so(
    lake: DeltaLake, monkeypatch: pytest.MonkeyPatch, options: list[str], typed: str
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal(typed))
    assert main(["retain", "--lake", lake.url, "--days", "1", *options]) == 0
    assert seqs(lake) == []


def test_half_is_dropped_without_a_question(lake: DeltaLake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    days = (datetime.datetime.now(datetime.UTC).date() - datetime.date(1970, 1, 2)).days
    assert main(["retain", "--lake", lake.url, "--days", str(days)]) == 0
    assert seqs(lake) == [2, 3]


@pytest.mark.parametrize(
    "command", [["optimize"], ["compact"], ["vacuum"], ["retain", "--days", "1"], ["rollup"], ["audit"], ["report"]]
)
def test_folders_that_are_no_lakes(tmp_path: Path, capsys: pytest.CaptureFixture[str], command: list[str]) -> None:
    assert main([*command, "--lake", str(tmp_path / "none")]) == 2
    assert f"{tmp_path}/none: no such folder; a recorder makes it" in capsys.readouterr().err
    assert main([*command, "--lake", str(tmp_path)]) == 2
    assert f"{tmp_path}: not a lake: it has no table of schemas" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("day", ["soon", "2030-02-30", "2030-1-1", ""])
def test_days_that_are_none(lake: DeltaLake, capsys: pytest.CaptureFixture[str], day: str) -> None:
    with pytest.raises(SystemExit):
        main(["rollup", "--lake", lake.url, "--from", day])
    assert f"argument --from: must be a day such as 2030-01-31 or yesterday, not {day!r}" in capsys.readouterr().err
