"""The Spark session of the pipeline: the only module that makes sessions. A session needs Java 17 or newer.

The work of jobs is done by functions in Python; their settings say that Java only moves their rows.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from qmf.pipeline.errors import PipelineError

#: The oldest Java that Spark 4 runs on.
OLDEST = 17

_HINT = (
    f"Spark needs Java {OLDEST} or newer: apt-get install openjdk-17-jre-headless (or dnf install "
    "java-17-openjdk-headless, brew install openjdk@17), or set JAVA_HOME to the folder of an installed one"
)


def check_java() -> None:
    """Check the Java in JAVA_HOME or else in the path; `PipelineError` says what is wrong, and how to install one."""
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if program is None:
        raise PipelineError(f"there is no java in the path, and JAVA_HOME is not set. {_HINT}")
    if not os.access(program, os.X_OK):
        raise PipelineError(f"JAVA_HOME is {home}, but there is no program {program}. {_HINT}")
    try:
        run = subprocess.run([program, "-version"], capture_output=True, text=True, check=False, timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise PipelineError(f"{program} does not run: {error}. {_HINT}") from error
    output = run.stderr + run.stdout
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    if run.returncode or not found:
        raise PipelineError(f"{program} does not print its version: {output.strip() or 'no output'}. {_HINT}")
    if int(found[1]) < OLDEST:
        raise PipelineError(f"{program} is Java {found[1]}. {_HINT}")


#: Bytes that opening a file counts as when Spark assigns files to tasks: a lake's files are small.
_OPEN_COST = 256 * 1024

#: Paths that Spark lists one by one before it starts a job with a task for each. A lake has many files, and on this
#: machine listing a path costs less than a task.
_LISTED_PATHS = 100_000


def session(
    master: str = "local[*]",
    *,
    name: str = "qmf-pipeline",
    progress: bool = False,
    partitions: int | None = None,
    settings: Mapping[str, str] | None = None,
    data_source: bool = True,
) -> SparkSession:
    """A Spark session configured for the pipeline.

    Args:
        master: URL of Spark's master; ``local[*]`` is this machine, ``local-cluster[2,1,1024]`` two executors of 1 core
            and 1024 MB in processes of their own.
        name: of the application.
        progress: show a line for each stage that takes long.
        partitions: of a shuffle; None for one per processor on this machine, and Spark's default elsewhere.
        settings: of Spark; they override the pipeline's.
        data_source: with the data source `qmf`, for which Spark starts Python in the driver; see `register`.

    Raises:
        PipelineError: no Java, or one that is too old.
    """
    check_java()
    # Spark's Python workers must be this Python, not the first of that name in the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(progress).lower(),
        # Schemas may have members that differ in case only; times are UTC whatever the machine's time zone is.
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.sql.files.openCostInBytes": str(_OPEN_COST),
        # Workers begin with what tasks import.
        "spark.python.daemon.module": "qmf.pipeline.runners.worker_daemon",
        # A busy machine starts Python slowly; Spark's default is 15 s.
        "spark.python.authenticate.socketTimeout": "120s",
        # The metrics of a query are printed at its end; Spark's default, a hundred micro-batches, is not enough.
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
        # For each function of a column Spark would look up the line that calls it, and hand that to Java.
        "spark.python.sql.dataFrameDebugging.enabled": "false",
    }
    if master.startswith("local"):
        # Otherwise Spark listens on the machine's network address, open to all.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        chosen["spark.sql.sources.parallelPartitionDiscovery.threshold"] = str(_LISTED_PATHS)
        partitions = partitions or os.cpu_count() or 1
    if master.startswith("local-cluster"):
        os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    if partitions is not None:
        chosen["spark.sql.shuffle.partitions"] = str(partitions)
    builder: SparkSession.Builder = SparkSession.builder
    for key, value in {**chosen, **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = builder.master(master).appName(name).getOrCreate()
    if data_source:
        register(spark)
    return spark


def register(spark: SparkSession) -> None:
    """Register the data source: makes ``spark.read.format("qmf")`` work in a session."""
    from qmf.pipeline.spark_access.data_source import QmfDataSource

    # Without it, Spark refuses a source that takes filters.
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    spark.dataSource.register(QmfDataSource)


_ALWAYS = {
    # Plans that change while they run, and code that Java compiles for each stage, cost more than they bring.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.python.daemon.module": "qmf.pipeline.runners.job_daemon",
}

#: Java that compiles quickly, not well: most of the processor time of a job over a small lake was spent on compiling.
_QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def job_settings(*, small: bool) -> dict[str, str]:
    """The settings of a session for one job; `small` if it takes seconds."""
    if not small:
        return dict(_ALWAYS)
    return {**_ALWAYS, **{f"spark.{where}.extraJavaOptions": _QUICK_JAVA for where in ("driver", "executor")}}
