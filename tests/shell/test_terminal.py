"""The real program: in a pseudo-terminal, with a screen that understands it; from a pipe; one-shot."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pexpect
import pyte
import pytest

from qmf.broker import EmbeddedBroker
from qmf.hostagent import EmbeddedHostAgent

pytestmark = pytest.mark.slow
PATIENCE = 30.0
PROGRAM = [sys.executable, "-m", "qmf_shell.main"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with EmbeddedBroker() as broker, EmbeddedHostAgent(broker.url, 0.5):
        yield broker.url


def environment(home: Path, **more: str) -> dict[str, str]:
    """The environment of the tests, without what changes the looks."""
    env = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return env | {"HOME": str(home), "XDG_STATE_HOME": str(home), "TERM": "xterm-256color", "PYTHONPATH": path} | more


class Terminal:
    """The program on a screen."""

    def __init__(self, args: Sequence[str], env: dict[str, str], columns: int = 100, rows: int = 30) -> None:
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.Stream(self.screen)
        self.raw = ""
        self.child = pexpect.spawn(
            PROGRAM[0],
            [*PROGRAM[1:], *args],
            env=env,
            dimensions=(rows, columns),
            timeout=PATIENCE,
            encoding="utf-8",
        )

    def read(self, seconds: float) -> None:
        """Take what the program writes within so many seconds."""
        try:
            data = self.child.read_nonblocking(65536, seconds)
        except pexpect.TIMEOUT:
            return
        self.raw += data
        # The program asks where the cursor is; a terminal answers.
        for _ in range(data.count("\x1b[6n")):
            self.child.send(f"\x1b[{self.screen.cursor.y + 1};{self.screen.cursor.x + 1}R")
        self._stream.feed(data)

    @property
    def lines(self) -> list[str]:
        """What is on the screen, without blank lines at the ends of lines."""
        return [line.rstrip() for line in self.screen.display]

    def until(self, check: Callable[[list[str]], bool]) -> list[str]:
        """Read until the screen is as wanted."""
        deadline = time.monotonic() + PATIENCE
        while not check(self.lines):
            assert time.monotonic() < deadline, "\n".join(self.lines)
            self.read(0.1)
        return self.lines

    def sees(self, pattern: str) -> list[str]:
        """Read until some line on the screen matches."""
        return self.until(lambda lines: any(re.search(pattern, line) for line in lines))

    def ready(self) -> list[str]:
        """Read until the program waits for a line: an empty prompt where the cursor is."""
        return self.until(lambda lines: lines[self.screen.cursor.y] == "qmf>" and self.screen.cursor.x == 5)

    def enter(self, line: str) -> None:
        """Type a line."""
        self.child.send(line + "\r")

    def end(self) -> int:
        """Read to the end; the exit code."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            try:
                self.read(0.2)
            except pexpect.EOF:
                break
        self.child.close()
        assert "Traceback" not in self.raw
        status = self.child.exitstatus
        assert isinstance(status, int)
        return status


@pytest.fixture
def terminal(url: str, tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(["-b", url], environment(tmp_path))
    yield terminal
    terminal.child.close(force=True)


def test_a_session(terminal: Terminal, url: str) -> None:
    lines = terminal.ready()
    assert any(f"Connected to {url}, 1 agent." in line for line in lines)
    assert any("Type help" in line for line in lines)
    terminal.sees(rf"{re.escape(url)}  1 agent")

    terminal.enter("list")
    terminal.sees(r"qmf\.host +memory +1$")
    terminal.ready()
    terminal.enter("list memory")
    terminal.sees(r"^ +101 .* physical$")
    terminal.ready()
    terminal.enter("show 101")
    terminal.sees(r"property +total +[\d,]+ octets")
    terminal.ready()
    terminal.enter("lisst")
    terminal.sees(r"error: no command 'lisst'; did you mean list\?")
    terminal.ready()
    terminal.child.send("\x04")
    assert terminal.end() == 0


def test_tab_opens_a_menu_and_fills_in(terminal: Terminal) -> None:
    terminal.ready()
    terminal.child.send("list \t")
    terminal.sees(r"filesystem +A mounted filesystem")
    terminal.child.send("mem\t")
    terminal.sees(r"^qmf> list memory")
    terminal.enter("")
    terminal.sees(r"101 .* physical$")
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
    terminal.enter("events -f")
    terminal.sees(r"^Waiting for events")
    terminal.child.send("\x03")
    terminal.ready()
    terminal.enter("agents")
    terminal.sees(r"^1 agent")
    terminal.ready()
    terminal.child.send("\x04")
    assert terminal.end() == 0


def test_the_embedded_default(tmp_path: Path) -> None:
    terminal = Terminal(["--interval", "1"], environment(tmp_path), columns=60)
    try:
        terminal.ready()
        terminal.sees(r"embedded broker")
        terminal.enter("list filesystem")
        terminal.ready()
        terminal.enter("exit")
        assert terminal.end() == 0
    finally:
        terminal.child.close(force=True)


def test_no_color(url: str, tmp_path: Path) -> None:
    terminal = Terminal(["-b", url, "-c", "list", "-c", "nosuch"], environment(tmp_path, NO_COLOR="1"))
    assert terminal.end() == 1
    assert "\x1b" not in terminal.raw
    assert "=====" in terminal.raw


def test_colour_on_a_terminal(url: str, tmp_path: Path) -> None:
    terminal = Terminal(["-b", url, "-c", "list"], environment(tmp_path))
    assert terminal.end() == 0
    assert "\x1b[1m" in terminal.raw


def run(
    home: Path, *args: str, stdin: str | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [*PROGRAM, *args],
        input=stdin,
        stdin=None if stdin is not None else subprocess.DEVNULL,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE,
        env=environment(home, **(env or {})),
        check=False,
    )
    assert "Traceback" not in done.stdout + done.stderr
    return done


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
        assert process.wait(PATIENCE) == 0


def test_a_full_disk(url: str, tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*PROGRAM, "-b", url, "-c", "list"],
            stdout=full,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            env=environment(tmp_path),
            timeout=PATIENCE,
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
