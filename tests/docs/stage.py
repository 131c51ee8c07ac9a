"""Where a page is tried: a folder, and the programs that the page starts, on ports of the system's choice."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from docs.compare import Expected
from docs.page import Command
from docs.typed_shell import TypedShell
from shell.terminals import environment
from support.processes import Process
from support.waiting import PATIENCE

#: The broker of the pages, as they write it.
PLACE = "127.0.0.1:5672"
#: Programs that run until they are ended.
_SERVICE = re.compile(r"qmf-broker|qmf-host-agent|qmf-pipeline record|qmf-printevents|.*&$")
#: Programs that connect to the broker of the pages without being told.
_CONNECTING = re.compile(r"qmf-host-agent|qmf-pipeline record")
#: Programs that only look, mostly: they are run again until they see what the page shows.
_LOOKING = re.compile(r"qmf-shell|qmf-stat")


class Stage:
    """Runs the commands of one page. Everything that they start is ended with the block.

    Attributes:
        folder: where files of the page are; the process's current directory.
        url: of the page's broker, once there is one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self._stack = contextlib.ExitStack()
        self._shell: TypedShell | None = None
        # Programs are found as a user finds them, and find this checkout.
        self._environment = environment(folder, PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stack.close()

    @property
    def _place(self) -> str:
        return self.url.removeprefix("amqp://")

    def put_broker(self, text: str) -> str:
        """A text of the page with the broker that there is in place of the page's."""
        pattern = r"\b(127\.0\.0\.1|localhost)(:5672\b|(?![:\w.]))"
        return re.sub(pattern, self._place, text) if self.url else text

    def as_on_page(self, text: str) -> str:
        """What was printed, with the page's broker in place of the one that there is."""
        return text.replace(self._place, PLACE).replace(f":{self._place.split(':')[1]}", ":5672") if self.url else text

    def run(self, command: Command, patience: float = PATIENCE) -> str:
        """Run a command; what is wrong with it, or with what it prints.

        Those that only look are repeated until they print what the page shows, since agents publish and answer when
        they can. One whose output isn't shown must succeed.
        """
        text = command.text
        if command.prompt == "qmf>":
            return self._type(command, patience)
        if re.fullmatch(r"make shell|qmf-shell( -b \S+)?", text):
            return self._open(command)
        if _SERVICE.match(text):
            return self._start(command, patience)
        if text.startswith("cd "):
            os.chdir(text.removeprefix("cd "))
            return ""
        if command.expected is None:
            code, printed = self._run_line(text)
            return f"  exit code {code}; it printed\n{printed}" if code else ""
        return self._until_it_fits(
            command.expected, patience if _LOOKING.match(text) else 0.0, lambda: self._run_line(text)[1]
        )

    def run_python(self, path: Path, expected: Expected | None, patience: float = PATIENCE) -> str:
        """Run a program of the page, until it prints what the page shows; one that shows nothing stays."""
        args = [sys.executable, str(path)]
        if expected is None:
            self._stack.callback(Process(*args, env=self._environment).end)
            return ""
        return self._until_it_fits(expected, patience, lambda: self._run(args)[1])

    def _start(self, command: Command, patience: float) -> str:
        text = command.text.removesuffix("&").strip()
        process = Process("sh", "-c", f"exec {self._line(text)}", env=self._environment)
        self._stack.callback(process.end)
        if text.startswith("qmf-broker"):
            self.url = process.wait_for("amqp://").split()[-1]
        elif text.startswith("qmf-host-agent"):
            process.wait_for("Host agent")
        elif command.expected is not None:
            return self._until_it_fits(command.expected, patience, lambda: "\n".join(process.said()))
        return ""

    def _until_it_fits(self, expected: Expected, patience: float, answer: Callable[[], str]) -> str:
        end = time.monotonic() + patience
        while fault := expected.difference(self.as_on_page(answer())):
            if time.monotonic() > end:
                return fault
            time.sleep(0.1)
        return ""

    def _line(self, text: str) -> str:
        """A command line of the page as it is run."""
        if text.startswith("qmf-broker"):
            return re.sub(r" --port \d+", "", text) + " --port 0"
        if _CONNECTING.match(text) and " -b " not in text:
            return f"{text} -b {self.url}"
        return self.put_broker(text)

    def _run_line(self, text: str) -> tuple[int, str]:
        return self._run(["sh", "-c", self._line(text)])

    def _run(self, args: list[str]) -> tuple[int, str]:
        done = subprocess.run(
            args,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE * 2,
            env=self._environment,
            check=False,
        )
        return done.returncode, done.stdout

    def _open(self, command: Command) -> str:
        """Open the shell at a terminal, for the lines that follow."""
        _, *args = self._line(command.text.replace("make shell", "qmf-shell")).split()
        self._shell = self._stack.enter_context(TypedShell(args, self._environment))
        shown = self._shell.greeting()
        if not self.url and (found := re.search(r"amqp://127\.0\.0\.1:\d+", shown)):
            self.url = found[0]  # of the embedded broker
        return self._until_it_fits(command.expected, 0.0, lambda: shown) if command.expected is not None else ""

    def _type(self, command: Command, patience: float) -> str:
        if self._shell is None:
            self._shell = self._stack.enter_context(TypedShell(["-b", self.url], self._environment))
            self._shell.greeting()
        text, shell = self.put_broker(command.text), self._shell
        expected = command.expected or Expected("...")
        if not shell.is_view(text):
            return self._until_it_fits(expected, patience, lambda: shell.answer(text))
        with shell.view(text) as shown:
            return self._until_it_fits(expected, patience, shown)
