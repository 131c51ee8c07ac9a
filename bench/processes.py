"""The processes that benchmarks talk to: a broker, agents and consoles of ours, and their peers of libqmf2.

A peer is there when the environment names it:

    QMF_BENCH_QPIDD     URL of a qpidd
    QMF_BENCH_LIBQMF2   folder with the programs `agent` and `console`, made from bench/peers/*.cpp with libqmf2
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil

from qmf._version import __version__

#: Joins the environment of programs whose start is measured: modules are compiled once, as those of installed programs.
COMPILED = {"PYTHONDONTWRITEBYTECODE": ""}

_HERE = Path(__file__).resolve().parent


class Program:
    """A program that says "ready", does what lines on its standard input say, and ends with its input."""

    def __init__(self, command: list[str]) -> None:
        self._name = Path(command[0]).name if command[0] != sys.executable else Path(command[-1]).name
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self._usage = psutil.Process(self._process.pid)

    def line(self) -> str:
        """Its next line.

        Raises:
            RuntimeError: it ended.
        """
        assert self._process.stdout is not None
        text = self._process.stdout.readline()
        if not text:
            raise RuntimeError(f"{self._process.args!r} ended with {self._process.wait()}")
        return text.strip()

    def tell(self, text: str) -> None:
        """Write a line to it."""
        assert self._process.stdin is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()

    def ask(self, text: str) -> str:
        """Write a line, and read one."""
        self.tell(text)
        return self.line()

    def cpu(self) -> float:
        """Seconds of processor time that it used so far."""
        times = self._usage.cpu_times()
        return times.user + times.system

    def memory(self) -> float:
        """Its resident memory, in MB."""
        return self._usage.memory_info().rss / 1e6

    def kill(self) -> None:
        """End it at once, as a machine that fails does."""
        self._process.kill()
        self._process.wait()

    def end(self) -> None:
        """End its input, and wait for it."""
        if self._process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):
                self._process.stdin.close()
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextlib.contextmanager
def program(*command: str) -> Iterator[Program]:
    """A program, until the block ends."""
    started = Program(list(command))
    try:
        yield started
    finally:
        started.end()


@contextlib.contextmanager
def own_broker(
    management: float = 0, queues: int = 0, port: int = 0, open_timeout: float = 10.0
) -> Iterator[tuple[str, Program]]:
    """The embedded broker, in a process of its own; gives its URL, too.

    Args:
        management: seconds between publications of its own agent; 0 for none.
        queues: how many it has.
        port: where it listens; 0 for any free port.
        open_timeout: seconds for each step of a client's handshake.
    """
    options = [f"--queues={queues}", f"--port={port}", f"--open-timeout={open_timeout}"]
    options += [f"--management={management}"] if management else []
    with program(sys.executable, str(_HERE / "broker_process.py"), *options) as broker:
        yield broker.line(), broker


@contextlib.contextmanager
def own_agent(url: str, objects: int, instance: str = "bench") -> Iterator[Program]:
    """An agent of ours, with so many queues."""
    with program(sys.executable, str(_HERE / "queue_agent.py"), url, str(objects), instance) as agent:
        assert agent.line() == "ready"
        yield agent


def qpidd() -> str | None:
    """URL of a qpidd to compare with."""
    return os.environ.get("QMF_BENCH_QPIDD")


def has_libqmf2() -> bool:
    """Whether there are libqmf2's programs, and a qpidd for them."""
    return bool(qpidd() and os.environ.get("QMF_BENCH_LIBQMF2"))


@contextlib.contextmanager
def libqmf2_agent(objects: int, instance: str, protocol: str = "amqp1.0") -> Iterator[Program]:
    """An agent of libqmf2, with so many queues."""
    with program(_libqmf2("agent"), _address(), protocol, instance, str(objects)) as agent:
        assert agent.line() == "ready"
        yield agent


@contextlib.contextmanager
def libqmf2_console(instance: str, protocol: str = "amqp1.0") -> Iterator[Program]:
    """A console of libqmf2 that has found an agent."""
    with program(_libqmf2("console"), _address(), protocol, instance) as console:
        assert console.line() == "ready"
        yield console


def has_cpp_requests() -> bool:
    """Whether there is a C++ program for requests and responses, and a qpidd for it."""
    return has_libqmf2() and Path(_libqmf2("requests")).exists()


def cpp_requests(role: str, queue: str, *more: int) -> list[str]:
    """The command of that program; see bench/peers/requests.cpp."""
    return [_libqmf2("requests"), role, _address(), queue, *map(str, more)]


def _libqmf2(name: str) -> str:
    return str(Path(os.environ["QMF_BENCH_LIBQMF2"]) / name)


def _address() -> str:
    """What libqmf2 takes for a URL: host and port."""
    return (qpidd() or "").removeprefix("amqp://")


def versions() -> str:
    """What is measured, and on what."""
    return f"qmf {__version__}, Python {sys.version.split()[0]}, {os.cpu_count()} cores"
