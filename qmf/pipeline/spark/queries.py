"""Running queries: waiting for their end, what they did, and how far a batch job is."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import attrs
from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from qmf.pipeline.errors import PipelineError
from qmf.pipeline.shutdown import stop_on_signals
from qmf.pipeline.spark.watermark import AHEAD

Say = Callable[[str], None]

#: Seconds between looks at the queries, and between lines of progress.
_TICK = 0.2
_PROGRESS = 10.0

#: Seconds that a signal may come later than Java's end.
_GRACE = 1.0


@attrs.frozen
class Metrics:
    """What a stream did from its start to its end.

    Attributes:
        batches: that had rows.
        read: rows.
        late: rows that came too late, and were dropped.
        ahead: rows from the future, left out, see `qmf.pipeline.spark.watermark`.
        busy: seconds at work.
        state: rows that wait in the state, at the end.
    """

    batches: int = 0
    read: int = 0
    late: int = 0
    ahead: int = 0
    busy: float = 0.0
    state: int = 0

    def __str__(self) -> str:
        rate = f", {self.read / self.busy:,.0f} rows per second" if self.busy and self.read else ""
        return (
            f"{self.batches} batches, {self.read} rows read in {self.busy:.1f} s{rate}; "
            f"{self.late} came too late, {self.ahead} are from the future, {self.state} wait in the state"
        )


class Meter:
    """Adds up what Spark tells of one query; Spark itself remembers the last batches only."""

    def __init__(self, query: StreamingQuery) -> None:
        self.query = query
        self._seen: dict[str, Metrics] = {}

    def look(self) -> Metrics:
        """Take in what is new; all so far."""
        for progress in self.query.recentProgress:
            self._seen[progress["timestamp"]] = _metrics(progress)
        parts = list(self._seen.values())
        return Metrics(
            batches=sum(part.batches for part in parts),
            read=sum(part.read for part in parts),
            late=sum(part.late for part in parts),
            ahead=sum(part.ahead for part in parts),
            busy=sum(part.busy for part in parts),
            state=parts[-1].state if parts else 0,
        )


def _metrics(progress: Any) -> Metrics:
    operators = progress["stateOperators"]
    read = int(progress["numInputRows"])
    return Metrics(
        batches=int(read > 0),
        read=read,
        late=sum(int(part["numRowsDroppedByWatermark"]) for part in operators),
        ahead=int(progress["observedMetrics"][AHEAD]["rows"]) if AHEAD in progress["observedMetrics"] else 0,
        busy=int(progress["durationMs"].get("triggerExecution", 0)) / 1000 if read else 0.0,
        state=sum(int(part["numRowsTotal"]) for part in operators),
    )


def follow(queries: Sequence[StreamingQuery], say: Say) -> None:
    """Wait until a signal comes or all queries have ended, stop them, and say what each did.

    Raises:
        PipelineError: a query failed, or Spark ended; says which, and why. The others are stopped.
    """
    meters = [Meter(query) for query in queries]
    with stop_on_signals() as stop:
        try:
            try:
                while any(query.isActive for query in queries) and not stop.wait(_TICK):
                    for meter in meters:
                        meter.look()
                    _raise_failed(queries)
                _raise_failed(queries)
            finally:
                for meter in meters:
                    meter.query.stop()
                    say(f"{meter.query.name}: {meter.look()}")
        except (Py4JError, OSError) as error:
            # A service manager sends its signal to Java as well. What was committed is, the rest will be done again.
            if not stop.wait(_GRACE):
                raise PipelineError(f"Spark has ended: {error}") from error


def _raise_failed(queries: Sequence[StreamingQuery]) -> None:
    for query in queries:
        error = None if query.isActive else query.exception()
        if error is not None:
            raise PipelineError(f"the query {query.name} failed: {_reason(str(error))}") from None


def _reason(text: str) -> str:
    """The line of a failure that tells a user most: Python's last one, else Spark's first."""
    lines = [line.strip() for line in text.splitlines()]
    raised = [line for line in lines if re.match(r"[A-Za-z_][\w.]*(Error|Exception): ", line)]
    python = [line for line in raised if not line.startswith(("org.", "java.", "py4j.", "Caused"))]
    return python[-1] if python else (raised or lines)[0]


@contextmanager
def progress(spark: SparkSession, what: str, say: Say) -> Iterator[None]:
    """Say how far the stages are, each ten seconds, while the block runs."""
    done = threading.Event()
    tracker = spark.sparkContext.statusTracker()
    started = time.monotonic()

    def tell() -> None:
        while not done.wait(_PROGRESS):
            stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            tasks = ", ".join(f"{info.numCompletedTasks} of {info.numTasks} tasks" for info in stages if info)
            say(f"{what}: {time.monotonic() - started:.0f} s, {tasks or 'planning'}")

    teller = threading.Thread(target=tell, name="qmf-progress", daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()


class Counted:
    """Counts the rows that go through a frame of a batch, by conditions, without reading them twice."""

    def __init__(self, frame: DataFrame, of: Mapping[str, Column]) -> None:
        """Make it.

        Args:
            frame: whose rows.
            of: what is counted, under which name.
        """
        self._observation = Observation()
        self._names = tuple(of)
        # Not under their names: Spark would look into these for dots.
        counts = [F.count_if(condition).alias(f"n{index}") for index, condition in enumerate(of.values())]
        self.frame = frame.observe(self._observation, *counts)

    @property
    def rows(self) -> dict[str, int]:
        """How many went through, by name; known when an action on `frame` has ended."""
        found = self._observation.get
        return {name: int(found[f"n{index}"]) for index, name in enumerate(self._names)}
