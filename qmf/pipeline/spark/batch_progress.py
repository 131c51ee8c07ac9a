"""The progress of a batch job, and the rows that it wrote."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as F

#: Prints one line for the user.
PrintLine = Callable[[str], None]

#: Seconds between lines of progress.
_INTERVAL = 10.0


@contextmanager
def report_progress(spark: SparkSession, name: str, print_line: PrintLine) -> Iterator[None]:
    """Print the progress of Spark's stages every ten seconds, while the block runs; `name` is the job's."""
    done = threading.Event()
    tracker = spark.sparkContext.statusTracker()
    started = time.monotonic()

    def report() -> None:
        while not done.wait(_INTERVAL):
            stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
            tasks = ", ".join(f"{info.numCompletedTasks} of {info.numTasks} tasks" for info in stages if info)
            print_line(f"{name}: {time.monotonic() - started:.0f} s, {tasks or 'planning'}")

    reporter = threading.Thread(target=report, name="qmf-progress", daemon=True)
    reporter.start()
    try:
        yield
    finally:
        done.set()
        reporter.join()


class RowCounter:
    """Counts the rows of a batch that fulfil conditions, without reading them twice."""

    def __init__(self, frame: DataFrame, conditions: Mapping[str, Column]) -> None:
        """Make a counter.

        Args:
            frame: the batch.
            conditions: of the rows to count, by name.

        Attributes:
            frame: to use instead of the batch.
        """
        self._observation = Observation()
        self._names = tuple(conditions)
        # Not under the names given: Spark would split them at their dots.
        counts = [F.count_if(condition).alias(f"n{index}") for index, condition in enumerate(conditions.values())]
        self.frame = frame.observe(self._observation, *counts)

    @property
    def rows(self) -> dict[str, int]:
        """The counts by name; known after an action on `frame`."""
        found = self._observation.get
        return {name: int(found[f"n{index}"]) for index, name in enumerate(self._names)}
