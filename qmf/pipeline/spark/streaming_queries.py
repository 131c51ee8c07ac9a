"""Streaming queries: their metrics, and running them until they end or a signal comes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import attrs
from py4j.protocol import Py4JError
from pyspark.sql.streaming.query import StreamingQuery

from qmf.pipeline.errors import PipelineError
from qmf.pipeline.shutdown import stop_on_signals
from qmf.pipeline.spark.batch_progress import PrintLine
from qmf.pipeline.spark.watermark import AHEAD

#: Seconds between reads of the queries' progress.
_TICK = 0.2

#: Seconds that a signal may come later than the end of Java.
_GRACE = 1.0


@attrs.frozen
class StreamMetrics:
    """What a streaming query did from its start.

    Attributes:
        batches: micro-batches that had rows.
        read: rows.
        late: rows that came too late, and were dropped.
        ahead: rows from the future, dropped, see `qmf.pipeline.spark.watermark`.
        busy: seconds at work.
        state: rows in the state store, at the end.
    """

    batches: int = 0
    read: int = 0
    late: int = 0
    ahead: int = 0
    busy: float = 0.0
    state: int = 0

    def __str__(self) -> str:
        rate = f", {self.read / self.busy:,.0f} rows per second" if self.busy and self.read else ""
        batches = "1 batch" if self.batches == 1 else f"{self.batches} batches"
        return (
            f"{batches}, {self.read} rows read in {self.busy:.1f} s{rate}; "
            f"{self.late} came too late, {self.ahead} are from the future, {self.state} wait in the state"
        )


class MetricsCollector:
    """Adds up the progress reports of one query; Spark itself keeps those of the last micro-batches only."""

    def __init__(self, query: StreamingQuery) -> None:
        self.query = query
        self._by_time: dict[str, StreamMetrics] = {}

    def collect(self) -> StreamMetrics:
        """Read the new progress reports; returns the sums so far."""
        for progress in self.query.recentProgress:
            self._by_time[progress["timestamp"]] = _metrics(progress)
        parts = list(self._by_time.values())
        return StreamMetrics(
            batches=sum(part.batches for part in parts),
            read=sum(part.read for part in parts),
            late=sum(part.late for part in parts),
            ahead=sum(part.ahead for part in parts),
            busy=sum(part.busy for part in parts),
            state=parts[-1].state if parts else 0,
        )


def _metrics(progress: Any) -> StreamMetrics:
    operators = progress["stateOperators"]
    read = int(progress["numInputRows"])
    return StreamMetrics(
        batches=int(read > 0),
        read=read,
        late=sum(int(part["numRowsDroppedByWatermark"]) for part in operators),
        ahead=int(progress["observedMetrics"][AHEAD]["rows"]) if AHEAD in progress["observedMetrics"] else 0,
        busy=int(progress["durationMs"].get("triggerExecution", 0)) / 1000 if read else 0.0,
        state=sum(int(part["numRowsTotal"]) for part in operators),
    )


def run_until_stopped(queries: Sequence[StreamingQuery], print_line: PrintLine) -> None:
    """Wait until a signal comes or all queries have ended, stop them, and print the metrics of each.

    Raises:
        PipelineError: a query failed, or Spark ended; the message says which, and why. The others are stopped.
    """
    collectors = [MetricsCollector(query) for query in queries]
    with stop_on_signals() as stop:
        try:
            try:
                while any(query.isActive for query in queries) and not stop.wait(_TICK):
                    for collector in collectors:
                        collector.collect()
                    _raise_failed(queries)
                _raise_failed(queries)
            finally:
                for collector in collectors:
                    collector.query.stop()
                    print_line(f"{collector.query.name}: {collector.collect()}")
        except (Py4JError, OSError) as error:
            # A service manager sends its signal to Java as well. Committed rows are safe, the rest is done again.
            if not stop.wait(_GRACE):
                raise PipelineError(f"Spark has ended: {error}") from error


def _raise_failed(queries: Sequence[StreamingQuery]) -> None:
    for query in queries:
        error = None if query.isActive else query.exception()
        if error is not None:
            raise PipelineError(f"the query {query.name} failed: {_reason(str(error))}") from None


def _reason(text: str) -> str:
    """The most useful line of a failure: Python's last one, else Spark's first."""
    lines = [line.strip() for line in text.splitlines()]
    raised = [line for line in lines if re.match(r"[A-Za-z_][\w.]*(Error|Exception): ", line)]
    python = [line for line in raised if not line.startswith(("org.", "java.", "py4j.", "Caused"))]
    return python[-1] if python else (raised or lines)[0]
