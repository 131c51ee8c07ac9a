"""The real program: in a pseudo-terminal, from a pipe, one-shot."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from shell.terminals import PROGRAM, WAIT_LIMIT, Terminal, environment, run

pytestmark = pytest.mark.slow


def test_a_session(terminal: Terminal, url: str) -> None:
    lines = terminal.ready()
    assert any(f"Connected to {url}, 1 agent." in line for line in lines)
    assert any("Type help" in line for line in lines)
    terminal.sees(rf"{re.escape(url)}  1 agent")

    terminal.enter("list")
    terminal.sees(r"qmf\.host +memory +1 +0$")
    terminal.ready()
    terminal.enter("list memory")
    terminal.sees(r"^ +101 +physical ")
    terminal.ready()
    terminal.enter("show 101")
    terminal.sees(r"config +total +[\d.]+ GB")
    terminal.ready()
    terminal.enter("lisst")
    terminal.sees(r"error: no command 'lisst'; did you mean list")
    terminal.ready()
    terminal.leave()


def test_tab_opens_a_menu_and_fills_in(terminal: Terminal) -> None:
    terminal.ready()
    terminal.child.send("list \t")
    terminal.sees(r"filesystem +A mounted filesystem")
    terminal.child.send("mem\t")
    terminal.sees(r"^qmf> list memory")
    terminal.enter("")
    terminal.sees(r"101 +physical ")
    terminal.ready()
    terminal.child.send("show ")
    terminal.sees(r"^qmf> show$")
    terminal.child.send("\t")
    terminal.sees(r"101 +memory physical")
    terminal.child.send("\x03")
    terminal.ready()
    terminal.enter("quit")
    assert terminal.end() == 0


def test_ctrl_c_clears_the_line_and_ends_following(terminal: Terminal) -> None:
    terminal.ready()
    terminal.child.send("nonsense")
    terminal.sees(r"^qmf> nonsense")
    terminal.child.send("\x03")
    terminal.ready()
    terminal.enter("events -f -p")
    terminal.sees(r"^Waiting for events")
    terminal.child.send("\x03")
    terminal.ready()
    terminal.enter("agents")
    terminal.sees(r"^1 agent")
    terminal.ready()
    terminal.leave()


def test_the_embedded_default(tmp_path: Path) -> None:
    with Terminal(["--interval", "1"], environment(tmp_path), columns=60) as terminal:
        terminal.ready()
        terminal.sees(r"embedded broker")
        terminal.enter("list filesystem")
        terminal.ready()
        terminal.enter("exit")
        assert terminal.end() == 0


def test_no_color(url: str, tmp_path: Path) -> None:
    terminal = Terminal(["-b", url, "-c", "list", "-c", "nosuch"], environment(tmp_path, NO_COLOR="1"))
    assert terminal.end() == 1
    # A line that shows progress, where that takes long, is erased: ESC [ K.
    assert "\x1b" not in terminal.raw.replace("\x1b[K", "")
    assert "=====" in terminal.raw


def test_colour_on_a_terminal(url: str, tmp_path: Path) -> None:
    terminal = Terminal(["-b", url, "-c", "list"], environment(tmp_path))
    assert terminal.end() == 0
    assert "\x1b[1m" in terminal.raw


def test_one_shot(url: str, tmp_path: Path) -> None:
    done = run(tmp_path, "-b", url, "-c", "list memory", "-c", "show 101")
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert "qmf.host:memory physical" in done.stdout


def test_a_pipe(url: str, tmp_path: Path) -> None:
    done = run(tmp_path, "-b", url, stdin="# first\nagents\n! then\nlist nosuch\nlist memory\n")
    assert done.returncode == 1
    assert done.stderr.startswith("error: line 4: no class 'nosuch'")
    assert len(done.stderr.splitlines()) == 1
    assert "1 agent" in done.stdout
    assert "physical" in done.stdout


def test_an_empty_pipe(url: str, tmp_path: Path) -> None:
    done = run(tmp_path, "-b", url, stdin="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_reader_that_has_seen_enough(url: str, tmp_path: Path) -> None:
    with subprocess.Popen(
        [*PROGRAM, "-b", url, *["-c", "schema process"] * 50],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(tmp_path),
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(WAIT_LIMIT) == 0


def test_a_full_disk(url: str, tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, "-b", url, "-c", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env=environment(tmp_path),
            timeout=WAIT_LIMIT,
            check=False,
        )
    assert (done.returncode, done.stderr) == (1, "error: cannot write the output: No space left on device\n")


def test_a_terminal_without_unicode(url: str, tmp_path: Path) -> None:
    done = run(tmp_path, "-b", url, "-c", "agents", "-c", "list grüße", env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == 1
    assert "1 agent" in done.stdout
    assert "no class 'gr\\xfc\\xdfe'" in done.stderr


def test_json(url: str, tmp_path: Path) -> None:
    done = run(tmp_path, "-b", url, "--json", "-c", "list memory")
    assert '"index": "physical"' in done.stdout
