"""Makes the picture of qmf-shell for the README: a real session in a pseudo-terminal, as SVG and as text.

An embedded broker and an agent with invented queues run in this process; `qmf-shell` runs in a terminal that is drawn
into memory, and keys are typed into it. What would be another number each time (a port) is written over, so
that the same program makes the same picture.

    python docs/demo/shell_picture.py --out docs/demo
"""

from __future__ import annotations

import argparse
import itertools
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar
from uuid import UUID

import pexpect
import pyte
from rich.style import Style
from rich.text import Text
from terminal_svg import terminal_svg

from qmf.agent import Agent, Attribute, CounterAttribute, ManagedObject, ReferenceAttribute
from qmf.broker import EmbeddedBroker
from qmf.schema import TYPES, Access, Argument, ClassSchema, Direction, Method, Property, Statistic

#: More rows than are filled: nothing scrolls away, however quick the machine is.
COLUMNS, ROWS = 92, 40
#: Stands in the picture in place of the broker's port; of as many digits as those that systems give.
PORT = 55672
#: Seconds to wait for the program to draw something.
PATIENCE = 60.0
#: What each step types, and what must then be on the screen.
STEPS = (
    ("list queue where depth > 100 sort depth desc\r", r"invoices +230"),
    ("call -n queue where depth > 1000 purge\r", r"would be called on 2 objects"),
    ("refs orders\r", r"from +\d+ +subscription"),
    ("call orders \t", r"purge +Discard messages"),
)


class Queue(ManagedObject):
    """A queue of an invented broker."""

    _qmf_schema_: ClassVar[ClassSchema] = ClassSchema(
        package="org.example.broker",
        name="Queue",
        hash=UUID(int=0x51),
        desc="A queue of messages",
        properties=(Property(name="name", type=TYPES["sstr"], access=Access.RC, index=True, desc="Name of the queue"),),
        statistics=(
            Statistic(name="depth", type=TYPES["uint32"], unit="message", desc="Messages that wait"),
            Statistic(name="enqueued", type=TYPES["count64"], unit="message", desc="Messages that came"),
        ),
        methods=(
            Method(
                name="purge",
                desc="Discard messages",
                arguments=(
                    Argument(name="request", type=TYPES["uint32"], unit="message", desc="How many; 0 for all"),
                    Argument(name="discarded", type=TYPES["uint32"], direction=Direction.OUT, unit="message"),
                ),
            ),
        ),
    )

    name = Attribute[str]("name")
    depth = Attribute[int]("depth")
    enqueued = CounterAttribute("enqueued")


class Subscription(ManagedObject):
    """A subscription of a queue."""

    _qmf_schema_: ClassVar[ClassSchema] = ClassSchema(
        package="org.example.broker",
        name="Subscription",
        hash=UUID(int=0x52),
        desc="A subscription of a queue",
        properties=(
            Property(name="name", type=TYPES["sstr"], access=Access.RC, index=True),
            Property(name="queueRef", type=TYPES["objId"], access=Access.RC, parent_ref=True),
        ),
    )

    name = Attribute[str]("name")
    queueRef = ReferenceAttribute("queueRef")


def add_objects(agent: Agent) -> None:
    """Fill the agent with what the picture shows."""
    for name, depth in (("orders", 14_203), ("invoices", 230), ("returns", 3_118), ("audit", 0), ("mail", 57)):
        queue = Queue(name=name)
        queue.depth = depth
        agent.add(queue)
        if name == "orders":
            agent.add(Subscription(name="warehouse", queueRef=queue))


class Screen(pyte.Screen):
    """A screen that answers requests for the position of the cursor."""

    child: pexpect.spawn | None = None

    def write_process_input(self, data: str) -> None:
        """Send an answer of the terminal to the program."""
        if self.child is not None:
            self.child.send(data)


class Terminal:
    """qmf-shell on a screen in memory."""

    def __init__(self, url: str, home: str, columns: int = COLUMNS, rows: int = ROWS) -> None:
        self.screen = Screen(columns, rows)
        self._stream = pyte.Stream(self.screen)
        path = os.pathsep.join(entry for entry in sys.path if entry)
        env = {"HOME": home, "PATH": os.defpath, "TERM": "xterm-256color", "PYTHONPATH": path, "LANG": "C.UTF-8"}
        self.child = pexpect.spawn(
            sys.executable,
            ["-m", "qmf_shell.main", "-b", url],
            env=env,
            dimensions=(rows, columns),
            encoding="utf-8",
        )
        self.child.delaybeforesend = None
        self.screen.child = self.child

    def until(self, seen: Callable[[list[str]], bool]) -> None:
        """Read until the screen is as wanted."""
        end = time.monotonic() + PATIENCE
        while not seen(list(self.screen.display)):
            if time.monotonic() > end:
                raise SystemExit("the program did not draw what was expected:\n" + "\n".join(self.screen.display))
            try:
                data = self.child.read_nonblocking(65536, 0.1)
            except pexpect.TIMEOUT:
                continue
            self._stream.feed(data)

    def ready(self) -> None:
        """Wait for an empty prompt where the cursor is."""
        self.until(
            lambda lines: lines[self.screen.cursor.y].rstrip() == "qmf>" and self.screen.cursor.x == len("qmf> ")
        )

    def settle(self) -> None:
        """Read until nothing more comes for a moment: what is on the screen is drawn whole then."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            try:
                self._stream.feed(self.child.read_nonblocking(65536, 0.2))
            except pexpect.TIMEOUT:
                return

    def type(self, keys: str, pattern: str) -> None:
        """Type, and wait until some line matches."""
        self.child.send(keys)
        self.until(lambda lines: any(re.search(pattern, line) for line in lines))


def drawn(screen: pyte.Screen, port: int, *, whole: bool = False) -> list[Text]:
    """The screen as lines with their styles; the broker's port always the same. Empty lines only if `whole`."""
    lines = []
    for row in range(screen.lines):
        line = Text(end="\n")
        chars = [screen.buffer[row][column] for column in range(screen.columns)]
        for style, group in itertools.groupby(chars, _style):
            line.append("".join(char.data for char in group), style)
        spans = line.spans
        line = Text(line.plain.replace(str(port), str(PORT)), end="\n")
        line.spans = spans
        if whole or line.plain.strip():
            lines.append(line)
    return lines


def _style(char: pyte.screens.Char) -> Style:
    colours = [None if name == "default" else _colour(name) for name in (char.fg, char.bg)]
    return Style(
        color=colours[0],
        bgcolor=colours[1],
        bold=char.bold,
        reverse=char.reverse,
        underline=char.underscore,
        strike=char.strikethrough,
    )


def _colour(name: str) -> str:
    """pyte's name of a colour, as rich writes it."""
    if re.fullmatch("[0-9a-f]{6}", name):
        return f"#{name}"
    return {"brown": "yellow"}.get(name, name.replace("bright", "bright_").replace("brown", "yellow"))


def make() -> tuple[str, str]:
    """The picture as SVG and as text."""
    with (
        tempfile.TemporaryDirectory() as home,
        EmbeddedBroker() as broker,
        Agent.run_in_thread(broker.url, vendor="example.org", product="broker", instance="1", interval=1) as thread,
    ):
        add_objects(thread.agent)
        terminal = Terminal(broker.url, home)
        try:
            for keys, pattern in STEPS:
                terminal.ready()
                terminal.type(keys, pattern)
            lines = drawn(terminal.screen, broker.port)
        finally:
            terminal.child.close(force=True)
    text = "".join(f"{line.plain.rstrip()}\n" for line in lines)
    return terminal_svg(lines, COLUMNS, "qmf-shell"), text


def main(argv: Sequence[str] | None = None) -> int:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description="Make the README's picture of qmf-shell.")
    parser.add_argument("--out", metavar="FOLDER", default="docs/demo", help="where to (default: %(default)s)")
    options = parser.parse_args(argv)
    picture, text = make()
    folder = Path(options.out)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shell.svg").write_text(picture, encoding="utf-8")
    (folder / "shell.txt").write_text(text, encoding="utf-8")
    print(text, end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
