"""Queries are evaluated in a process of their own, which is ended when one takes too long, and started again."""

from __future__ import annotations

import enum
import json
import logging
import os
import select
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

log = logging.getLogger("qmf.broker")

#: Seconds of processor time for one query, and for reading the content as XML.
LIMIT = 1.0
#: Seconds for a start, and for a query on a machine that is busy with other things: the process counts as stuck then.
_STUCK = 60.0
_PROGRAM = Path(__file__).with_name("xquery_worker.py")
#: Variables of the environment that Python and its libraries need; queries could read the others.
_ENVIRONMENT = ("LD_LIBRARY_PATH", "SYSTEMROOT")


class XQueryResult(enum.Enum):
    """What a query says of a message."""

    YES = "yes"
    NO = "no"
    TOO_LONG = "too long"  #: it took longer than `LIMIT`, or its process was ended otherwise


class ContentTooLong(Exception):
    """The content of a message cannot be read as XML within `LIMIT`."""


class QueryProcess:
    """The process, which runs while it is needed. Calls block, and may come from any thread."""

    def __init__(self, limit: float = LIMIT) -> None:
        self._limit = limit
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._closing = False

    def evaluate(
        self, queries: Sequence[str], properties: Mapping[str, object], content: bytes = b""
    ) -> list[XQueryResult | str]:
        """Evaluate queries one after the other.

        Args:
            queries: their texts.
            properties: external variables: texts, integers of 64 bits, floats.
            content: the context item, if it is XML.

        Returns:
            for each query the answer, or the text of the error with which it ended; `XQueryResult.TOO_LONG` after
                `close`.

        Raises:
            ContentTooLong: the content cannot be read within the limit.
        """
        answers: list[XQueryResult | str] = []
        with self._lock:
            while len(answers) < len(queries):
                if self._closing or not self._ask(queries[len(answers) :], properties, content, answers):
                    self._end()
                    answers.append(XQueryResult.TOO_LONG)
        return answers

    def close(self) -> None:
        """End the process, and what another thread evaluates. A later call starts it again."""
        self._closing = True
        if (process := self._process) is not None:
            process.kill()
        with self._lock:
            self._end()
            self._closing = False

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.communicate()

    def _ask(
        self,
        queries: Sequence[str],
        properties: Mapping[str, object],
        content: bytes,
        answers: list[XQueryResult | str],
    ) -> bool:
        """Send a request, and add the answers; False if the process has ended before the last one.

        Raises:
            ContentTooLong: it has ended before the first query.
        """
        head = json.dumps({"queries": queries, "properties": properties, "limit": self._limit}).encode()
        request = len(head).to_bytes(4) + head + len(content).to_bytes(4) + content
        process = self._send(request)
        if process is None and self._ended_by_itself():
            process = self._send(request)
        if process is None:
            self._end()
            raise ContentTooLong
        for _ in queries:
            answer = self._read(process, 1)
            if answer == b"e":
                size = int.from_bytes(self._read(process, 4))
                answers.append(self._read(process, size).decode())
            elif answer:
                answers.append(XQueryResult.YES if answer == b"1" else XQueryResult.NO)
            else:
                return False
        return True

    def _ended_by_itself(self) -> bool:
        """True if the process has ended after the last request, as it does when it has used much memory."""
        process = self._process
        return process is not None and process.wait() == 0

    def _send(self, request: bytes) -> subprocess.Popen[bytes] | None:
        """Send a request to the process, which has read the content then; None if it has ended."""
        process = self._process
        if process is None or process.poll() is not None:
            self._end()
            process = self._process = self._start()
        assert process.stdin is not None
        try:
            process.stdin.write(request)
            process.stdin.flush()
        except OSError:
            return None
        return process if self._read(process, 1) else None

    @staticmethod
    def _read(process: subprocess.Popen[bytes], size: int) -> bytes:
        """So many bytes, or none if the process has ended; it is ended if it is stuck."""
        assert process.stdout is not None
        data = b""
        poll = select.poll()
        poll.register(process.stdout, select.POLLIN)
        while len(data) < size:
            if not poll.poll(_STUCK * 1000):
                process.kill()
            received = os.read(process.stdout.fileno(), size - len(data))
            if not received:
                return b""
            data += received
        return data

    @staticmethod
    def _start() -> subprocess.Popen[bytes]:
        environment = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
        # Without -P, the modules beside the program would hide those of Python that have the same names.
        return subprocess.Popen(
            [sys.executable, "-P", str(_PROGRAM)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
