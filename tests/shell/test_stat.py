"""`qmf-stat`, with a real broker."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from qmf_shell.stat import main
from shell.terminals import Terminal, environment, run
from support.processes import command

from qmf.broker import EmbeddedBroker

STAT = (command("qmf-stat"),)


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["nosuch"], "nosuch"),
        (["queues", "-c"], "one view at a time"),
        (["-n", "3"], "-i"),
        (["-i", "x"], "'x'"),
    ],
)
def test_wrong_usage(args: list[str], word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(args) == 64
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert word in err


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    assert "examples:" in capsys.readouterr().out


@pytest.mark.slow
def test_no_connection(tmp_path: Path) -> None:
    with EmbeddedBroker() as other:
        url = other.url
    done = run(tmp_path, "-b", url, "--timeout", "3", program=STAT)
    assert (done.returncode, done.stdout) == (2, "")
    assert run(tmp_path, "-b", "http://x", program=STAT).returncode == 64


@pytest.mark.slow
@pytest.mark.usefixtures("agent")
def test_views_of_a_real_broker(broker: EmbeddedBroker, tmp_path: Path) -> None:
    done = run(tmp_path, "agents", "-b", broker.url, "--json", program=STAT)
    assert [row["product"] for row in map(json.loads, done.stdout.splitlines())] == ["test"]
    done = run(tmp_path, "-b", broker.url, "-i", "0.1", "-n", "2", "--csv", program=STAT)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 3
    done = run(tmp_path, "queues", "-b", broker.url, program=STAT)
    assert (done.returncode, done.stdout) == (1, "")
    assert "is not managed by QMF" in done.stderr


@pytest.mark.slow
@pytest.mark.usefixtures("agent")
def test_a_view_on_a_terminal(broker: EmbeddedBroker, tmp_path: Path) -> None:
    with Terminal(["-b", broker.url, "-i", "0.2"], environment(tmp_path), program=STAT) as terminal:
        terminal.sees(r"managed by QMF +no")
        terminal.sees(r"every 0\.2 s")
        terminal.child.send("q")
        assert terminal.end() == 0
