"""Failures of Spark in one line. What Java writes is kept back, unless it is asked for."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from qmf.pipeline.errors import PipelineError

log = logging.getLogger("qmf.pipeline")

#: A failure in a text: the name of its class, and what it says.
_FAILURE = re.compile(r"^(?:Caused by: )?(?P<name>[\w.$]+(?:Error|Exception)): (?P<text>.*\S)", re.MULTILINE)

#: Why Spark ended an application, which only its log says.
_KILLED = re.compile(r"Application has been killed\. Reason: (.*)")

#: Why Java did not start at all.
_NOT_STARTED = re.compile(r"^(?:Error: |Exception in thread \"main\" [\w.$]+: )(.*)", re.MULTILINE)

#: Seconds that Java has to write why it failed.
_LAST_WORDS = 1.0

#: Lines of Java that are kept for the cause of a failure.
_KEPT = 1000


class JavaOutput:
    """Reads what Java writes to standard error, keeps the last lines, and passes on Spark's lines of progress."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=_KEPT)
        self._thread: threading.Thread | None = None

    @contextmanager
    def capture(self) -> Iterator[None]:
        """Java that is started in this block writes here, until it ends."""
        read, write = os.pipe()
        own = os.dup(2)
        self._thread = threading.Thread(target=self._read, args=(read, os.dup(own)), name="java-output", daemon=True)
        self._thread.start()
        sys.stderr.flush()
        os.dup2(write, 2)
        os.close(write)
        try:
            yield
        finally:
            os.dup2(own, 2)
            os.close(own)

    def text(self) -> str:
        """The last lines, after a failure."""
        if self._thread is not None:
            self._thread.join(_LAST_WORDS)
        return "\n".join(self._lines)

    def _read(self, read: int, own: int) -> None:
        with os.fdopen(read, "rb") as stream, os.fdopen(own, "wb", buffering=0) as terminal:
            rest = b""
            while part := stream.read1(65536):
                *whole, rest = re.split(rb"[\r\n]", rest + part)
                for line in whole:
                    if line.startswith(b"[Stage ") or (line and not line.strip()):
                        terminal.write(b"\r" + line + b"\r")
                    elif line:
                        self._lines.append(line.decode(errors="replace"))


@contextmanager
def spark_failures(output: JavaOutput | None) -> Iterator[None]:
    """Raise each failure of Spark in a block as a `PipelineError` of one line.

    Args:
        output: of Java; None where it was not kept back, and the whole failure is logged, too.

    Raises:
        PipelineError: Spark failed.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError) as error:
        if output is None:
            log.exception("Spark failed")
        hint = "" if output is None else "; --verbose has the rest"
        raise PipelineError(f"Spark: {cause(str(error), '' if output is None else output.text())}{hint}") from error


def cause(text: str, output: str = "") -> str:
    """The cause of a failure in one line.

    Args:
        text: of the failure: of Python in an executor, of Java with its causes, or plain.
        output: what Java wrote.
    """
    reasons = _KILLED.findall(output) or (_NOT_STARTED.findall(output) if "JAVA_GATEWAY_EXITED" in text else [])
    if reasons:
        return str(reasons[-1]).strip()
    python = text.rpartition("Traceback (most recent call last):")[2].partition("\n\n")[0]
    found = list(_FAILURE.finditer(python if python != text else text)) or list(_FAILURE.finditer(text))
    if not found:
        return next((line.strip() for line in text.splitlines() if line.strip()), "it gave no reason")
    return found[-1]["text"]
