"""A stream of a job as a query of Structured Streaming: each micro-batch is a step.

The source is `qmf`, with versions of tables as offsets; Spark keeps these in its checkpoint. A step is the function of
`foreachBatch`, and its work goes to executors by the runner. It is made in the main thread, as in the process, where
signals, files of state and the bus are; the function waits for it. State is in tables of the job, committed with what
the step has written: a micro-batch that Spark runs again changes nothing, and a checkpoint that is lost costs nothing.
"""

from __future__ import annotations

import logging
import queue
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from qmf.pipeline.errors import PipelineError
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_versions import LakeVersions
from qmf.pipeline.lake.location import is_local, local_path
from qmf.pipeline.runners.runner import Pace, Step
from qmf.pipeline.spark_access.lake_stream import VERSIONS, versions_of
from qmf.pipeline.spark_access.session import register

log = logging.getLogger(__name__)

#: Seconds between looks whether a stream is over.
_POLL_INTERVAL = 0.2

#: Seconds in which a query is started again, and what Spark says where Python, which reads the source, took longer to
#: start than the ten seconds that Spark waits for it. No setting changes these; half a second of a processor is enough.
_START_LIMIT, _NO_PYTHON = 300.0, "Python worker failed to connect back"


class _Stopped(Exception):
    """The stream was stopped before a micro-batch was done: Spark runs it again."""


class _Steps:
    """Hands micro-batches to the main thread."""

    def __init__(self) -> None:
        self.waiting: queue.Queue[tuple[LakeVersions, Future[None]]] = queue.Queue()
        self.closed = threading.Event()

    def micro_batch(self, frame: DataFrame, _number: int) -> None:
        """The function of `foreachBatch`, called by a thread of Spark's."""
        versions = versions_of(frame.collect())  # a row for each table of the lake
        done: Future[None] = Future()
        self.waiting.put((versions, done))
        while not self.closed.is_set():
            try:
                return done.result(timeout=_POLL_INTERVAL)
            except TimeoutError:
                continue
        raise _Stopped


def follow_lake(
    spark: SparkSession, lake: DeltaLake, checkpoint: str, step: Step, pace: Pace, stop: threading.Event
) -> None:
    """Make the steps of a stream, not on Spark Connect, where Spark can start Python; as of `Runner.follow`."""
    if is_remote():
        raise PipelineError("a stream needs the URL of a master: its steps run in Spark's driver")
    register(spark)
    with _place(checkpoint) as place:
        give_up = time.monotonic() + _START_LIMIT
        while (made := _follow(spark, lake, place, step, pace, stop)) is None and time.monotonic() < give_up:
            log.warning("Spark could not start Python for the stream in ten seconds; it tries again")
    if made is None:
        raise PipelineError(
            f"Spark could not start Python for the stream in {_START_LIMIT:.0f} s: is the machine too busy?"
        )
    if pace.once and not made:
        # Spark knows of nothing new, but a step may complete what the one before has begun.
        while not stop.is_set() and step(None):
            pass


def _follow(
    spark: SparkSession, lake: DeltaLake, checkpoint: str, step: Step, pace: Pace, stop: threading.Event
) -> int | None:
    """Run a query, and return how many micro-batches there were; None where Spark could not start Python for it."""
    steps, made = _Steps(), 0
    query = _query(spark, lake, checkpoint, pace).foreachBatch(steps.micro_batch).start()
    try:
        while not stop.is_set() and query.isActive:
            try:
                versions, done = steps.waiting.get(timeout=_POLL_INTERVAL)
            except queue.Empty:
                continue
            while step(versions) and not stop.is_set():
                pass
            made += 1
            done.set_result(None)
        failure = None if query.isActive else query.exception()
    finally:
        steps.closed.set()
        query.stop()
    if failure is not None and not made and _NO_PYTHON in str(failure):
        return None
    if failure is not None:
        raise failure
    return made


def _query(spark: SparkSession, lake: DeltaLake, checkpoint: str, pace: Pace) -> Any:
    options = {f"storage.{key}": value for key, value in lake.options.items()} | {"lake": lake.url, "kind": VERSIONS}
    if pace.tick is not None:
        options["tick"] = str(pace.tick)
    writer = spark.readStream.format("qmf").options(**options).load().writeStream
    writer = writer.option("checkpointLocation", checkpoint)
    if pace.once:
        return writer.trigger(availableNow=True)
    return writer.trigger(processingTime=f"{round(pace.every * 1000)} milliseconds")


@contextmanager
def _place(checkpoint: str) -> Iterator[str]:
    """Where Spark's checkpoint is: for a URL, which it may have no driver for, a temporary folder of this machine."""
    if is_local(checkpoint):
        yield local_path(checkpoint).absolute().as_uri()
        return
    with tempfile.TemporaryDirectory(prefix="qmf-checkpoint-") as folder:
        yield folder
