"""Spark: the session that the pipeline runs on.

The only module that makes sessions. Importing it needs pyspark, which its importers load lazily; a session needs Java
17 or newer. With a session active, importing it registers the data source `qmf`; `session` does so for new ones.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
from pyspark.sql import SparkSession

from qmf.pipeline.spark import java

#: Files that Spark opens at once for one task count as so many bytes: a lake's files are small.
_OPEN_COST = 256 * 1024

#: Files that Spark looks for one by one before it starts a job for it, with a task for each. A lake's are many, and on
#: this machine looking costs less than a task.
_LISTED = 100_000


def session(
    master: str = "local[*]",
    *,
    name: str = "qmf-pipeline",
    progress: bool = False,
    partitions: int | None = None,
    settings: Mapping[str, str] | None = None,
) -> SparkSession:
    """A Spark session set up for the pipeline, with the data source `qmf`.

    Args:
        master: which Spark; ``local[*]`` is this machine, ``local-cluster[2,1,1024]`` two executors of 1 core and
            1024 MB in processes of their own.
        name: of the application.
        progress: show a line for each stage that takes long.
        partitions: of a shuffle; None for one per processor on this machine, and Spark's default elsewhere.
        settings: of Spark's; they win over ours.

    Raises:
        PipelineError: no Java.
    """
    java.check()
    # Spark's Python workers must be this Python, not the first of that name in the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    chosen = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": str(progress).lower(),
        # Schemas may have members that differ in case only; times are UTC whatever the machine thinks.
        "spark.sql.caseSensitive": "true",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.sources.partitionOverwriteMode": "dynamic",
        "spark.sql.files.openCostInBytes": str(_OPEN_COST),
        # A machine that is busy starts Python slowly; Spark gives it 15 s.
        "spark.python.authenticate.socketTimeout": "120s",
        # What a query did is told at its end; the last hundred batches are not enough for that.
        "spark.sql.streaming.numRecentProgressUpdates": "1000",
    }
    if master.startswith("local"):
        # Spark takes the address of the network else, where it would listen for anybody.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        chosen |= {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
        chosen["spark.sql.sources.parallelPartitionDiscovery.threshold"] = str(_LISTED)
        partitions = partitions or os.cpu_count() or 1
    if master.startswith("local-cluster"):
        os.environ.setdefault("SPARK_HOME", str(Path(pyspark.__file__).parent))
    if partitions is not None:
        chosen["spark.sql.shuffle.partitions"] = str(partitions)
    builder: SparkSession.Builder = SparkSession.builder
    for key, value in {**chosen, **(settings or {})}.items():
        builder = builder.config(key, value)
    spark = builder.master(master).appName(name).getOrCreate()
    register(spark)
    return spark


def register(spark: SparkSession) -> None:
    """Make ``spark.read.format("qmf")`` known to a session."""
    from qmf.pipeline.spark.data_source import QmfDataSource

    spark.dataSource.register(QmfDataSource)
