"""Where a page is tried: a folder, and the programs that the page starts, on ports of the system's choice."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
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
from support.forks import ForkedCommand, script_of
from support.processes import Process
from support.waiting import WAIT_LIMIT

#: The broker of the pages, as they write it.
PLACE = "127.0.0.1:5672"
#: The web server of the pages, as they write it.
WEB = "127.0.0.1:8672"
#: Programs that run until they are ended.
_SERVICE = re.compile(
    r"qmf-broker(?!.*--(check|salvage)-store)|qmf-web|qmf-host-agent|qmf-pipeline record|qmf-printevents|.*&$"
)
#: Programs that connect to the broker of the pages without being told.
_CONNECTING = re.compile(r"qmf-host-agent|qmf-pipeline (record|correlate .*--raise)")
#: Programs that only look, mostly: they are run again until they see what the page shows.
_LOOKING = re.compile(r"qmf-shell|qmf-stat")


def _script(line: str) -> list[str] | None:
    """A command line that a shell would only split into words, if it starts a script of this project."""
    if re.search(r"[|&;<>()$`*?~#!{}\[\]\\\n]", re.sub(r"'[^']*'|\"[^\"$`\\]*\"", "", line)):
        return None
    name, *words = shlex.split(line)
    found = [str(Path(sys.executable).parent / name), *words]
    return found if script_of(found) is not None else None


class Stage:
    """Runs the commands of one page. Everything that they start is ended with the block.

    Attributes:
        folder: where files of the page are; the process's current directory.
        url: of the page's broker, once there is one.
        web: host and port of the page's web server, once there is one.
        wrong: what was printed instead of what was expected.
        programs: what runs in this process instead of one of its own, by the name of the program. It gets the command
            line, and returns the exit code and what is printed.
        absolute: folders of the page whose names must be absolute: a program that is shared has another current one.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = ""
        self.web = ""
        self.programs: dict[str, Callable[[str], tuple[int, str]]] = {}
        self.absolute: tuple[str, ...] = ()
        self.wrong: dict[Expected, str] = {}
        self._stack = contextlib.ExitStack()
        self._shell: TypedShell | None = None
        self._services: dict[str, Process] = {}
        # Programs are found as a user finds them, and find this checkout.
        self._environment = environment(folder, PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._stack.close()

    @property
    def _place(self) -> str:
        return self.url.removeprefix("amqp://")

    def as_here(self, text: str) -> str:
        """A text of the page with the broker and the folders that there are in place of the page's."""
        pattern = r"\b(127\.0\.0\.1|localhost)(:5672\b|(?![:\w.]))"
        text = text.replace(WEB, self.web) if self.web else text
        text = re.sub(pattern, self._place, text) if self.url else text
        for name in self.absolute:
            text = re.sub(rf"(?<=[ \"']){name}(?=[/ \"']|$)", str(self.folder / name), text)
        return text

    def as_on_page(self, text: str) -> str:
        """What was printed, with the page's broker and folders in place of those that there are."""
        text = text.replace(f"{self.folder}{os.sep}", "")
        text = text.replace(self.web, WEB) if self.web else text
        return text.replace(self._place, PLACE).replace(f":{self._place.split(':')[1]}", ":5672") if self.url else text

    def run(self, command: Command, patience: float = WAIT_LIMIT) -> str:
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
        return self.until_it_fits(
            command.expected, patience if _LOOKING.match(text) else 0.0, lambda: self._run_line(text)[1]
        )

    def run_python(self, path: Path, expected: Expected | None, patience: float = WAIT_LIMIT) -> str:
        """Run a program of the page, until it prints what the page shows; one that shows nothing stays."""
        args = [sys.executable, str(path)]
        if expected is None:
            self._stack.callback(Process(*args, env=self._environment).end)
            return ""
        return self.until_it_fits(expected, patience, lambda: self._run(args)[1])

    def end(self, name: str) -> None:
        """End the newest program that stays and whose command line begins like this; its exit code must be 0."""
        process = self._service(name)
        assert process.end() == 0, f"{name} failed: {process.said()}"

    def said(self, name: str, expected: Expected, patience: float = WAIT_LIMIT) -> str:
        """Wait until such a program has printed what the page shows; what is wrong with it."""
        process = self._service(name)
        return self.until_it_fits(expected, patience, lambda: "\n".join(process.said()))

    def _service(self, name: str) -> Process:
        return next(process for text, process in reversed(self._services.items()) if text.startswith(name))

    def _start(self, command: Command, patience: float) -> str:
        text = command.text.removesuffix("&").strip()
        line = self._line(text)
        process = Process(*(_script(line) or ("sh", "-c", f"exec {line}")), env=self._environment)
        self._stack.callback(process.end)
        self._services[text] = process
        if text.startswith("qmf-broker"):
            self.url = process.wait_for("amqp://").split()[-1]
        elif text.startswith("qmf-web"):
            self.web = process.wait_for("Open http").rpartition("://")[2].strip("/")
        elif text.startswith("qmf-host-agent"):
            process.wait_for("Host agent")
        elif text.startswith("qmf-printevents"):
            process.wait_for("brokerConnected")
        if command.expected is not None and command.expected.text:
            return self.until_it_fits(command.expected, patience, lambda: "\n".join(process.said()))
        return ""

    def until_it_fits(self, expected: Expected, patience: float, answer: Callable[[], str]) -> str:
        """Ask until the answer is what the page shows, for `patience` seconds at most; what is wrong with it."""
        end = time.monotonic() + patience
        while True:
            asked = time.monotonic()
            if not (fault := expected.difference(printed := self.as_on_page(answer()))):
                return ""
            if time.monotonic() > end:
                self.wrong[expected] = printed
                return fault
            # What it waits for needs the processor as well: a program that asks is not started all the time.
            time.sleep(max(0.1, time.monotonic() - asked))

    def _line(self, text: str) -> str:
        """A command line of the page as it is run."""
        if text.startswith("qmf-broker"):
            return re.sub(r" --port \d+", "", text) + " --port 0"
        if text.startswith("qmf-web"):
            return self.as_here(f"{text} --port 0")
        if _CONNECTING.match(text) and " -b " not in text:
            return f"{text} -b {self.url}"
        return self.as_here(text)

    def _run_line(self, text: str) -> tuple[int, str]:
        line = self._line(text)
        own = self.programs.get(line.split()[0])
        return own(line) if own is not None else self._run(_script(line) or ["sh", "-c", line])

    def _run(self, args: list[str]) -> tuple[int, str]:
        if (script := script_of(args)) is not None:
            forked = ForkedCommand(*script, self._environment, merged=True)
            printed, _ = forked.communicate(None, WAIT_LIMIT * 2)
            return forked.wait(), printed
        done = subprocess.run(
            args,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            encoding="utf-8",
            timeout=WAIT_LIMIT * 2,
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
        return self.until_it_fits(command.expected, 0.0, lambda: shown) if command.expected is not None else ""

    def _type(self, command: Command, patience: float) -> str:
        if self._shell is None:
            self._shell = self._stack.enter_context(TypedShell(["-b", self.url], self._environment))
            self._shell.greeting()
        text, shell = self.as_here(command.text), self._shell
        expected = command.expected or Expected("...")
        return self.until_it_fits(expected, patience, lambda: shell.answer(text))
