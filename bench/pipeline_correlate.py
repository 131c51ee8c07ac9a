"""What does a value cost to correlate, as values grow, and beside a rollup of the same values in the same run?

Makes a lake of one class with 7 values per sample and follows three rules through it: a threshold with duration and
hysteresis, a rate, and the absence of samples. The alerts are known beforehand, and must be found. Prints values per
second of the batch, of a stream that takes the same lake in ten steps, and of the rollup to minutes that is the measure
of both; and the peak memory of Spark's Java, and of the largest of its Python workers.

    python bench/pipeline_correlate.py [VALUES ...]        default: 1000000 10000000

Each size runs in a process of its own. Spark's start is not counted; a first small run is a warm-up.
"""

from __future__ import annotations

import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

from pipeline_lake import OBJECTS, SECOND, VALUES, each_size, fill, peaks

from qmf.pipeline.correlate import parse_rules
from qmf.pipeline.correlate.batch import correlate_batch
from qmf.pipeline.correlate.options import CorrelateOptions
from qmf.pipeline.correlate.stream import CorrelationStream
from qmf.pipeline.frames import Frames
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.rollup import rollup
from qmf.pipeline.spark import session

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


def by_batch(spark: Any, root: str) -> int:
    """Alerts of a batch."""
    return len(correlate_batch(spark, options(root), ignore).alerts)


def by_stream(spark: Any, root: str, files: int) -> int:
    """Alerts of a stream that takes so many files in a step."""
    follower = CorrelationStream(spark, options(root), ignore, files=files)
    found = 0
    while (step := follower.step()) is not None or follower.is_behind():
        found += 0 if step is None else len(step.alerts)
    follower.close()
    return found


def by_rollup(spark: Any, root: str) -> int:
    """What the counter grew by, of the rollup to minutes; all members are made."""
    frames = Frames(spark, root)
    (of,) = frames.classes(["thing"])
    rolled = rollup(frames.class_rows(of), of, "1m")
    # Fetched, since Spark leaves out what nobody looks at.
    (row,) = rolled.groupBy().sum("delta", "mean", "low", "high").collect()
    return int(row["sum(delta)"])


def options(root: str) -> CorrelateOptions:
    """Of both."""
    return CorrelateOptions(lake=root, out=f"{root}/_tables/correlate", rules=parse_rules(RULES), late=5 * SECOND)


def run(spark: Any, values: int) -> tuple[list[float], bool]:
    """Seconds of batch, stream and rollup, and whether the alerts are those that must be."""
    with tempfile.TemporaryDirectory() as folder:
        root = str(Path(folder) / "lake")
        lake = Lake(root)
        lake.create()
        samples = values // VALUES // OBJECTS * OBJECTS
        fill(lake, samples, -(-samples // COMMITS), level)
        taken: list[float] = []
        found: list[int] = []
        for work in (by_batch, partial(by_stream, files=COMMITS // STEPS), by_rollup):
            started = time.perf_counter()
            found.append(work(spark, root))
            taken.append(time.perf_counter() - started)
        # The stream's last seconds wait for what may come late; what happens in them is not told yet.
        right = found[0] == expected(samples) and found[0] - 2 * OBJECTS <= found[1] <= found[0]
        return taken, right


def one(values: int) -> dict[str, Any]:
    """Measure one size in this process."""
    with peaks() as found:
        spark = session("local[2]", name="bench")
        spark.sparkContext.setLogLevel("ERROR")
        run(spark, 70_000)
        taken, right = run(spark, values)
        spark.stop()
    rates = dict(zip(("batch", "stream", "rollup"), (values / seconds for seconds in taken), strict=True))
    return {"right": right, **rates, **found}


def line(found: dict[str, Any]) -> str:
    """A row of the table."""
    rates = " ".join(f"{found[name]:12,.0f}" for name in ("batch", "stream", "rollup"))
    ratio = found["batch"] / found["rollup"]
    return f"{rates} {ratio:13.2f} {1e6 / found['batch']:13.2f} {found['java']:8.0f} {found['python']:10.0f}"


HEADING = f"{'batch/s':>12} {'10 steps/s':>12} {'rollup/s':>12}  batch:rollup  us per value  java MB  worker MB"

if __name__ == "__main__":
    sys.exit(each_size(__file__, __doc__ or "", HEADING, one, line))
