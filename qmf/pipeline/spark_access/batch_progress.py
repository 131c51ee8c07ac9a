"""The progress of a batch job."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

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
