"""All jobs, roll-ups, audits and rules as batches and as streams, by relative paths, on a Spark with executors in
separate processes, as on a cluster: ``local-cluster``, and a standalone master with two workers from pyspark's own
distribution, of which one is killed.
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
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
from qmf.pipeline.audit.options import AuditOptions  # noqa: E402
from qmf.pipeline.audit.schemas import TABLES  # noqa: E402
from qmf.pipeline.correlate import parse_rules  # noqa: E402
from qmf.pipeline.correlate.alert_table import AlertTable  # noqa: E402
from qmf.pipeline.correlate.batch import correlate_batch  # noqa: E402
from qmf.pipeline.correlate.options import CorrelateOptions  # noqa: E402
from qmf.pipeline.correlate.stream import CorrelationStream  # noqa: E402
from qmf.pipeline.lake.delta_lake import DeltaLake  # noqa: E402
from qmf.pipeline.lake.maintenance import MaintenanceCounts  # noqa: E402
from qmf.pipeline.maintenance.checking import LakeCheck  # noqa: E402
from qmf.pipeline.maintenance.optimizing import optimize_lake  # noqa: E402
from qmf.pipeline.report.collect import ReportOptions, collect  # noqa: E402
from qmf.pipeline.report.source import end_of_recording  # noqa: E402
from qmf.pipeline.report.time_range import parse_time_range  # noqa: E402
from qmf.pipeline.rollup.job import roll_up_lake  # noqa: E402
from qmf.pipeline.rollup.stream import RollupStream  # noqa: E402
from qmf.pipeline.rollup.tables import RollupOptions, rollup_table  # noqa: E402

pytestmark = pytest.mark.slow

#: Seconds for anything that starts Java.
WAIT_LIMIT = 600.0

#: Rolls a lake up and audits it, as batches and as streams, evaluates rules, and prints the folders of the executors.
PROGRAM = """
import json, os, sys
from contextlib import closing
from threading import Event
from qmf.pipeline.audit.job import audit_lake
from qmf.pipeline.audit.stream import AuditStream
from qmf.pipeline.audit.options import AuditOptions
from qmf.pipeline.correlate import parse_rules
from qmf.pipeline.correlate.batch import correlate_batch
from qmf.pipeline.correlate.options import CorrelateOptions
from qmf.pipeline.correlate.task_stream import TaskCorrelationStream
from qmf.pipeline.rollup import job
from qmf.pipeline.rollup.task_stream import TaskRollupStream
from qmf.pipeline.runners.runner import Pace
from qmf.pipeline.runners.spark import SparkRunner
from qmf.pipeline.rollup.tables import RollupOptions
from qmf.pipeline.spark import session
master, lake, out = sys.argv[1:4]
quick = json.loads(sys.argv[4])
quick["spark.executor.extraJavaOptions"] = quick["spark.driver.extraJavaOptions"]
spark = session(master, partitions=2, settings={**quick, "spark.executor.memory": "512m", "spark.executor.cores": "1"})
print("application", spark.sparkContext.applicationId, flush=True)
runner = SparkRunner(spark, 30)
job.MAX_VALUES = 0
ignore = lambda _text: None
options = RollupOptions(lake=lake, out=out, sizes=("1m", "1h"))
rows = job.roll_up_lake(runner, options, ignore)
executors = spark.sparkContext.parallelize(range(8), 8).map(lambda _: os.environ["SPARK_EXECUTOR_DIRS"]).collect()
print("executors", json.dumps(sorted(set(executors))))
print("rows", rows)
audit_lake(runner, AuditOptions(lake, out + "/audit"), ignore)
rules = parse_rules(sys.argv[5], "rules.toml")
correlate_batch(runner, CorrelateOptions(lake=lake, out=out + "/alerts", rules=rules), ignore)
def follow(stream, step):
    if sys.argv[6] == "queries":
        checkpoint = out + "/checkpoints/" + type(stream).__name__
        runner.follow(stream.lake, checkpoint, step, Pace(every=1.0, once=True), Event())
    else:
        while step(None):
            pass
audit = AuditStream(runner, AuditOptions(lake, out + "/audit-stream"))
follow(audit, lambda until: audit.step(until) and False)
with closing(TaskRollupStream(runner, options)) as stream:
    follow(stream, lambda until: stream.step(until, last=True) and False)
chosen = CorrelateOptions(lake=lake, out=out + "/alerts", rules=rules)
with closing(TaskCorrelationStream(runner, chosen, ignore)) as stream:
    follow(stream, lambda until: stream.step(until) is not None)
if sys.argv[7:]:
    exec(sys.argv[7])
spark.stop()
"""

#: Runs the other jobs as well: `optimize` on a copy of the lake, and the rest on the lake.
OTHERS = """
import pickle, shutil
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.maintenance.checking import LakeCheck
from qmf.pipeline.maintenance.optimizing import optimize_lake
from qmf.pipeline.report.collect import ReportOptions, collect
from qmf.pipeline.report.source import end_of_recording
from qmf.pipeline.report.time_range import parse_time_range
audit_lake(runner, AuditOptions(lake, out + "/history", events=False), ignore)
about = parse_time_range(None, None, "1h", end_of_recording(runner, lake))
nowhere = out + "/nowhere"
found = {
    "plain": collect(runner, ReportOptions(lake=lake, audit=nowhere, rollups=nowhere, own=True), about, ignore),
    "of tables": collect(runner, ReportOptions(lake=lake, audit=out + "/audit", rollups=out, own=True), about, ignore),
    "check": [str(item) for item in LakeCheck(runner, DeltaLake(lake)).findings()],
}
shutil.copytree(lake, out + "/copy")
found["optimize"] = optimize_lake(runner, DeltaLake(out + "/copy"))
with open(out + "/others", "wb") as file:
    pickle.dump(found, file)
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


def table(options: RollupOptions, by: str = "batch") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = rollup_table(options, by).delta().to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: (row["size"], row["window_start"], row["object"], row["member"]))


def check_tables(shop: Shop, out: Path, rows: int) -> None:
    """Compare the tables with those that the jobs make in this process."""
    here, there = (
        RollupOptions(lake=shop.root, out=str(folder), sizes=("1m", "1h")) for folder in (f"{out}-here", out)
    )
    assert rows == roll_up_lake(HERE, here, ignore)
    assert table(there) == table(here)
    with closing(RollupStream(here)) as stream:
        stream.step(last=True)
    assert table(there, "stream") == table(here, "stream")
    audit_lake(HERE, AuditOptions(lake=shop.root, out=f"{out}-audit"), ignore)
    expected = read(Path(f"{out}-audit"))
    assert [len(expected[name]) for name in ("availability", "lives", "events")] == [1, 4, 1]
    of = CorrelateOptions(lake=shop.root, out=f"{out}-alerts", rules=parse_rules(RULES, "rules.toml"))
    found = list(correlate_batch(HERE, of, ignore).table.in_order())
    assert {item.rule for item in found} == {"busy", "silent"}
    assert list(AlertTable(f"{out}/alerts", "batch").in_order()) == found
    with closing(CorrelationStream(of, ignore)) as follower:
        while follower.step() is not None:
            pass
    assert list(AlertTable(f"{out}/alerts", "stream").in_order()) == list(follower.table.in_order()) != []
    assert read(out / "audit") == read(out / "audit-stream") == expected


def check_others(shop: Shop, out: Path) -> None:
    """Compare what the other jobs made with what they make in this process."""
    found = pickle.loads((out / "others").read_bytes())
    about = parse_time_range(None, None, "1h", end_of_recording(HERE, shop.root))
    nowhere = str(out / "nowhere")
    options = ReportOptions(lake=shop.root, audit=nowhere, rollups=nowhere, own=True)
    expected = collect(HERE, options, about, ignore)
    assert expected.agents
    for report in (found["plain"], found["of tables"]):
        assert attrs.evolve(report, lake=shop.root) == expected
    assert found["check"] == [str(item) for item in LakeCheck(HERE, DeltaLake(shop.root)).findings()]
    shutil.copytree(shop.root, out / "copy-here")
    here, there = DeltaLake(str(out / "copy-here")), DeltaLake(str(out / "copy"))
    assert found["optimize"] == optimize_lake(HERE, here) != MaintenanceCounts()
    assert numbers(there) == numbers(here) == numbers(DeltaLake(shop.root))
    history = read(out / "history", tables=TABLES)
    assert history == {name: rows for name, rows in read(out / "audit").items() if name in TABLES}


def relative(shop: Shop, out: Path) -> tuple[str, str]:
    """Lake and tables by paths from the folder that both are in; executors have other working directories."""
    return os.path.relpath(shop.root, out.parent), out.name


def run(master: str, shop: Shop, out: Path, *, executors: int | None) -> None:
    """Run all jobs on a cluster, and compare what they made with what they make in this process."""
    how = (json.dumps(QUICK), RULES, "queries", OTHERS)
    command = [sys.executable, "-c", PROGRAM, master, *relative(shop, out), *how]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_LIMIT, check=False, cwd=out.parent)
    assert ran.returncode == 0, ran.stderr
    found = dict(line.partition(" ")[::2] for line in ran.stdout.splitlines())
    # What the executors of a local cluster logged.
    shutil.rmtree(Path(pyspark.__file__).parent / "work" / found["application"], ignore_errors=True)
    if executors is not None:
        assert len(json.loads(found["executors"])) == executors
    check_tables(shop, out, int(found["rows"]))
    check_others(shop, out)


@pytest.mark.soak
def test_executors_in_separate_processes_write_the_same_table(shop: Shop, tmp_path: Path) -> None:
    run("local-cluster[2,1,512]", shop, tmp_path / "out", executors=2)


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


@pytest.mark.parametrize("streams", ["steps", pytest.param("queries", marks=pytest.mark.soak)])
def test_a_standalone_master_with_two_workers_of_which_one_is_killed(shop: Shop, tmp_path: Path, streams: str) -> None:
    """The steps of streams, or these as queries of Structured Streaming."""
    port = free_port()
    url = f"spark://127.0.0.1:{port}"
    with ExitStack() as stack:
        common = ("--host", "127.0.0.1", "--webui-port", "0")
        master = ("org.apache.spark.deploy.master.Master", *common, "--port", str(port))
        _, log = stack.enter_context(daemon(tmp_path, "master", *master))
        wait_until(lambda: "New state: ALIVE" in log.read_text(errors="replace"), "the master", WAIT_LIMIT)
        workers = []
        for number in range(2):
            worker = ("org.apache.spark.deploy.worker.Worker", *common, "--cores", "1", "--memory", "600m")
            place = ("--work-dir", str(tmp_path / f"worker-{number}"), url)
            workers.append(stack.enter_context(daemon(tmp_path, f"worker-{number}", *worker, *place))[0])
        registered = "Registering worker"
        wait_until(lambda: log.read_text(errors="replace").count(registered) == 2, "both workers", WAIT_LIMIT)
        places = relative(shop, tmp_path / "out")
        command = [sys.executable, "-c", PROGRAM, url, *places, json.dumps(QUICK), RULES, streams, OTHERS]
        environment = {**os.environ, **LOCAL}
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, cwd=tmp_path
        ) as program:
            # It is killed as soon as it has written a file: most of the work is still to be done.
            written = tmp_path / "out" / "batch"
            wait_until(
                lambda: program.poll() is not None or any(written.rglob("*.parquet")), "a file of a task", WAIT_LIMIT
            )
            kill(workers[0])
            output, errors = program.communicate(timeout=WAIT_LIMIT)
        assert program.returncode == 0, errors
    found = dict(line.partition(" ")[::2] for line in output.splitlines())
    check_tables(shop, tmp_path / "out", int(found["rows"]))
    check_others(shop, tmp_path / "out")
