"""Programs against a real libqmf2, compiled from ``tests/interop`` where the environment says how.

QMF_TEST_QPIDD names a qpidd, and QMF_TEST_LIBQMF2 says where libqmf2 is: compiler flags such as ``-I/opt/qpid/include
-L/opt/qpid/lib -Wl,-rpath,/opt/qpid/lib``, or 1 where the compiler finds it by itself. CXX names the compiler.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import urlsplit

import attrs
import pytest

URL = os.environ.get("QMF_TEST_QPIDD", "") if os.environ.get("QMF_TEST_LIBQMF2") else ""
SOURCES = Path(__file__).resolve().parents[1] / "interop"

#: Both client protocols of libqmf2.
PROTOCOLS = ("amqp0-10", "amqp1.0")

#: Seconds that anything may take before a test gives up.
WAIT_LIMIT = 30.0

needs_libqmf2 = pytest.mark.skipif(not URL, reason="QMF_TEST_LIBQMF2 and QMF_TEST_QPIDD name no libqmf2 and no qpidd")


def address() -> str:
    """The broker as libqmf2's connections name it: host and port."""
    return urlsplit(URL).netloc


def compiled(name: str, directory: Path) -> Path:
    """The program of a source file, compiled into a directory."""
    flags = os.environ["QMF_TEST_LIBQMF2"]
    program = directory / name
    # The library says of itself that it is out of date.
    command = [
        *(os.environ.get("CXX", "c++"), "-std=c++11", "-DQMF_USE_DEPRECATED_API", "-w"),
        *(str(SOURCES / f"{name}.cpp"), "-o", str(program)),
        *([] if flags == "1" else shlex.split(flags)),
        *("-lqmf2", "-lqpidmessaging", "-lqpidtypes", "-pthread"),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, f"{shlex.join(command)}\n{done.stderr}"
    return program


class Driven:
    """A program that obeys lines on its input, or ends with it. It has said "ready"."""

    def __init__(self, *args: str) -> None:
        self.args = args
        self._popen = subprocess.Popen(args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        assert self._popen.stdin is not None
        assert self._popen.stdout is not None
        self._in: IO[str] = self._popen.stdin
        self._out: IO[str] = self._popen.stdout
        assert self._line() == "ready", f"{args} did not start"

    def ask(self, *words: str) -> list[list[str]]:
        """The lines that answer a command, as words, escaped as they are."""
        self._in.write(" ".join(words) + "\n")
        lines = []
        while (line := self._line()) != ".":
            assert line, f"{self.args} ended"
            lines.append(line.split(" "))
        return lines

    def end(self) -> int:
        """Close its input and wait for its end; its exit code."""
        self._in.close()
        try:
            return self._popen.wait(WAIT_LIMIT)
        finally:
            self._popen.kill()
            self._popen.wait()
            self._out.close()

    def _line(self) -> str:
        # Killed when it hangs: then the line is empty.
        alarm = threading.Timer(WAIT_LIMIT, self._popen.kill)
        alarm.start()
        try:
            return self._out.readline().rstrip("\n")
        finally:
            alarm.cancel()


@contextmanager
def driven(*args: str) -> Iterator[Driven]:
    """A program that is ended with the block."""
    program = Driven(*args)
    try:
        yield program
    finally:
        program.end()


# -- the notation of values, see console.cpp


@attrs.frozen
class Typed:
    """A value with the type that it has, or shall have, in C++."""

    type: str
    value: object


def escaped(text: str) -> str:
    """One word of a line."""
    plain = "".join(chr(byte) if 32 < byte < 127 and byte != 37 else f"%{byte:02X}" for byte in text.encode())
    return plain or "%"


def unescaped(word: str) -> str:
    """The text of a word."""
    if word == "%":
        return ""
    first, *rest = word.split("%")
    data = first.encode() + b"".join(bytes([int(item[:2], 16)]) + item[2:].encode() for item in rest)
    return data.decode()


def words(value: object) -> list[str]:
    """A value as words: None, bool, str, lists and maps as what they are, all else as `Typed`."""
    match value:
        case None:
            return ["void"]
        case bool():
            return ["bool", str(int(value))]
        case str():
            return ["str", escaped(value)]
        case Typed(type=type, value=inner):
            return [type, escaped(str(inner))]
        case Mapping():
            return [
                "map",
                str(len(value)),
                *(word for key, item in value.items() for word in (escaped(key), *words(item))),
            ]
        case Sequence():
            return ["list", str(len(value)), *(word for item in value for word in words(item))]
    raise TypeError(value)


def read(found: Iterator[str]) -> object:
    """A value from words; numbers and uuids as `Typed`."""
    match next(found):
        case "void":
            return None
        case "bool":
            return next(found) == "1"
        case "str":
            return unescaped(next(found))
        case "list":
            return [read(found) for _ in range(int(next(found)))]
        case "map":
            return {unescaped(next(found)): read(found) for _ in range(int(next(found)))}
        case "float" | "double" as type:
            return Typed(type, float(next(found)))
        case "uuid":
            return Typed("uuid", next(found))
        case type:
            return Typed(type, int(next(found)))
