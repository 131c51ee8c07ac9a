"""Commands of this project as processes that are forks of one that has loaded their modules.

They are what they are otherwise: processes with standard streams, an environment and an exit code, which take signals
and are killed. What a start from nothing is like is tested by `tests/test_entry.py`.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.util
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
_LOOP = ("uvloop",) if importlib.util.find_spec("uvloop") else ()
_CLIENT = ("qmf.bus.client.network_connection", *_LOOP)
_BROKER = ("qmf.broker.daemon.cli", "qmf.broker.management.agent", *_LOOP)
_SHELL = ("qmf_shell.commands.catalogue", "qmf_shell.modes.screen", "qmf_shell.session.opening", *_CLIENT)
#: What scripts load, by their names: when they are loaded, and when they do what most tests want of them.
_MODULES: dict[str, tuple[str, ...]] = {
    "drain": ("qmf.tools.messages.drain", *_CLIENT),
    "qmf-acl": ("qmf.tools.acl.cli",),
    "qmf-broker": _BROKER,
    "qmf-codegen": ("qmf_codegen.cli", "qmf_codegen.generator"),
    "qmf-host-agent": ("qmf.hostagent.cli", "qmf.hostagent.agent", *_CLIENT),
    "qmf-pipeline": ("qmf.pipeline.cli", "deltalake", "pyarrow.parquet", *_CLIENT),
    "qmf-printevents": ("qmf_shell.printevents", *_CLIENT),
    "qmf-shell": ("qmf_shell.main", "qmf_shell.modes.batch", "qmf_shell.modes.repl", *_SHELL),
    "qmf-stat": ("qmf_shell.stat", "qmf_shell.stat_views", "qmf_shell.screens.start", *_SHELL),
    "qmf-users": ("qmf.tools.users.cli",),
    "qmf-web": ("qmf.web.application", "qmf.web.server", "qmf.web.pages"),
    "qpid-config": ("qmf.tools.config.cli", *_CLIENT),
    "qpid-queue-stats": ("qmf.tools.queue_stats", *_CLIENT),
    "qpid-route": ("qmf.tools.route.cli", *_CLIENT),
    "qpid-stat": ("qmf.tools.stat.cli", *_CLIENT),
    "spout": ("qmf.tools.messages.spout", *_CLIENT),
}
#: How the broker is started from Python, with each warning an error, up to its options.
_STRICT_BROKER = (sys.executable, "-W", "error", "-m", "qmf.broker")
#: Names of variables that an interpreter, or a module, looks at when it is loaded begin with these.
_AT_START = ("PYTHON", "LC_", "LANG", "QMF_NO_NATIVE")


def script_of(words: Sequence[str]) -> tuple[Sequence[str], tuple[str, ...]] | None:
    """A script of this project with its arguments, and the modules that it loads; None for other programs.

    A module that Python runs as a program is `-W error -m` and its name, with the arguments.
    """
    script = Path(words[0])
    if script.parent in (Path(sys.executable).parent, _EXAMPLES) and script.name in _MODULES:
        return words, _MODULES[script.name]
    if words[0] == sys.executable and words[1:] and Path(words[1]).parent == _EXAMPLES:
        return words[1:], ("qmf.console", *_CLIENT)
    if tuple(words[: len(_STRICT_BROKER)]) == _STRICT_BROKER:
        return words[1:], _BROKER
    return None


class _Starter:
    """The process that is forked; it ends with this one.

    Args:
        environment: of the process; all its forks agree with it in what is looked at when modules are loaded.
    """

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._socket, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        script = str(Path(__file__).with_name("process_starter.py"))
        with other:
            # Pipes, as commands have them: what Python makes of its standard streams depends on what they are.
            self._process = subprocess.Popen(
                [sys.executable, script],
                stdin=other.fileno(),
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
            )
        self._lock = threading.Lock()
        atexit.register(self.end)

    def start(self, request: Mapping[str, object], files: Sequence[int]) -> None:
        """Ask for a command, with its standard streams and the pipe for answers."""
        with self._lock:
            socket.send_fds(self._socket, [json.dumps(request).encode()], files)

    def end(self) -> str:
        """End the process; what it wrote to standard error."""
        self._socket.close()
        _, errors = self._process.communicate()
        return errors


#: By what processes look at when they load modules.
_STARTERS: dict[tuple[tuple[str, str], ...], _Starter] = {}


def _starter(environment: Mapping[str, str]) -> _Starter:
    key = tuple(sorted((name, text) for name, text in environment.items() if name.startswith(_AT_START)))
    if key not in _STARTERS:
        _STARTERS[key] = _Starter(environment)
    return _STARTERS[key]


class ForkedProcess:
    """A command that runs, with what `subprocess.Popen` has of its attributes and methods.

    Args:
        words: as `script_of` returns them, with
        modules: that the script loads.
        environment: of the command.
        files: its standard streams; they are closed here.
        terminal: they are a terminal, which becomes that of the command.
    """

    def __init__(
        self,
        words: Sequence[str],
        modules: Sequence[str],
        environment: Mapping[str, str],
        files: tuple[int, int, int],
        *,
        terminal: bool = False,
    ) -> None:
        answers_read, answers = os.pipe()
        request = {
            "words": list(words),
            "modules": list(modules),
            "environment": dict(environment),
            "folder": str(Path.cwd()),
            "terminal": terminal,
        }
        starter = _starter({**environment, "PYTHONWARNINGS": words[1]} if words[0] == "-W" else environment)
        starter.start(request, (*files, answers))
        for file in {*files, answers}:
            os.close(file)
        self.args = words
        self.returncode: int | None = None
        self._answers = os.fdopen(answers_read, "rb", buffering=0)
        self._lock = threading.Lock()
        self._text = b""
        while b"\n" not in self._text:
            if not (new := self._answers.read(64)):
                raise RuntimeError(f"{words} was not started: {starter.end()}")
            self._text += new
        first, _, self._text = self._text.partition(b"\n")
        self.pid = int(first)

    def _read_end(self, timeout: float | None) -> None:
        """Wait for the exit code."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._lock:
            while self.returncode is None:
                if self._text.endswith(b"\n"):
                    self.returncode = int(self._text)
                    self._answers.close()
                    break
                left = None if deadline is None else max(0.0, deadline - time.monotonic())
                if not select.select([self._answers], [], [], left)[0]:
                    break
                new = self._answers.read(64)
                if not new:
                    raise RuntimeError(f"the process that started {self.args} has ended")
                self._text += new

    def poll(self) -> int | None:
        """The exit code; None while it runs."""
        self._read_end(0)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, after its end."""
        self._read_end(timeout)
        if self.returncode is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)


class ForkedCommand(ForkedProcess):
    """A command whose standard streams are read and written here.

    Args:
        words: as `script_of` returns them, with
        modules: that the script loads.
        environment: of the command.
        stdin: `subprocess.PIPE`, or else nothing can be read.
        merged: what it writes to standard error is in its output.
    """

    def __init__(
        self,
        words: Sequence[str],
        modules: Sequence[str],
        environment: Mapping[str, str],
        *,
        stdin: int = subprocess.DEVNULL,
        merged: bool = False,
    ) -> None:
        out_read, out = os.pipe()
        error_read, error = os.pipe()
        if merged:
            os.dup2(out, error)
        stdin_write = None
        if stdin == subprocess.PIPE:
            given, stdin_write = os.pipe()
        else:
            given = os.open(os.devnull, os.O_RDONLY)
        self.stdin: IO[str] | None = None if stdin_write is None else os.fdopen(stdin_write, "w", encoding="utf-8")
        self.stdout: IO[str] = os.fdopen(out_read, encoding="utf-8")
        self.stderr: IO[str] = os.fdopen(error_read, encoding="utf-8")
        super().__init__(words, modules, environment, (given, out, error))

    def communicate(self, text: str | None, timeout: float) -> tuple[str, str]:
        """Write its input, and read its output until it has ended; what it wrote to both streams."""
        found: dict[str, str] = {}

        def read(name: str, stream: IO[str]) -> None:
            with stream:
                found[name] = stream.read()

        readers = [
            threading.Thread(target=read, args=(name, stream), daemon=True)
            for name, stream in (("out", self.stdout), ("error", self.stderr))
        ]
        for reader in readers:
            reader.start()
        if self.stdin is not None:
            with contextlib.suppress(BrokenPipeError), self.stdin:
                self.stdin.write(text or "")
        deadline = time.monotonic() + timeout
        for reader in readers:
            reader.join(max(0.0, deadline - time.monotonic()))
        try:
            self.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        return found["out"], found["error"]
