"""Where the job of a command runs: in its process, or on Spark where `--master` or `--conf` asks for it.

Failures of Spark are one line. What Java writes is kept back, unless it is asked for.
"""

from __future__ import annotations

import argparse
import importlib.util
import logging
import os
import re
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

from qmf.pipeline.commands.base import DEFAULT_MASTER, check_followed, check_lake, open_lake
from qmf.pipeline.errors import LakeError, MissingExtraError, PipelineError
from qmf.pipeline.lake.location import CHECKPOINT
from qmf.pipeline.runners.process import ProcessRunner
from qmf.pipeline.runners.runner import Pace
from qmf.views.times import parse_duration

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from qmf.pipeline.lake.delta_lake import DeltaLake
    from qmf.pipeline.lake.lake_table import LakeTable
    from qmf.pipeline.runners.runner import Runner, Step


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

    Where the output of Java was not kept back, the whole failure is logged, too.
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

    The text is of Python in an executor, of Java with its causes, or plain; `output` is what Java wrote.
    """
    reasons = _KILLED.findall(output) or (_NOT_STARTED.findall(output) if "JAVA_GATEWAY_EXITED" in text else [])
    if reasons:
        return str(reasons[-1]).strip()
    python = text.rpartition("Traceback (most recent call last):")[2].partition("\n\n")[0]
    found = list(_FAILURE.finditer(python if python != text else text)) or list(_FAILURE.finditer(text))
    if not found:
        return next((line.strip() for line in text.splitlines() if line.strip()), "it gave no reason")
    return found[-1]["text"]


#: Rows of a lake that are few: a job over them takes seconds.
SMALL_ROWS = 2_000_000


@contextmanager
def job_runner(options: argparse.Namespace) -> Iterator[Runner]:
    """Where a job runs, which is printed; a `PipelineError` if there is no lake, and the job does not follow it."""
    if not runs_on_spark(options):
        _check_input(options)
        runner = ProcessRunner()
        _print(f"qmf-pipeline: {options.command} runs {runner.place}")
        yield runner
        return
    with spark_session(options) as spark:
        from qmf.pipeline.runners.spark import SparkRunner

        on_spark = SparkRunner(spark)
        _print(f"qmf-pipeline: {options.command} runs {on_spark.place}")
        following = getattr(options, "stream", False)
        with nullcontext() if following else _progress(spark, options.command):
            yield on_spark


def runs_on_spark(options: argparse.Namespace) -> bool:
    """True if the command line asks for Spark."""
    return options.master is not None or bool(options.conf)


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


@contextmanager
def spark_session(options: argparse.Namespace) -> Iterator[SparkSession]:
    """The session that a subcommand runs on, stopped at the end.

    Raises:
        MissingExtraError: pyspark is not installed.
        PipelineError: no Java, or one that is too old; or there is no lake, and the subcommand does not follow it; or
            Spark failed: one line with the cause, and with `--verbose` all that it says.
    """
    if not _names_other_file_system(options):
        _check_input(options)
    if importlib.util.find_spec("pyspark") is None:
        raise MissingExtraError("pyspark")
    from py4j.protocol import Py4JError

    from qmf.pipeline.spark_access.session import job_settings, session

    output = None if options.verbose else JavaOutput()
    with spark_failures(output):
        with output.capture() if output is not None else nullcontext():
            spark = session(
                options.master or DEFAULT_MASTER,
                settings={**job_settings(small=_is_small(options)), **dict(options.conf)},
                progress=sys.stderr.isatty(),
                data_source=False,  # streams register it
            )
        try:
            spark.sparkContext.setLogLevel("ERROR")
            yield spark
        finally:
            with suppress(Py4JError, OSError):  # Java may have ended first, by the same signal
                spark.stop()


def _names_other_file_system(options: argparse.Namespace) -> bool:
    """True if paths without a scheme are not those of this machine."""
    return "spark.hadoop.fs.defaultFS" in dict(options.conf)


def _is_small(options: argparse.Namespace) -> bool:
    """True if the lake of a batch has few rows."""
    if getattr(options, "stream", False) or _names_other_file_system(options):
        return False
    lake = open_lake(options)
    try:
        return sum(lake.table(path).snapshot().rows for path in lake.paths()) <= SMALL_ROWS
    except LakeError:
        return False  # the job says what is wrong


def _check_input(options: argparse.Namespace) -> None:
    if getattr(options, "stream", False):
        check_followed(options.lake)
    else:
        check_lake(options.lake)


#: Seconds between lines of progress.
_INTERVAL = 10.0


@contextmanager
def _progress(spark: SparkSession, name: str) -> Iterator[None]:
    """Print the progress of Spark's stages every ten seconds, while the block runs; `name` is the job's."""
    done = threading.Event()
    tracker = spark.sparkContext.statusTracker()
    started = time.monotonic()

    def report() -> None:
        while not done.wait(_INTERVAL):
            stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            tasks = ", ".join(f"{info.numCompletedTasks} of {info.numTasks} tasks" for info in stages if info)
            _print(f"{name}: {time.monotonic() - started:.0f} s, {tasks or 'planning'}")

    reporter = threading.Thread(target=report, name="qmf-progress", daemon=True)
    reporter.start()
    try:
        yield
    finally:
        done.set()
        reporter.join()


@contextmanager
def stop_on_signals() -> Iterator[threading.Event]:
    """An event that SIGTERM and SIGINT set, until the block ends. For a job in the main thread that runs until then."""
    stop = threading.Event()

    def handle(*_: object) -> None:
        # Not `stop.set()` itself: a handler runs in the main thread, which may hold the event's lock at that moment,
        # inside `stop.wait`, and would deadlock.
        threading.Thread(target=stop.set, name="stop").start()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def follow(runner: Runner, options: argparse.Namespace, lake: DeltaLake, table: LakeTable, step: Step) -> None:
    """Make the steps of a stream that writes a table, until a signal, or until all is read that is there now."""
    pace = Pace(every=parse_duration(options.every) / 10**9, once=options.once)
    with stop_on_signals() as stop:
        runner.follow(lake, f"{table.url}/{CHECKPOINT}", step, pace, stop)
