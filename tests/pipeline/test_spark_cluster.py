"""All jobs, roll-ups, audits and rules as batches and as streams, by relative paths, on a Spark with executors in
separate processes: a standalone master with two workers from pyspark's own distribution, of which one is killed, and
``local-cluster``.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import psutil
import pytest
from pipeline.lakes import HERE, Shop, numbers
from pipeline.quick import QUICK
from pipeline.tills import Till, read
from support.waiting import wait_until

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.audit.job import audit_lake  # noqa: E402
from qmf.pipeline.audit.schemas import TABLES  # noqa: E402
from qmf.pipeline.audit.tables import AuditOptions  # noqa: E402
from qmf.pipeline.correlate import parse_rules  # noqa: E402
from qmf.pipeline.correlate.alert_table import AlertTable  # noqa: E402
from qmf.pipeline.correlate.alerts import AlertRow  # noqa: E402
from qmf.pipeline.correlate.batch import correlate_batch  # noqa: E402
from qmf.pipeline.correlate.batch_input import CorrelateOptions  # noqa: E402
from qmf.pipeline.correlate.stream import CorrelationStream  # noqa: E402
from qmf.pipeline.lake.delta_lake import DeltaLake  # noqa: E402
from qmf.pipeline.lake.maintenance import MaintenanceCounts  # noqa: E402
from qmf.pipeline.maintenance.checking import LakeCheck  # noqa: E402
from qmf.pipeline.maintenance.optimizing import optimize_lake  # noqa: E402
from qmf.pipeline.report.collect import ReportOptions, collect  # noqa: E402
from qmf.pipeline.report.model import Report  # noqa: E402
from qmf.pipeline.report.source import end_of_recording  # noqa: E402
from qmf.pipeline.report.time_range import parse_time_range  # noqa: E402
from qmf.pipeline.rollup.job import roll_up_lake  # noqa: E402
from qmf.pipeline.rollup.stream import RollupStream  # noqa: E402
from qmf.pipeline.rollup.tables import RollupOptions, rollup_table  # noqa: E402

pytestmark = pytest.mark.slow

#: Seconds for anything that starts Java.
WAIT_LIMIT = 600.0

#: Does all jobs on each of some masters, batches and streams, and prints how many executors there were. The masters
#: share the driver's Java, whose start is a large part of the cost.
PROGRAM = """
import json, os, pickle, shutil, sys
from contextlib import closing
from threading import Event
from qmf.pipeline.audit.job import audit_lake
from qmf.pipeline.audit.stream import AuditStream
from qmf.pipeline.audit.tables import AuditOptions
from qmf.pipeline.correlate import parse_rules
from qmf.pipeline.correlate.batch import correlate_batch
from qmf.pipeline.correlate.batch_input import CorrelateOptions
from qmf.pipeline.correlate.task_stream import TaskCorrelationStream
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.maintenance.checking import LakeCheck
from qmf.pipeline.maintenance.optimizing import optimize_lake
from qmf.pipeline.report.collect import ReportOptions, collect
from qmf.pipeline.report.model import Report  # noqa: E402
from qmf.pipeline.report.source import end_of_recording
from qmf.pipeline.report.time_range import parse_time_range
from qmf.pipeline.rollup import job
from qmf.pipeline.rollup.stream import TaskRollupStream
from qmf.pipeline.runners.runner import Pace
from qmf.pipeline.runners.spark import SparkRunner
from qmf.pipeline.rollup.tables import RollupOptions
from qmf.pipeline.spark import session
from qmf.pipeline.spark_access.session import job_settings
given = json.loads(sys.argv[1])
lake, rules = given["lake"], parse_rules(given["rules"], "rules.toml")
quick = {**job_settings(small=True), **given["settings"]}
quick["spark.executor.extraJavaOptions"] = quick["spark.driver.extraJavaOptions"]
quick |= {"spark.executor.memory": "512m", "spark.executor.cores": "1"}
job.MAX_VALUES = 0
ignore = lambda _text: None
def follow(runner, out, stream, step):
    if given["streams"] == "queries":
        checkpoint = out + "/checkpoints/" + type(stream).__name__
        runner.follow(stream.lake, checkpoint, step, Pace(every=1.0, once=True), Event())
    else:
        while step(None):
            pass
def do_all(spark, out, task_rows):
    runner = SparkRunner(spark, task_rows)
    options = RollupOptions(lake=lake, out=out, sizes=("1m", "1h"))
    rows = job.roll_up_lake(runner, options, ignore)
    executors = spark.sparkContext.parallelize(range(8), 8).map(lambda _: os.environ["SPARK_EXECUTOR_DIRS"]).collect()
    print(json.dumps({"out": out, "application": spark.sparkContext.applicationId, "executors": len(set(executors))}))
    audit_lake(runner, AuditOptions(lake, out + "/audit"), ignore)
    chosen = CorrelateOptions(lake=lake, out=out + "/alerts", rules=rules)
    correlate_batch(runner, chosen, ignore)
    audit = AuditStream(runner, AuditOptions(lake, out + "/audit-stream"))
    follow(runner, out, audit, lambda until: audit.step(until) and False)
    with closing(TaskRollupStream(runner, options)) as stream:
        follow(runner, out, stream, lambda until: stream.step(until, last=True) and False)
    with closing(TaskCorrelationStream(runner, chosen, ignore)) as stream:
        follow(runner, out, stream, lambda until: stream.step(until) is not None)
    audit_lake(runner, AuditOptions(lake, out + "/history", events=False), ignore)
    about = parse_time_range(None, None, "1h", end_of_recording(runner, lake))
    nowhere = out + "/nowhere"
    def report(audit, rollups):
        return collect(runner, ReportOptions(lake=lake, audit=audit, rollups=rollups, own=True), about, ignore)
    found = {
        "rows": rows,
        "plain": report(nowhere, nowhere),
        "of tables": report(out + "/audit", out),
        "check": [str(item) for item in LakeCheck(runner, DeltaLake(lake)).findings()],
    }
    shutil.copytree(lake, out + "/copy")
    found["optimize"] = optimize_lake(runner, DeltaLake(out + "/copy"))
    with open(out + "/found", "wb") as file:
        pickle.dump(found, file)
for master, out, task_rows in given["places"]:
    spark = session(master, partitions=2, settings=quick, data_source=False)
    do_all(spark, out, task_rows)
    spark.stop()
"""

RULES = """
[busy]
kind = "rate"
class = "till"
value = "sales"
above = 0.5
[silent]
kind = "absence"
of = "heartbeats"
expect = ["a", "b"]
for = "30s"
"""


def ignore(_text: str) -> None:
    """Ignore a line of output."""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path / "lake")
    for number in range(12):
        made.put(*((number * 20_000 + n, number * 20 + n) for n in range(20)), object=f"till-{number % 3}")
    Till(made, "one").publish(100, name="one", limit=1)
    made.agent(90, "added")
    made.beat(95, 105)
    made.events((101, {"till": "one", "amount": 7}), (101, {"till": "one", "amount": 7}))
    return made


@attrs.frozen(kw_only=True)
class Made:
    """What the jobs made of the lake.

    Attributes:
        rows: written by the batch of roll-ups.
        rollups, rollups_of_stream: the rows of the tables.
        alerts, alerts_of_stream: in order.
        audit, audit_of_stream, history: rows by table.
        reports: by the lake alone, and by the tables of the other jobs.
        findings: of the check.
        optimized, numbers: counts, and the rows of the lake that was optimized.
    """

    rows: int
    rollups: list[dict[str, Any]]
    rollups_of_stream: list[dict[str, Any]]
    alerts: list[AlertRow]
    alerts_of_stream: list[AlertRow]
    audit: dict[str, Any]
    audit_of_stream: dict[str, Any]
    history: dict[str, Any]
    reports: list[Report]
    findings: list[str]
    optimized: MaintenanceCounts
    numbers: Any


def table(options: RollupOptions, by: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = rollup_table(options, by).delta().to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: (row["size"], row["window_start"], row["object"], row["member"]))


def made_here(shop: Shop, out: Path) -> Made:
    """Run all jobs in this process."""
    options = RollupOptions(lake=shop.root, out=str(out), sizes=("1m", "1h"))
    rows = roll_up_lake(HERE, options, ignore)
    with closing(RollupStream(options)) as stream:
        stream.step(last=True)
    audit_lake(HERE, AuditOptions(lake=shop.root, out=f"{out}-audit"), ignore)
    audit = read(Path(f"{out}-audit"))
    of = CorrelateOptions(lake=shop.root, out=f"{out}-alerts", rules=parse_rules(RULES, "rules.toml"))
    alerts = list(correlate_batch(HERE, of, ignore).table.in_order())
    with closing(CorrelationStream(of, ignore)) as follower:
        while follower.step() is not None:
            pass
        alerts_of_stream = list(follower.table.in_order())
    about = parse_time_range(None, None, "1h", end_of_recording(HERE, shop.root))
    nowhere = f"{out}-nowhere"
    report = collect(HERE, ReportOptions(lake=shop.root, audit=nowhere, rollups=nowhere, own=True), about, ignore)
    shutil.copytree(shop.root, out / "copy")
    copy = DeltaLake(str(out / "copy"))
    return Made(
        rows=rows,
        rollups=table(options, "batch"),
        rollups_of_stream=table(options, "stream"),
        alerts=alerts,
        alerts_of_stream=alerts_of_stream,
        audit=audit,
        audit_of_stream=audit,
        history={name: rows for name, rows in audit.items() if name in TABLES},
        reports=[report, report],
        findings=[str(item) for item in LakeCheck(HERE, DeltaLake(shop.root)).findings()],
        optimized=optimize_lake(HERE, copy),
        numbers=numbers(copy),
    )


def made_on_spark(shop: Shop, out: Path) -> Made:
    """What the program has made."""
    options = RollupOptions(lake=shop.root, out=str(out), sizes=("1m", "1h"))
    found = pickle.loads((out / "found").read_bytes())
    return Made(
        rows=found["rows"],
        rollups=table(options, "batch"),
        rollups_of_stream=table(options, "stream"),
        alerts=list(AlertTable(f"{out}/alerts", "batch").in_order()),
        alerts_of_stream=list(AlertTable(f"{out}/alerts", "stream").in_order()),
        audit=read(out / "audit"),
        audit_of_stream=read(out / "audit-stream"),
        history=read(out / "history", tables=TABLES),
        reports=[attrs.evolve(found[name], lake=shop.root) for name in ("plain", "of tables")],
        findings=found["check"],
        optimized=found["optimize"],
        numbers=numbers(DeltaLake(str(out / "copy"))),
    )


def check_made(shop: Shop, folder: Path, outs: Sequence[str]) -> None:
    """Compare what was made on Spark with what this process makes, which is something."""
    here = made_here(shop, folder / "here")
    assert {item.rule for item in here.alerts} == {"busy", "silent"}
    assert here.rows > 0
    assert here.rollups_of_stream != []
    assert here.alerts_of_stream != []
    assert [len(here.audit[name]) for name in ("availability", "lives", "events")] == [1, 4, 1]
    assert here.reports[0].agents
    assert here.optimized != MaintenanceCounts()
    assert here.numbers == numbers(DeltaLake(shop.root))
    for out in outs:
        there = made_on_spark(shop, folder / out)
        for field in attrs.fields(Made):
            assert (out, getattr(there, field.name)) == (out, getattr(here, field.name)), field.name


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def kill(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and all its children; nothing if it has ended."""
    with suppress(psutil.NoSuchProcess):
        main = psutil.Process(process.pid)
        for each in [main, *main.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                each.kill()
    process.wait()


#: All programs of Spark listen here.
LOCAL = {"SPARK_LOCAL_IP": "127.0.0.1"}


@contextmanager
def daemon(folder: Path, name: str, *arguments: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A program of Spark's distribution; yields it and its log."""
    log = folder / f"{name}.log"
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK["spark.driver.extraJavaOptions"],
    }
    command = [str(Path(pyspark.__file__).parent / "bin" / "spark-class"), *arguments]
    with log.open("wb") as target:
        process = subprocess.Popen(command, stdout=target, stderr=subprocess.STDOUT, env=environment, cwd=folder)
    try:
        yield process, log
    finally:
        kill(process)


@contextmanager
def standalone(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """A master with two workers; yields its URL and a worker."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        common = ("--host", "127.0.0.1", "--webui-port", "0")
        master = ("org.apache.spark.deploy.master.Master", *common, "--port", str(port))
        _, log = stack.enter_context(daemon(folder, "master", *master))
        wait_until(lambda: "New state: ALIVE" in log.read_text(errors="replace"), "the master", WAIT_LIMIT)
        workers = []
        for number in range(2):
            worker = ("org.apache.spark.deploy.worker.Worker", *common, "--cores", "1", "--memory", "600m")
            place = ("--work-dir", str(folder / f"worker-{number}"), url)
            workers.append(stack.enter_context(daemon(folder, f"worker-{number}", *worker, *place))[0])
        registered = "Registering worker"
        wait_until(lambda: log.read_text(errors="replace").count(registered) == 2, "both workers", WAIT_LIMIT)
        yield url, workers[0]


@pytest.mark.parametrize("streams", ["steps", pytest.param("queries", marks=pytest.mark.soak)])
def test_all_jobs_do_the_same_on_clusters(shop: Shop, tmp_path: Path, streams: str) -> None:
    """On a standalone master with two workers, of which one is killed, and on a local cluster.

    The lake and the tables are given by paths relative to the folder that both are in; executors have other ones.
    Streams are followed by their steps, or as queries of Structured Streaming. With these, both clusters divide a job
    into many tasks; otherwise the standalone master has a few, and the local cluster one for each part of a job: tasks
    and shuffles are most of what this costs.
    """
    with standalone(tmp_path) as (url, worker):
        given = {
            "lake": os.path.relpath(shop.root, tmp_path),
            "rules": RULES,
            "settings": QUICK,
            "streams": streams,
            "places": [
                (url, "standalone", 100 if streams == "steps" else 30),
                ("local-cluster[2,1,1024]", "local-cluster", 1000 if streams == "steps" else 30),
            ],
        }
        command = [sys.executable, "-c", PROGRAM, json.dumps(given)]
        with subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **LOCAL},
            cwd=tmp_path,
        ) as program:
            # It is killed as soon as it has written a file: most of the work is still to be done.
            written = tmp_path / "standalone" / "batch"
            wait_until(
                lambda: program.poll() is not None or any(written.rglob("*.parquet")), "a file of a task", WAIT_LIMIT
            )
            kill(worker)
            output, errors = program.communicate(timeout=2 * WAIT_LIMIT)
    assert program.returncode == 0, errors
    found = {item["out"]: item for item in map(json.loads, output.splitlines())}
    # What the executors of a local cluster logged.
    logged = Path(pyspark.__file__).parent / "work" / found["local-cluster"]["application"]
    shutil.rmtree(logged, ignore_errors=True)
    assert found["local-cluster"]["executors"] == 2
    check_made(shop, tmp_path, ["standalone", "local-cluster"])
