"""Spark for benchmarks: a standalone master with workers on this machine, and what its processes and jobs cost."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pyspark

from qmf.pipeline.spark import session
from qmf.pipeline.spark_access.session import job_settings

#: Seconds for a master, its workers and their executors to start.
WAIT_LIMIT = 300.0

#: What of a command line says which of Spark's programs it is.
_KINDS = {"SparkSubmit": "Java", "CoarseGrainedExecutor": "executors", "deploy.master": "", "deploy.worker": ""}


@contextmanager
def standalone(folder: Path, workers: int = 2, *, apart: bool = False) -> Iterator[str]:
    """A standalone master, with workers of one core each, started from pyspark's own distribution.

    Args:
        folder: for logs and for what the workers keep.
        workers: how many.
        apart: each has a processor, and no other one: otherwise Java and Python of one core may work side by side.

    Yields:
        its URL.

    Raises:
        TimeoutError: a program did not start.
    """
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = int(found.getsockname()[1])
    url = f"spark://127.0.0.1:{port}"
    common = ("--host", "127.0.0.1", "--webui-port", "0")
    own = "org.apache.spark.deploy"
    processors = sorted(os.sched_getaffinity(0))
    programs: list[tuple[str, ...]] = [(f"{own}.master.Master", *common, "--port", str(port))]
    for number in range(workers):
        place = ("--cores", "1", "--memory", "1g", "--work-dir", str(folder / f"worker-{number}"), url)
        programs.append((f"{own}.worker.Worker", *common, *place))
    started: list[subprocess.Popen[bytes]] = []
    try:
        for number, arguments in enumerate(programs):
            log = folder / f"{number}.log"
            is_apart = apart and number > 0
            started.append(_start(arguments, log, [processors[number - 1]] if is_apart else processors))
            _await_line(log, "New state: ALIVE" if number == 0 else "Successfully registered with master")
        yield url
    finally:
        for process in reversed(started):
            for each in [*psutil.Process(process.pid).children(recursive=True), psutil.Process(process.pid)]:
                each.terminate()
            process.wait()


def _start(arguments: tuple[str, ...], log: Path, processors: Sequence[int]) -> subprocess.Popen[bytes]:
    environment = {
        **os.environ,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    command = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    with log.open("wb") as stream:
        return subprocess.Popen(
            [command, *arguments],
            stdout=stream,
            stderr=subprocess.STDOUT,
            env=environment,
            cwd=log.parent,
            preexec_fn=lambda: os.sched_setaffinity(0, processors),
        )


def _await_line(log: Path, text: str) -> None:
    give_up = time.monotonic() + WAIT_LIMIT
    while text not in log.read_text(errors="replace"):
        if time.monotonic() > give_up:
            raise TimeoutError(f"{log}: no line with {text!r}")
        time.sleep(0.05)


@contextmanager
def started_session(master: str, executors: int, *, small: bool) -> Iterator[Any]:
    """A session as a job has it, with all executors.

    Args:
        master: URL.
        executors: to wait for; 0 where tasks run in the driver.
        small: as of `job_settings`.

    Raises:
        TimeoutError: the executors did not start.
    """
    memory = {"spark.executor.memory": "512m"} if executors else {}
    spark = session(master, settings={**job_settings(small=small), **memory}, data_source=False)
    try:
        spark.sparkContext.setLogLevel("ERROR")
        # Of which the driver is one.
        infos = spark.sparkContext._jsc.sc().statusTracker().getExecutorInfos
        give_up = time.monotonic() + WAIT_LIMIT
        while len(infos()) < executors + 1:
            if time.monotonic() > give_up:
                raise TimeoutError(f"{len(infos()) - 1} of {executors} executors started")
            time.sleep(0.05)
        yield spark
    finally:
        spark.stop()


def processor_seconds() -> dict[str, float]:
    """Of this process (driver) and of all that it started: Java, executors' Java, and their Python (Python)."""
    own = psutil.Process()
    found = dict.fromkeys(("driver", "Java", "executors", "Python"), 0.0)
    for process in [own, *own.children(recursive=True)]:
        try:
            times, line = process.cpu_times(), " ".join(process.cmdline())
        except psutil.NoSuchProcess:
            continue
        kind = "driver" if process == own else next((name for key, name in _KINDS.items() if key in line), "Python")
        if kind:
            ended = times.children_user + times.children_system if kind == "Python" else 0.0
            found[kind] += times.user + times.system + ended
    return found


class SparkCounts:
    """Counts jobs, stages and tasks of Spark, from when it is made."""

    _groups = 0

    def __init__(self, spark: Any) -> None:
        self._tracker = spark.sparkContext.statusTracker()
        SparkCounts._groups += 1
        self._group = f"bench-{SparkCounts._groups}"
        spark.sparkContext.setJobGroup(self._group, "")

    def counts(self) -> tuple[int, int, int]:
        """Jobs, stages and tasks."""
        jobs = [self._tracker.getJobInfo(job) for job in self._tracker.getJobIdsForGroup(self._group)]
        stages = [self._tracker.getStageInfo(stage) for job in jobs if job for stage in job.stageIds]
        return len(jobs), len(stages), sum(stage.numTasks for stage in stages if stage)


def executor_seconds() -> dict[int, float]:
    """Processor seconds of each executor that this process started, with its Python, by the number of its process."""
    found: dict[int, float] = {}
    for process in psutil.Process().children(recursive=True):
        try:
            if "CoarseGrainedExecutor" not in " ".join(process.cmdline()):
                continue
            own = [process.cpu_times(), *(child.cpu_times() for child in process.children(recursive=True))]
        except psutil.NoSuchProcess:
            continue
        # The time of Python that has ended is in that of its parent.
        found[process.pid] = sum(each.user + each.system + each.children_user + each.children_system for each in own)
    return found
