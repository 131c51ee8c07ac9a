"""What does a job over a small lake cost, in this process, on Spark in this machine, and on a standalone master?

Makes a lake of 20,000 rows in 30 files (five classes of samples, one of events, heartbeats, agents, schemas) and runs
rollup, audit, history, correlate, report, optimize and check over it: in this process, on ``local[2]``, and on a
standalone master with two workers of one core each, started from pyspark's own distribution. Prints seconds for each,
with the processor seconds of all processes (the driver, Java, executors and their Python) in brackets, and how many
jobs, stages and tasks of Spark it took. Spark's start is not counted; that of executors' Python is in the first job.

    python bench/pipeline_small.py [--where process,local,standalone] [--profile] [JOB ...]
"""

from __future__ import annotations

import argparse
import cProfile
import os
import pstats
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyspark

from qmf.pipeline.audit.job import audit_lake
from qmf.pipeline.audit.options import AuditOptions
from qmf.pipeline.correlate import parse_rules
from qmf.pipeline.correlate.batch import correlate_batch
from qmf.pipeline.correlate.options import CorrelateOptions
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.maintenance.checking import LakeCheck
from qmf.pipeline.maintenance.optimizing import optimize_lake
from qmf.pipeline.record.buffers import RowBuffers
from qmf.pipeline.record.lake_writer import LakeWriter
from qmf.pipeline.report.collect import ReportOptions, collect
from qmf.pipeline.report.source import end_of_recording
from qmf.pipeline.report.time_range import parse_time_range
from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.tables import RollupOptions
from qmf.pipeline.runners.process import ProcessRunner
from qmf.pipeline.runners.runner import Runner
from qmf.schema import TYPES, Argument, ClassSchema, EventSchema, Property, Severity, Statistic

SECOND = 10**9
RUN, AGENT, START = "00000000000000000001_1", "example.org:bench:small", 1_700_000_000

CLASSES, OBJECTS, COMMITS, SAMPLES = 5, 20, 4, 180

RULES = """
[busy]
kind = "threshold"
class = "thing0"
value = "level"
above = 98
[growing]
kind = "rate"
class = "thing1"
value = "done"
above = 1000
[silent]
kind = "absence"
of = "heartbeats"
expect = ["example.org:bench:small"]
for = "60s"
"""

EVENT = ClassVersion.from_schema(
    EventSchema(
        package="org.example.bench",
        name="happened",
        severity=Severity.INFORM,
        arguments=(Argument(name="what", type=TYPES["sstr"]),),
    )
)


def versions() -> list[ClassVersion]:
    """The classes."""
    return [
        ClassVersion.from_schema(
            ClassSchema(
                package="org.example.bench",
                name=f"thing{number}",
                properties=(Property(name="name", type=TYPES["sstr"], index=True),),
                statistics=(
                    Statistic(name="done", type=TYPES["count64"]),
                    Statistic(name="level", type=TYPES["int32"]),
                    Statistic(name="load", type=TYPES["double"]),
                ),
            )
        )
        for number in range(CLASSES)
    ]


def fill(lake: DeltaLake) -> tuple[int, int]:
    """Record; gives the number of rows, and of files."""
    lake.create()
    buffers, writer, tables = RowBuffers(), LakeWriter(lake, "bench"), versions()
    seq = 0

    def add(kind: RowKind, at_ns: int, cells: tuple[object, ...], table: ClassVersion | None = None) -> None:
        nonlocal seq
        seq += 1
        buffers.add(kind, table, at_ns, (RUN, seq, at_ns // 1000, at_ns, at_ns, AGENT, 1, *cells))

    for table in (*tables, EVENT):
        add(
            RowKind.SCHEMAS,
            START * SECOND,
            (table.package, table.name, table.hash, table.event, table.to_json(), "", None),
        )
    add(RowKind.AGENTS, START * SECOND, ("added", None, 10.0))
    for sample in range(SAMPLES):
        at_ns = (START + 20 * sample) * SECOND
        for table in tables:
            for own in range(OBJECTS):
                name = f"{table.name}-{own}"
                cells = (
                    name,
                    1,
                    START * SECOND,
                    0,
                    sample % 60 == 0,
                    True,
                    name,
                    sample * own,
                    sample % 100,
                    sample / 7,
                )
                add(RowKind.OBJECTS, at_ns, cells, table)
        for beat in range(2):
            add(RowKind.HEARTBEATS, at_ns + beat * 10 * SECOND, (10.0, None, 1, None, None))
        for number in range(8):
            add(RowKind.EVENTS, at_ns + number, (6, None, f"event {number}"), EVENT)
        if sample % (SAMPLES // COMMITS) == SAMPLES // COMMITS - 1:
            writer.commit(sample // (SAMPLES // COMMITS) + 1, buffers.take())
    files = sum(len(lake.table(path).snapshot().files) for path in lake.paths())
    return seq, files


def jobs(root: str, out: str) -> dict[str, Callable[[Runner], object]]:
    """What is measured."""

    def ignore(_text: str) -> None:
        """A line for the user."""

    def report(runner: Runner) -> object:
        about = parse_time_range(None, None, "1h", end_of_recording(runner, root))
        nowhere = f"{out}/nowhere"
        return collect(runner, ReportOptions(lake=root, audit=nowhere, rollups=nowhere), about, ignore)

    def correlate(runner: Runner) -> object:
        rules = parse_rules(RULES, "rules.toml")
        return correlate_batch(runner, CorrelateOptions(lake=root, out=f"{out}/alerts", rules=rules), ignore)

    def optimize(runner: Runner) -> object:
        shutil.copytree(root, f"{out}/copy")
        return optimize_lake(runner, DeltaLake(f"{out}/copy"))

    history = AuditOptions(root, f"{out}/history", events=False)
    return {
        "rollup": lambda runner: roll_up_lake(
            runner, RollupOptions(lake=root, out=f"{out}/rollup", sizes=("1m", "1h")), ignore
        ),
        "audit": lambda runner: audit_lake(runner, AuditOptions(root, f"{out}/audit"), ignore),
        "history": lambda runner: audit_lake(runner, history, ignore),
        "correlate": correlate,
        "report": report,
        "optimize": optimize,
        "check": lambda runner: list(LakeCheck(runner, DeltaLake(root)).findings()),
    }


def processor_seconds() -> float:
    """Of this process and of all that it started, as far as they are still there."""
    own = psutil.Process()
    found = 0.0
    for process in [own, *own.children(recursive=True)]:
        try:
            times = process.cpu_times()
        except psutil.NoSuchProcess:
            continue
        found += times.user + times.system + times.children_user + times.children_system
    return found


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """A standalone master with two workers; yields its URL."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    url = f"spark://127.0.0.1:{port}"
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    common = ("--host", "127.0.0.1", "--webui-port", "0")
    own = "org.apache.spark.deploy"
    programs: list[tuple[str, ...]] = [(f"{own}.master.Master", *common, "--port", str(port))]
    for number in range(2):
        place = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker-{number}"), url)
        programs.append((f"{own}.worker.Worker", *common, *place))
    command = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    started: list[subprocess.Popen[bytes]] = []
    try:
        for number, arguments in enumerate(programs):
            log = (folder / f"{number}.log").open("wb")
            started.append(
                subprocess.Popen(
                    [command, *arguments], stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=folder
                )
            )
            wanted = "New state: ALIVE" if number == 0 else "Successfully registered with master"
            give_up = time.monotonic() + 120
            while wanted not in (folder / f"{number}.log").read_text(errors="replace"):
                if time.monotonic() > give_up:
                    raise TimeoutError(f"Spark's {arguments[0]} did not start")
                time.sleep(0.1)
        yield url
    finally:
        for process in reversed(started):
            for each in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
                each.terminate()
            process.wait()


class SparkCounts:
    """Counts jobs, stages and tasks of Spark."""

    def __init__(self, spark: Any) -> None:
        self._spark = spark
        self._number = 0

    def begin(self) -> None:
        """Count from now on."""
        self._number += 1
        self._spark.sparkContext.setJobGroup(f"bench-{self._number}", "")

    def text(self) -> str:
        """What was counted."""
        tracker = self._spark.sparkContext.statusTracker()
        own = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(f"bench-{self._number}")]
        stages = [tracker.getStageInfo(stage) for job in own if job for stage in job.stageIds]
        tasks = sum(stage.numTasks for stage in stages if stage)
        return f", {len(own)} jobs, {len(stages)} stages, {tasks} tasks"


def measure(
    where: str, runner: Runner, names: list[str], root: str, out: str, counts: SparkCounts | None, profile: bool
) -> None:
    """Run the jobs, and print what they cost."""
    for name, job in jobs(root, out).items():
        if names and name not in names:
            continue
        if counts is not None:
            counts.begin()
        begun, spent = time.perf_counter(), processor_seconds()
        with ExitStack() as stack:
            profiler = stack.enter_context(cProfile.Profile()) if profile else None
            job(runner)
        seconds, used = time.perf_counter() - begun, processor_seconds() - spent
        print(f"{where} {name}: {seconds:.1f} s ({used:.1f}){counts.text() if counts else ''}", flush=True)
        if profiler is not None:
            pstats.Stats(profiler).sort_stats("cumulative").print_stats(35)


def main() -> None:
    """Make the lake and run the jobs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("jobs", nargs="*", metavar="JOB", help="default: all")
    parser.add_argument("--where", default="process,local,standalone", help="default: %(default)s")
    parser.add_argument("--profile", action="store_true", help="print where the driver's time goes")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = str(Path(folder, "lake"))
        rows, files = fill(DeltaLake(root))
        print(f"{rows} rows in {files} files", flush=True)
        for where in options.where.split(","):
            out = str(Path(folder, where))
            Path(out).mkdir()
            if where == "process":
                measure(where, ProcessRunner(), options.jobs, root, out, None, options.profile)
                continue
            from qmf.pipeline.runners.spark import SparkRunner
            from qmf.pipeline.spark import session
            from qmf.pipeline.spark.job_settings import job_settings

            with ExitStack() as stack:
                master = stack.enter_context(standalone(Path(out))) if where == "standalone" else "local[2]"
                begun = time.perf_counter()
                memory = {"spark.executor.memory": "512m"} if where == "standalone" else {}
                spark = session(master, settings={**job_settings(small=True), **memory})
                print(f"{where}: Spark started in {time.perf_counter() - begun:.1f} s", flush=True)
                try:
                    measure(where, SparkRunner(spark), options.jobs, root, out, SparkCounts(spark), options.profile)
                finally:
                    spark.stop()


if __name__ == "__main__":
    main()
