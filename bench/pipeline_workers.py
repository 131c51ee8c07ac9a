"""How much faster are rules on two workers of a standalone master than on one?

Makes a lake of one class with 7 values per sample and evaluates three rules over it (a threshold with duration and
hysteresis, a rate, and the absence of samples), on a master with one worker of one core, and on one with two. The
alerts are known beforehand, and must be found. A small lake is first, so that Java and Python have started.

    python bench/pipeline_workers.py [--rounds N] [VALUES]        default: 10000000

Prints seconds of the fastest round, the processor seconds of the driver with its Java and those of each executor (its
Java and its Python), and the ratio of the seconds. Beside it is the ratio of what one processor has to do at least: on
a machine that does other work as well, compare the processor seconds of the driver and of the busiest executor.
Ends with 1 where that ratio is below 1.6.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

import attrs
from pipeline_correlate import COMMITS, RULES, expected, ignore, level
from pipeline_lake import OBJECTS, VALUES, fill
from spark_master import executor_seconds, processor_seconds, standalone, started_session

from qmf.pipeline.correlate import parse_rules
from qmf.pipeline.correlate.batch import correlate_batch
from qmf.pipeline.correlate.batch_input import CorrelateOptions
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.runners.spark import SparkRunner

#: How much faster two workers are to be.
WANTED = 1.6


@attrs.frozen
class Run:
    """A run.

    Attributes:
        seconds: by the clock.
        driver: processor seconds of the driver and its Java.
        executors: those of each executor.
        alerts: that it found.
    """

    seconds: float
    driver: float
    executors: tuple[float, ...]
    alerts: int

    @property
    def least(self) -> float:
        """Seconds that it takes at least, where each executor has a processor of its own."""
        return self.driver + max(self.executors)


def make(root: Path, values: int) -> int:
    """A lake of so many values; returns the alerts that it has."""
    samples = values // VALUES // OBJECTS * OBJECTS
    DeltaLake(str(root)).create()
    fill(DeltaLake(str(root)), samples, -(-samples // COMMITS), level)
    return expected(samples)


def correlate(runner: SparkRunner, root: Path) -> Run:
    """Evaluate the rules."""
    started, used, own = time.perf_counter(), processor_seconds(), executor_seconds()
    options = CorrelateOptions(lake=str(root), out=f"{root}/_tables/correlate", rules=parse_rules(RULES))
    alerts = correlate_batch(runner, options, ignore).rows
    seconds, now, ended = time.perf_counter() - started, processor_seconds(), executor_seconds()
    driver = sum(now[kind] - used[kind] for kind in ("driver", "Java"))
    return Run(seconds, driver, tuple(sorted(ended[pid] - own.get(pid, 0.0) for pid in ended)), alerts)


def measure(folder: Path, workers: int, rounds: int) -> Run:
    """The fastest of some rounds."""
    place = folder / f"workers-{workers}"
    place.mkdir()
    with standalone(place, workers, apart=True) as master, started_session(master, workers, small=False) as spark:
        runner = SparkRunner(spark)
        for _ in range(2):
            correlate(runner, folder / "small")
        return min((correlate(runner, folder / "lake") for _ in range(rounds)), key=lambda run: run.seconds)


def main() -> int:
    """Make the lake, and measure."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("values", nargs="?", type=int, default=10_000_000, metavar="VALUES")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base)
        make(folder / "small", 70_000)
        alerts = make(folder / "lake", options.values)
        runs = [measure(folder, workers, options.rounds) for workers in (1, 2)]
    for workers, run in enumerate(runs, start=1):
        each = " ".join(f"{seconds:.1f}" for seconds in run.executors)
        right = "" if run.alerts == alerts else f", WRONG: {run.alerts} alerts, not {alerts}"
        print(f"{workers} workers: {run.seconds:.1f} s; processor s: driver {run.driver:.1f}, executors {each}{right}")
    ratio = runs[0].least / runs[1].least
    print(f"two workers are {runs[0].seconds / runs[1].seconds:.2f} times one by the clock, {ratio:.2f} at most")
    return int(ratio < WANTED or any(run.alerts != alerts for run in runs))


if __name__ == "__main__":
    sys.exit(main())
