"""Options and exit codes that need no bus."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from qmf_shell.main import build_parser, main


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["--nonsense"], "--nonsense"),
        (["extra"], "extra"),
        (["--timeout", "x"], "'x'"),
        (["--timeout", "-1"], "'-1'"),
        (["--interval", "0"], "'0'"),
        (["-b", "localhost", "--interval", "1"], "--interval"),
        (["-c"], "-c"),
        (["--json", "--csv", "-c", "list"], "--csv"),
    ],
)
def test_wrong_usage(args: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert word in err


def test_a_url_that_is_none_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for brokers in (["-b", "http://x"], ["-b", "http://x", "-b", "http://y"]):
        assert main([*brokers, "-c", "list"]) == 64
        out, err = capsys.readouterr()
        assert (out, err.count("\n")) == ("", 1)
        assert "'http://x' is not a bus URL" in err


@pytest.mark.parametrize(("option", "word"), [("--help", "-c COMMAND"), ("--version", "qmf-shell ")])
def test_help_and_version(option: str, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([option]) == 0
    assert word in capsys.readouterr().out


def test_defaults() -> None:
    options = build_parser().parse_args([])
    assert (options.broker, options.inputs, options.timeout, options.interval) == ([], [], 10.0, None)


def test_commands_and_files_keep_their_order() -> None:
    options = build_parser().parse_args(["-c", "list", "-f", "a.qmf", "--command", "agents", "--file", "-"])
    assert options.inputs == [("command", "list"), ("file", "a.qmf"), ("command", "agents"), ("file", "-")]


@pytest.mark.parametrize(
    ("config", "parts"),
    [
        ("pager = maybe", ["config.toml"]),
        ('pager = "maybe"', ["config.toml", "pager must be auto or off", "'maybe'"]),
        ('colour = "red"', ["no setting 'colour'"]),
        ("interval = true", ["interval must be a text or a number"]),
        ("interval = 0", ["interval must be a number above 0"]),
        ('brokers = "mq1"', ["brokers must be a list of URLs"]),
        ("[aliases]\nq = 1", ["aliases must be a table of texts"]),
        ('[aliases]\n"a b" = "list"', ["'a b' is not one plain word"]),
        ('[aliases]\nq = ""', ["q stands for nothing"]),
    ],
)
def test_wrong_settings_are_one_line(
    config: str, parts: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(config)
    assert main(["--config", str(path), "-c", "list"]) == 64
    (line,) = capsys.readouterr().err.splitlines()
    for part in parts:
        assert part in line


@pytest.mark.parametrize("option", ["--config", "-f"])
def test_files_that_are_not_there(option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([option, str(tmp_path / "nosuch")]) == 64
    (line,) = capsys.readouterr().err.splitlines()
    assert "nosuch" in line
    assert "No such file" in line or "no such file" in line


def refused_url() -> str:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"amqp://127.0.0.1:{probe.getsockname()[1]}"


def test_a_refused_connection_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    url = refused_url()
    assert main(["-b", url, "-c", "list", "--timeout", "5"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert url in err
    assert "refused" in err.lower()


def test_a_bad_url_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["-b", "amqp://:nonsense:", "-c", "list"]) == 64
    (line,) = capsys.readouterr().err.splitlines()
    assert "nonsense" in line


@pytest.mark.slow
@pytest.mark.parametrize("redirect", [">&-", "2>&-"])
def test_closed_streams(redirect: str) -> None:
    command = f"exec {sys.executable} -m qmf_shell.main -b {refused_url()} -c list {redirect}"
    env = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry)}
    run = subprocess.run(["/bin/sh", "-c", command], capture_output=True, text=True, timeout=60, check=False, env=env)
    assert run.returncode == 2, run
    assert "Traceback" not in run.stdout + run.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("module", "unwanted"),
    [
        ("qmf_shell.main", ["asyncio", "rich", "prompt_toolkit", "attrs", "qmf.console", "qmf.broker", "proton"]),
        ("qmf_shell.modes.batch", ["prompt_toolkit", "rich.table"]),
        ("qmf_shell.session.opening", ["prompt_toolkit", "qmf.broker", "qmf.hostagent", "psutil"]),
    ],
)
def test_importing_loads_no_more_than_is_needed(module: str, unwanted: list[str]) -> None:
    code = f"import {module}, sys; print('\\n'.join(sys.modules))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert [name for name in unwanted if name in run.stdout.split()] == []
