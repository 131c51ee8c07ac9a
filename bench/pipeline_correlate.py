"""What does a value cost to correlate, as values grow?

Makes a lake of one class with 7 values per sample and follows three rules through it: a threshold with duration and
hysteresis, a rate, and the absence of samples. The alerts are known beforehand, and must be found. Prints values per
second of the batch, and of a stream that takes the same lake in ten steps; and the peak memory.

    python bench/pipeline_correlate.py [VALUES ...]        default: 1000000 10000000

Each size runs in a process of its own; a first small run is a warm-up.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from pipeline_lake import OBJECTS, VALUES, each_size, fill, peak

from qmf.pipeline.correlate import parse_rules
from qmf.pipeline.correlate.batch import correlate_batch
from qmf.pipeline.correlate.batch_input import CorrelateOptions
from qmf.pipeline.correlate.lake_rows import LakeRows
from qmf.pipeline.correlate.stream import CorrelationStream
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.runners.process import ProcessRunner

#: Seconds in which the level goes up and down once, and the seconds of them that it is bad.
PERIOD, BAD = 500, 50

#: Commits of a lake, and the steps in which the stream takes them.
COMMITS, STEPS = 20, 10

RULES = """
[level]
kind = "threshold"
class = "thing"
value = "level"
above = 90
clear = 50
for = "10s"

[speed]
kind = "rate"
class = "thing"
value = "done"
above = 1e9
over = "30s"

[silence]
kind = "absence"
of = "samples"
class = "thing"
for = "1m"
"""


def level(second: int) -> int:
    """Bad at the end of each period."""
    return 95 if second % PERIOD >= PERIOD - BAD else 40


def expected(samples: int) -> int:
    """Alerts raised and cleared: each bad time of each object, which lasts 10 s and sees the level come back."""
    seconds = samples // OBJECTS
    raised = sum(1 for start in range(PERIOD - BAD, seconds, PERIOD) if start + 10 < seconds)
    cleared = sum(1 for start in range(PERIOD, seconds, PERIOD))
    return (raised + cleared) * OBJECTS


def ignore(_text: str) -> None:
    """Say nothing."""


def by_batch(root: str) -> int:
    """Alerts of a batch."""
    return correlate_batch(ProcessRunner(), options(root), ignore).rows


def by_stream(root: str) -> int:
    """Alerts of a stream that sees two more commits in each step."""
    whole = LakeRows.versions
    seen = 0

    def versions(self: LakeRows, paths: Any) -> dict[str, int]:
        return {path: min(number, seen) for path, number in whole(self, paths).items()}

    found = 0
    LakeRows.versions = versions  # type: ignore[method-assign]
    try:
        follower = CorrelationStream(options(root), ignore)
        for step in range(1, STEPS + 1):
            seen = step * COMMITS // STEPS
            result = follower.step()
            found += 0 if result is None else len(result.alerts)
        follower.close()
    finally:
        LakeRows.versions = whole  # type: ignore[method-assign]
    return found


def options(root: str) -> CorrelateOptions:
    """Of both."""
    return CorrelateOptions(lake=root, out=f"{root}/_tables/correlate", rules=parse_rules(RULES))


def run(values: int) -> tuple[list[float], bool]:
    """Seconds of batch and stream, and whether the alerts are those that must be."""
    with tempfile.TemporaryDirectory() as folder:
        root = str(Path(folder) / "lake")
        samples = values // VALUES // OBJECTS * OBJECTS
        fill(DeltaLake(root), samples, -(-samples // COMMITS), level)
        taken: list[float] = []
        found: list[int] = []
        for work in (by_batch, by_stream):
            started = time.perf_counter()
            found.append(work(root))
            taken.append(time.perf_counter() - started)
        return taken, found == [expected(samples)] * 2


def one(values: int) -> dict[str, Any]:
    """Measure one size in this process."""
    run(70_000)
    taken, right = run(values)
    rates = dict(zip(("batch", "stream"), (values / seconds for seconds in taken), strict=True))
    return {"right": right, **rates, "memory": peak(os.getpid())}


def line(found: dict[str, Any]) -> str:
    """A row of the table."""
    return f"{found['batch']:12,.0f} {found['stream']:12,.0f} {1e6 / found['batch']:13.2f} {found['memory']:9.0f}"


HEADING = f"{'batch/s':>12} {'10 steps/s':>12}  us per value  peak MB"

if __name__ == "__main__":
    sys.exit(each_size(__file__, __doc__ or "", HEADING, one, line))
