"""Options of `qmf-pipeline`: from the command line, and from a file."""

from __future__ import annotations

import argparse
from pathlib import Path

import pytest

from qmf.pipeline.cli import main, parsers
from qmf.pipeline.commands.base import duration, parse_options
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.views.times import parse_duration


def options(*arguments: str) -> argparse.Namespace:
    return parse_options(*parsers(), arguments)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "pipeline.toml"


def test_a_file_gives_options_that_the_command_line_does_not(config: Path) -> None:
    config.write_text(
        '[all]\nlake = "a"\nmaster = "local[3]"\n[rollup]\nsize = ["1m", "1h"]\ncontinued = true\nclass = "cpu,disk"\n'
        "late = '5m'\nfrom = 2030-01-31\n[spark]\ndriver.memory = '4g'\nsql.shuffle.partitions = 7\n"
    )
    chosen = options("rollup", "--config", str(config), "--lake", "b", "--conf", "spark.a=b=c")
    assert (chosen.lake, chosen.master, chosen.sizes, chosen.classes) == (
        "b",
        "local[3]",
        ("1m", "1h"),
        ("cpu", "disk"),
    )
    assert (chosen.continued, chosen.stream, chosen.late, chosen.first) == (True, False, "300 seconds", "2030-01-31")
    assert dict(chosen.conf) == {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": "7", "spark.a": "b=c"}


def test_a_required_option_may_be_in_the_file(config: Path) -> None:
    config.write_text('[all]\nlake = "a"\nstorage = ["A=b"]\nlate = "1s"\n[retain]\ndays = 3\n')
    chosen = options("retain", "--config", str(config))
    assert (chosen.lake, chosen.days) == ("a", 3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[retain]\ndais = 3\n", "pipeline.toml:2: retain has no option 'dais'"),
        ("[retained]\ndays = 3\n", "there is no subcommand 'retained'"),
        ("days = 3\n", "there is no subcommand 'days'"),
        ("[retain]\ndays = 'x'\n", "pipeline.toml:2: days: 'x' is not a whole number"),
        ("[all]\nverbose = 'yes'\n", "verbose: must be true or false"),
        ("retain = 3\n", "retain must be a table"),
        ("[retain\n", "pipeline.toml:1: "),
        ('[retain]\nmaster = "x"\n', "retain has no option 'master'"),
        ("[all]\nmastr = 3\n", "no command has an option 'mastr'"),
    ],
)
def test_errors_in_a_file_are_reported(
    config: Path, text: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config.write_text(text)
    with pytest.raises(SystemExit):
        options("retain", "--config", str(config), "--lake", "x", "--days", "3")
    assert message in capsys.readouterr().err


def test_a_file_that_is_missing(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["retain", "--config", "/nowhere.toml", "--lake", "x", "--days", "3"])
    assert "cannot read /nowhere.toml: no such file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10s", "10 seconds"),
        ("0s", "0 seconds"),
        ("5 minutes", "300 seconds"),
        ("1h", "3600 seconds"),
        (" 2 day ", "172800 seconds"),
        ("1m30s", "90 seconds"),
        ("1h 30m", "5400 seconds"),
        ("1.5s", "1500 milliseconds"),
        ("500ms", "500 milliseconds"),
        ("1m500ms", "60500 milliseconds"),
    ],
)
def test_times(text: str, expected: str) -> None:
    assert duration(text) == expected
    # The result can be parsed again, and is the same time.
    assert parse_duration(expected) == parse_duration(text)


@pytest.mark.parametrize("text", ["", "10", "m", "1 year", "1s; drop", "-1s", "0.5ms", "1m30"])
def test_invalid_times(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="must be a time"):
        duration(text)


def test_the_command_line_overrides_the_file(config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config.write_text(f'[all]\nlake = "{tmp_path}/a"\n[retain]\ndays = 3\n')
    DeltaLake(str(tmp_path / "b")).create()
    assert main(["retain", "--config", str(config), "--lake", str(tmp_path / "b")]) == 0
    assert capsys.readouterr().out == "Dropped 0 rows, deleted 0 files\n"
    assert [path.name for path in tmp_path.iterdir() if path.is_dir()] == ["b"]
