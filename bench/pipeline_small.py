"""What does a job over a small lake cost, in this process, on Spark in this machine, and on a standalone master?

Makes a lake of 20,000 rows in 30 files (five classes of samples, one of events, heartbeats, agents, schemas) and runs
rollup, audit, history, correlate, report, optimize and check over it, as batches; then it follows one as streams of
rollup, audit and correlate, to which it adds 5,000 rows four times: in this process, on ``local[2]``, and on a
standalone master with two workers of one core each, started from pyspark's own distribution.

    python bench/pipeline_small.py [--where process,local,standalone] [--limit SECONDS] [--profile] [JOB ...]

Prints for each job the seconds, and their share of the limit (15); the processor seconds of all processes, then those
of the driver, its Java, the executors' Java and their Python; and how many jobs, stages and tasks of Spark it took. Of
streams, the first step is that over the lake, with the start of the query; the others are from the commit of new rows
to the end of the step with them, the mean of four. The start of Spark and of its executors is not counted; that of
executors' Python is, in the first job of each. Ends with 1 where something on the standalone master took longer than
the limit.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import attrs
from small_lake import RULES, SmallLake
from spark_master import SparkCounts, processor_seconds, standalone, started_session

from qmf.pipeline.audit.job import audit_lake
from qmf.pipeline.audit.stream import AuditStream
from qmf.pipeline.audit.tables import AuditOptions
from qmf.pipeline.correlate import parse_rules
from qmf.pipeline.correlate.batch import correlate_batch
from qmf.pipeline.correlate.batch_input import CorrelateOptions
from qmf.pipeline.correlate.stream import CorrelationStream
from qmf.pipeline.correlate.task_stream import TaskCorrelationStream
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_versions import LakeVersions
from qmf.pipeline.maintenance.checking import LakeCheck
from qmf.pipeline.maintenance.optimizing import optimize_lake
from qmf.pipeline.report.collect import ReportOptions, collect
from qmf.pipeline.report.source import end_of_recording
from qmf.pipeline.report.time_range import parse_time_range
from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.stream import RollupStream, TaskRollupStream
from qmf.pipeline.rollup.tables import RollupOptions
from qmf.pipeline.runners.process import ProcessRunner
from qmf.pipeline.runners.runner import Pace, Runner
from qmf.pipeline.runners.spark import SparkRunner

#: Steps of a stream with new rows, and the samples of each object in such a step.
STEPS, ADDED = 4, 45

#: The names of what runs as a stream.
STREAMS = ("rollup stream", "audit stream", "correlate stream")


def ignore(_text: str) -> None:
    """A line for the user."""


def rollup_options(root: str, out: str) -> RollupOptions:
    """Of batch and stream."""
    return RollupOptions(lake=root, out=f"{out}/rollup", sizes=("1m", "1h"), late="1 minute")


def rule_options(root: str, out: str) -> CorrelateOptions:
    """Of batch and stream."""
    return CorrelateOptions(lake=root, out=f"{out}/alerts", rules=parse_rules(RULES, "rules.toml"))


def batches(root: str, out: str) -> dict[str, Callable[[Runner], object]]:
    """The jobs."""

    def report(runner: Runner) -> object:
        about = parse_time_range(None, None, "1h", end_of_recording(runner, root))
        nowhere = f"{out}/nowhere"
        return collect(runner, ReportOptions(lake=root, audit=nowhere, rollups=nowhere), about, ignore)

    def optimize(runner: Runner) -> object:
        shutil.copytree(root, f"{out}/copy")
        return optimize_lake(runner, DeltaLake(f"{out}/copy"))

    history = AuditOptions(root, f"{out}/history", events=False)
    return {
        "rollup": lambda runner: roll_up_lake(runner, rollup_options(root, out), ignore),
        "audit": lambda runner: audit_lake(runner, AuditOptions(root, f"{out}/audit"), ignore),
        "history": lambda runner: audit_lake(runner, history, ignore),
        "correlate": lambda runner: correlate_batch(runner, rule_options(root, out), ignore),
        "report": report,
        "optimize": optimize,
        "check": lambda runner: list(LakeCheck(runner, DeltaLake(root)).findings()),
    }


@contextmanager
def open_stream(name: str, runner: Runner, root: str, out: str) -> Iterator[Callable[[LakeVersions | None], object]]:
    """The step of a stream, which returns whether there was anything to do."""
    here = isinstance(runner, ProcessRunner)
    if name == "audit stream":
        yield AuditStream(runner, AuditOptions(root, f"{out}/audit")).step
        return
    made: Any
    if name == "rollup stream":
        rolled = rollup_options(root, out)
        made = RollupStream(rolled) if here else TaskRollupStream(runner, rolled)
    else:
        rules = rule_options(root, out)
        made = CorrelationStream(rules, ignore) if here else TaskCorrelationStream(runner, rules, ignore)
    with closing(made) as stream:
        yield stream.step


@attrs.frozen
class Cost:
    """What something cost.

    Attributes:
        seconds: by the clock.
        used: processor seconds of kinds of processes.
        spark: jobs, stages and tasks of Spark; none in the process.
    """

    seconds: float
    used: Mapping[str, float]
    spark: tuple[int, int, int] | None = None

    def line(self, limit: float) -> str:
        """As a line."""
        kinds = " ".join(f"{name} {seconds:.1f}" for name, seconds in self.used.items())
        counts = "" if self.spark is None else ", {} jobs {} stages {} tasks".format(*self.spark)
        each = f" ({kinds})" if self.spark else ""
        return f"{self.seconds:6.1f} s {self.seconds / limit:5.2f} {sum(self.used.values()):7.1f} cpu s{each}{counts}"


class Meter:
    """Measures from when it is made."""

    def __init__(self, spark: Any) -> None:
        self._counts = None if spark is None else SparkCounts(spark)
        self._used, self._started = processor_seconds(), time.perf_counter()

    def cost(self) -> Cost:
        """The cost so far."""
        seconds, now = time.perf_counter() - self._started, processor_seconds()
        used = {kind: now[kind] - before for kind, before in self._used.items()}
        return Cost(seconds, used, None if self._counts is None else self._counts.counts())


def batch_cost(runner: Runner, spark: Any, job: Callable[[Runner], object], *, profile: bool) -> Cost:
    """The cost of a batch."""
    meter = Meter(spark)
    with ExitStack() as stack:
        profiler = stack.enter_context(cProfile.Profile()) if profile else None
        job(runner)
    cost = meter.cost()
    if profiler is not None:
        pstats.Stats(profiler).sort_stats("cumulative").print_stats(35)
    return cost


def stream_costs(name: str, runner: Runner, root: str, out: str) -> tuple[Cost, Cost]:
    """The costs of the first step of a stream, and of one with new rows."""
    lake, stop = SmallLake(root), threading.Event()
    costs: list[Cost] = []
    with open_stream(name, runner, root, out) as step:
        meter = Meter(None)

        def next_step(until: LakeVersions | None) -> bool:
            nonlocal meter
            if not stop.is_set() and step(until):
                costs.append(meter.cost())
                if len(costs) > STEPS:
                    stop.set()
                else:
                    lake.commit(ADDED)
                    meter = Meter(None)
            return False

        runner.follow(lake.lake, f"{out}/checkpoint", next_step, Pace(every=0.2), stop)
    others = costs[1:]
    used = {kind: sum(cost.used[kind] for cost in others) / len(others) for kind in others[0].used}
    return costs[0], Cost(sum(cost.seconds for cost in others) / len(others), used)


def measure(where: str, runner: Runner, names: list[str], folder: Path, options: argparse.Namespace) -> float:
    """Run the jobs, print what they cost, and return the seconds of the slowest."""
    spark = getattr(runner, "spark", None)
    root, out = str(folder / "lake"), str(folder / where)
    slowest = 0.0

    def print_cost(name: str, cost: Cost) -> None:
        nonlocal slowest
        slowest = max(slowest, cost.seconds)
        print(f"{where:>10} {name:24} {cost.line(options.limit)}", flush=True)

    for name, job in batches(root, out).items():
        if name in names:
            print_cost(name, batch_cost(runner, spark, job, profile=options.profile))
    for name in STREAMS:
        if name in names:
            first, other = stream_costs(name, runner, f"{out}/{name}/lake", f"{out}/{name}/tables")
            print_cost(f"{name}, first step", first)
            print_cost(f"{name}, step", other)
    return slowest


def main() -> int:
    """Make the lake and run the jobs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="default: all; a stream is one word, 'rollup stream'")
    parser.add_argument("--where", default="process,local,standalone", help="default: %(default)s")
    parser.add_argument("--limit", type=float, default=15.0, help="seconds of a job (default: %(default)s)")
    parser.add_argument("--profile", action="store_true", help="print where the driver's time goes")
    options = parser.parse_args()
    known = [*batches("", ""), *STREAMS]
    names = options.jobs or known
    if unknown := [name for name in names if name not in known]:
        parser.error(f"no job {', '.join(unknown)}; there are {', '.join(known)}")
    slowest = 0.0
    with tempfile.TemporaryDirectory() as base:
        folder = Path(base)
        print(f"{SmallLake(str(folder / 'lake'))}", flush=True)
        for where in options.where.split(","):
            (folder / where).mkdir()
            if where == "process":
                measure(where, ProcessRunner(), names, folder, options)
                continue
            is_cluster = where == "standalone"
            with standalone(folder / where) if is_cluster else nullcontext("local[2]") as master:
                started = time.perf_counter()
                with started_session(master, 2 if is_cluster else 0, small=True) as spark:
                    print(f"{where:>10} Spark started in {time.perf_counter() - started:.1f} s", flush=True)
                    found = measure(where, SparkRunner(spark), names, folder, options)
                    slowest = max(slowest, found) if is_cluster else slowest
    if slowest:
        print(f"slowest on the standalone master: {slowest:.1f} s, {slowest / options.limit:.2f} of the limit")
    return int(slowest > options.limit)


if __name__ == "__main__":
    sys.exit(main())
