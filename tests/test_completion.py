"""`--print-completion` of the commands, in real shells."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pexpect
import pytest
from support.processes import command, run

from qmf import _entry

pytestmark = pytest.mark.slow

COMMANDS = {
    "qmf-broker": _entry.broker,
    "qmf-codegen": _entry.codegen,
    "qmf-host-agent": _entry.host_agent,
    "qmf-pipeline": _entry.pipeline,
    "qmf-printevents": _entry.printevents,
    "qmf-shell": _entry.shell,
    "qmf-stat": _entry.stat,
    "qmf-web": _entry.web,
    "qpid-config": _entry.qpid_config,
    "qpid-printevents": _entry.qpid_printevents,
    "qpid-queue-stats": _entry.qpid_queue_stats,
    "drain": _entry.drain,
    "spout": _entry.spout,
    "qpid-route": _entry.qpid_route,
    "qpid-stat": _entry.qpid_stat,
    "qpid-tool": _entry.qpid_tool,
}
PROMPT = "ready> "


def script(name: str, shell: str) -> str:
    done = run([command(name), "--print-completion", shell])
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh"])
@pytest.mark.parametrize(("name", "entry"), COMMANDS.items())
def test_every_command_has_a_script(
    name: str, entry: Callable[[], int], shell: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [name, "--print-completion", shell])
    try:
        code: object = entry()
    except SystemExit as leaving:
        code = leaving.code
    out, err = capsys.readouterr()
    assert (code, err) == (0, "")
    assert re.search(rf"(complete -o bashdefault -F \S+ |#compdef ){name}$", out, re.MULTILINE)
    assert "--version" in out


def test_another_shell_is_wrong_usage() -> None:
    done = run([command("qmf-stat"), "--print-completion", "csh"])
    assert done.returncode == 64
    assert "invalid choice: 'csh'" in done.stderr


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with two contexts, and a folder of its own with a certificate."""
    settings = tmp_path / "qmf-shell"
    settings.mkdir()
    text = '[contexts.laboratory]\nurl = "mq1"\n[contexts.production]\nurl = "mq2"\n'
    (settings / "config.toml").write_text(text, encoding="utf-8")
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "authority.pem").touch()
    return tmp_path


def completed(shell: list[str], begin: str, home: Path, typed: str) -> str:
    """The line that a shell makes of `typed` after Tab."""
    environment = {
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
        "TERM": "dumb",
        "PS1": PROMPT,
        "INPUTRC": "/dev/null",
    }
    with pexpect.spawn(
        shell[0], shell[1:], cwd=str(home / "work"), env=environment, encoding="utf-8", timeout=30, dimensions=(40, 200)
    ) as child:
        child.sendline(f"{begin}; PS1='{PROMPT}'; echo started-$((6*7))")
        child.expect("started-42\r\n")
        child.expect(PROMPT)
        child.send(f"{typed}\t")
        # What was typed, and what Tab added to it, up to the next blank.
        child.expect(re.escape(typed) + r"([^\s\x07]+) ")
        assert isinstance(child.match, re.Match)
        return str(child.match[1])


CASES = [
    ("qmf-shell", "qmf-shell --conte", "xt"),
    ("qmf-shell", "qmf-shell --context lab", "oratory"),
    ("qmf-stat", "qmf-stat --ca auth", "ority.pem"),
    ("qmf-stat", "qmf-stat exch", "anges"),
    ("qmf-pipeline", "qmf-pipeline recor", "d"),
    ("qmf-pipeline", "qmf-pipeline record --context prod", "uction"),
    ("qmf-broker", "qmf-broker --hash", "-password"),
]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize(("name", "typed", "added"), CASES)
def test_bash_completes(name: str, typed: str, added: str, home: Path) -> None:
    path = home / "completion"
    path.write_text(script(name, "bash"), encoding="utf-8")
    bash = ["bash", "--norc", "--noprofile", "-i"]
    assert completed(bash, f"source {path}; bind 'set enable-bracketed-paste off'", home, typed) == added


@pytest.mark.skipif(shutil.which("zsh") is None, reason="zsh is not installed")
@pytest.mark.parametrize(("name", "typed", "added"), CASES)
def test_zsh_completes(name: str, typed: str, added: str, home: Path) -> None:
    functions = home / "functions"
    functions.mkdir()
    (functions / f"_{name}").write_text(script(name, "zsh"), encoding="utf-8")
    begin = (
        f"fpath=({functions} $fpath); autoload -Uz compinit; compinit -u -D; unsetopt beep; unset zle_bracketed_paste"
    )
    assert completed(["zsh", "-f", "-i"], begin, home, typed) == added
