"""The shell's programs with named contexts and passwords, on a broker with users."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from shell.terminals import Terminal, environment, run
from support.processes import command

from qmf.broker import EmbeddedBroker

pytestmark = pytest.mark.slow

STAT = (command("qmf-stat"),)


@pytest.fixture(scope="module")
def guarded() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(users={"ann": "very-secret"}) as broker:
        yield broker


@pytest.fixture
def home(guarded: EmbeddedBroker, tmp_path: Path) -> Path:
    """A home folder whose settings have the context ``lab``."""
    folder = tmp_path / "qmf-shell"
    folder.mkdir()
    text = f'[contexts.lab]\nurl = "{guarded.url}"\nuser = "ann"\ncolour = "magenta"\n'
    (folder / "config.toml").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_session_asks_for_the_password_and_names_its_context(home: Path) -> None:
    with Terminal(["--context", "lab"], environment(home)) as terminal:
        terminal.sees("Password of ann at amqp://127.0.0.1")
        terminal.child.send("very-secret\r")
        terminal.sees("^qmf lab>$")
        assert "very-secret" not in terminal.raw
        assert "\x1b[0;35;1mqmf lab> " in terminal.raw


def test_commands_take_the_password_from_the_environment(
    home: Path, guarded: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = run(home, "--context", "lab", "-c", "agents")
    assert done.returncode == 64
    assert done.stderr.startswith("qmf-shell: no password for user 'ann': set QMF_PASSWORD")
    monkeypatch.setenv("QMF_PASSWORD", "very-secret")
    assert run(home, "--context", "lab", "-c", "agents").returncode == 0
    monkeypatch.setenv("QMF_CONTEXT", "lab")
    assert run(home, "agents", "--json", program=STAT).returncode == 0
    monkeypatch.setenv("QMF_PASSWORD", "wrong-secret")
    done = run(home, "agents", program=STAT)
    assert done.returncode == 2
    assert "user 'ann' was refused (SCRAM-SHA-512)" in done.stderr
    assert "secret" not in done.stderr
    done = run(home, "agents", "--context", "lib", program=STAT)
    assert done.returncode == 64
    assert done.stderr == "error: no context 'lib'; did you mean lab?\n"
    done = run(home, "agents", "-b", guarded.url, "--context", "lab", program=STAT)
    assert done.stderr == "error: --context and a URL of a broker: give one of them\n"
