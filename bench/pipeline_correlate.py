"""What does a value cost to correlate, as values grow, and beside a rollup of the same values in the same run?

Makes a lake of one class with 7 values per sample and follows three rules through it: a threshold with duration and
hysteresis, a rate, and the absence of samples. The alerts are known beforehand, and must be found. Prints values per
second of the batch, of a stream that takes the same lake in ten steps, and of the rollup to minutes that is the measure
of both, and the peak memory of the largest of Spark's Python workers.

    python bench/pipeline_correlate.py [VALUES ...]        default: 1000000 10000000

Spark's start is not counted; a first small run is a warm-up.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import UUID

from qmf.pipeline.buffers import Buffers, Converters, commit
from qmf.pipeline.correlate import parse_rules
from qmf.pipeline.correlate.follow import Follower
from qmf.pipeline.correlate.jobs import CorrelateOptions, correlate_batch
from qmf.pipeline.frames import Frames
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake import Lake
from qmf.pipeline.members import table_of
from qmf.pipeline.rollup import rollup
from qmf.pipeline.spark import session
from qmf.schema import TYPES, ClassSchema, Statistic

OBJECTS = 100
VALUES = 7
SECOND = 10**9
RUN = "00000000000000000001_1"

#: Seconds in which the level goes up and down once, and the seconds of them that it is bad.
PERIOD, BAD = 500, 50

CLASS = ClassSchema(
    package="org.example.bench",
    name="thing",
    hash=UUID(int=1),
    statistics=(
        Statistic(name="done", type=TYPES["count64"]),
        Statistic(name="load", type=TYPES["double"]),
        Statistic(name="level", type=TYPES["int32"]),
        Statistic(name="delay", type=TYPES["mma64"]),
    ),
)

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


def fill(lake: Lake, samples: int, commits: int) -> None:
    """Record so many samples as the recorder does."""
    table = table_of(CLASS)
    converters = Converters(table)
    buffers = Buffers()
    told = (RUN, 0, 0, 0, 0, None, None, table.package, table.name, table.hash, False, table.to_json(), "")
    buffers.add(RowKind.SCHEMAS, None, 0, told)
    files, each = 1, -(-samples // commits)
    for n in range(samples):
        second = n // OBJECTS
        time_ns = second * SECOND
        level = 95 if second % PERIOD >= PERIOD - BAD else 40
        values: dict[str, object] = {"done": n, "load": n / 7, "level": level}
        values |= {"delayCount": 3, "delayMin": 1, "delayMax": 9, "delayAvg": n % 9}
        own = (f"thing-{n % OBJECTS}", 0, 0, 0, False, True)
        common = (RUN, n + 1, time_ns // 1000, time_ns, time_ns, "bench", 1)
        buffers.add(RowKind.OBJECTS, table, time_ns, (*common, *own, *converters.cells(values, statistics=True)))
        if n % each == each - 1 or n == samples - 1:
            batch = buffers.take()
            commit(lake, "bench", RUN, files, batch)
            files += len(batch.parts)


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
    follower = Follower(spark, options(root), ignore, files=files)
    found = 0
    while (step := follower.step()) is not None or follower.behind():
        found += 0 if step is None else len(step.alerts)
    follower.close()
    return found


def by_rollup(spark: Any, root: str) -> int:
    """Rows of the rollup to minutes."""
    frames = Frames(spark, root)
    (of,) = frames.classes(["thing"])
    return int(rollup(frames.of(of), of, "1m").groupBy().sum("delta", "mean", "low", "high").count())


def options(root: str) -> CorrelateOptions:
    """Of both."""
    return CorrelateOptions(lake=root, out=f"{root}/_tables/correlate", rules=parse_rules(RULES), late=5 * SECOND)


def run(spark: Any, values: int, commits: int) -> tuple[Sequence[float], bool]:
    """Seconds of batch, stream and rollup, and whether the alerts are those that must be."""
    with tempfile.TemporaryDirectory() as folder:
        root = str(Path(folder) / "lake")
        lake = Lake(root)
        lake.create()
        samples = values // VALUES // OBJECTS * OBJECTS
        fill(lake, samples, commits)
        taken: list[float] = []
        found: list[int] = []
        for work in (by_batch, partial(by_stream, files=commits // 10), by_rollup):
            started = time.perf_counter()
            found.append(work(spark, root))
            taken.append(time.perf_counter() - started)
        # The stream's last seconds wait for what may come late; what happens in them is not told yet.
        right = found[0] == expected(samples) and found[0] - 2 * OBJECTS <= found[1] <= found[0]
        return taken, right


def main() -> int:
    """Run and print; 1 when alerts are missing, or too many."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("values", nargs="*", type=int, default=[1_000_000, 10_000_000])
    spark = session("local[2]", name="bench")
    spark.sparkContext.setLogLevel("ERROR")
    run(spark, 70_000, 10)
    wrong = 0
    print(f"{'values':>12} {'batch/s':>12} {'10 steps/s':>12} {'rollup/s':>12}  batch:rollup  us per value")
    for values in parser.parse_args().values:
        taken, right = run(spark, values, 20)
        wrong += not right
        batch, stream, rolled = (values / seconds for seconds in taken)
        print(
            f"{values:12,} {batch:12,.0f} {stream:12,.0f} {rolled:12,.0f} {batch / rolled:13.2f} "
            f"{taken[0] / values * 1e6:13.2f}{'' if right else '  wrong alerts'}",
            flush=True,
        )
    spark.stop()
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"peak memory of the largest child process: {peak:.0f} MB; alerts are {'wrong' if wrong else 'right'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
