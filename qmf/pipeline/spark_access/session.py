"""The Spark session of the pipeline: the only module that makes sessions. A session needs Java 17 or newer."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from qmf.pipeline.spark_access import java

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
    java.check()
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
    from qmf.pipeline.spark_access import pushdown
    from qmf.pipeline.spark_access.data_source import QmfDataSource

    spark.conf.set(pushdown.SETTING, "true")
    spark.dataSource.register(QmfDataSource)
