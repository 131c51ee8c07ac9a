"""`qpid-tool` and `qpid-printevents` as a user of the published ones runs them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from qmf_shell import main as shell
from qmf_shell import printevents as events
from qmf_shell.published_names import printevents, tool
from shell.terminals import WAIT_LIMIT, environment
from support.managed_brokers import NEVER

from qmf import __version__
from qmf.broker import EmbeddedBroker

TOOL = (sys.executable, "-W", "error", "-c", "import sys; from qmf_shell.published_names import tool; sys.exit(tool())")

#: The session of the manual's chapter about qpid-tool, with the names of today's classes. Short ids begin with 101.
SESSION = """\
help
list
list active
list qpid.system
list 101
list broker
call 102 echo 1 hello
schema queue
list queue
list org.apache.qpid.broker.queue
list 103
call 103 purge 5
list queue all
list queue active
set time-format long
list qpid.queue 103-104
quit
"""


@pytest.mark.slow
def test_the_manuals_session(tmp_path: Path) -> None:
    with EmbeddedBroker(management=NEVER, queues=["pub_start", "pub_done"]) as broker:
        ended = subprocess.run(
            [*TOOL, f"guest/guest@127.0.0.1:{broker.port}", "--timeout", "30"],
            input=SESSION,
            capture_output=True,
            text=True,
            timeout=2 * WAIT_LIMIT,
            env=environment(tmp_path),
            check=False,
        )
    assert ended.returncode == 0, ended.stderr
    assert "a password in a URL" in ended.stderr
    assert "error" not in ended.stderr
    out = ended.stdout
    lines = [line.split() for line in out.splitlines()]
    assert ["Package", "Class", "Active", "Destroyed"] in lines
    assert any(line[1:3] == ["system", "1"] for line in lines if len(line) > 3)
    assert "org.apache.qpid.broker:system, 1 object" in out
    listed = lines.index(["ID", "Created", "Destroyed", "Index"])
    assert lines[listed + 2][0] == "101"
    assert re.fullmatch(r"\d\d:\d\d:\d\d", lines[listed + 2][1])
    assert lines[listed + 2][2] == "-"
    assert [line[0] for line in lines if line[1:] and line[-1] in ("pub_start", "pub_done")][:4] == [
        *("103", "104"),
        *("103", "104"),
    ]
    assert "purge of 103 queue pub_done: done" in out
    assert sum(line == ["Type", "Element", "103", "104"] for line in lines) == 3
    assert lines[-1][:1] == ["agent"]
    assert any(re.fullmatch(r"\d{4}-\d\d-\d\d", word) for line in lines[-6:] for word in line)
    assert "osName" in out
    assert "Class org.apache.qpid.broker:Queue" in out
    assert any(line[:3] == ["msgTotalEnqueues", "count64", "message"] for line in lines)
    assert "pub_start" in out
    assert "hello" in out


def recorded(module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The arguments that the `main` of a module gets from now on, instead of being run."""
    calls: list[list[str]] = []

    def main(argv: list[str], *, abbreviations: bool, **options: object) -> int:
        assert abbreviations
        calls.append(argv)
        return 0

    monkeypatch.setattr(module, "main", main)
    return calls


@pytest.mark.parametrize(
    ("words", "passed"),
    [
        ([], ["-b", "localhost"]),
        (["guest/guest@mq1:10000"], ["-b", "guest/guest@mq1:10000"]),
        (["-b", "mq1", "-c", "list queue"], ["-b", "mq1", "-c", "list queue"]),
        (["-c", "list mq1", "mq1"], ["-b", "mq1", "-c", "list mq1"]),
        (["mq1", "--ssl-certificate", "c", "--ssl-key=k"], ["-b", "mq1", "--cert", "c", "--key", "k"]),
        (["--sasl-mechanism", "PLAIN", "--sasl-service-name", "qpidd", "mq1"], ["-b", "mq1"]),
        (["-b", "mq1", "session.qmf"], ["-b", "mq1", "session.qmf"]),
        (["--context", "lab"], ["--context", "lab"]),
    ],
)
def test_options_of_the_tool(words: list[str], passed: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    calls = recorded(shell, monkeypatch)
    assert tool(words) == 0
    assert calls == [passed]


def test_options_of_printevents(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = recorded(events, monkeypatch)
    assert printevents(["--heartbeats", "--ha-admin", "--sasl-mechanism=ANONYMOUS", "mq1", "guest/guest@mq2"]) == 0
    assert calls == [["--heartbeats", "mq1", "guest/guest@mq2"]]


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["--ssl-key", "k"], "missing --ssl-certificate (required by --ssl-key)"),
        (["--sasl-mechanism", "GSSAPI"], "only ANONYMOUS, EXTERNAL, PLAIN are supported, not 'GSSAPI'"),
        (["--ssl-certificate"], "--ssl-certificate needs a value"),
    ],
)
def test_wrong_usage(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    for program in (tool, printevents):
        assert program(words) == 64
        out, err = capsys.readouterr()
        assert out == ""
        assert reason in err
        assert err.count("\n") == 1


def test_the_version_names_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert tool(["mq1", "--version"]) == 0
    assert printevents(["--version"]) == 0
    assert capsys.readouterr().out == f"qpid-tool {__version__}\nqpid-printevents {__version__}\n"


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    for program, ours in ((tool, "qmf-shell"), (printevents, "qmf-printevents")):
        assert program(["--help"]) == 0
        out = capsys.readouterr().out
        assert "--ssl-certificate FILE" in out
        assert f"usage: {ours}" in out
