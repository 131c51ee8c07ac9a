"""Shared parts: whether there is anything to test with, and one Spark session for each process that runs tests."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pipeline.quick import QUICK

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Without the extra there is nothing to collect here; the head of the report says so.
if importlib.util.find_spec("pyarrow") is None or importlib.util.find_spec("pyspark") is None:
    collect_ignore_glob = ["*test_*.py"]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """One local Spark with one shuffle partition and no UI."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")
    from qmf.pipeline.errors import PipelineError
    from qmf.pipeline.spark_access.session import check_java, session

    try:
        check_java()
    except PipelineError as error:
        pytest.skip(str(error))
    handler = signal.getsignal(signal.SIGINT)
    spark = session("local[2]", partitions=1, settings=QUICK)
    signal.signal(signal.SIGINT, handler)  # Spark's cancels its jobs, too
    spark.sparkContext.setLogLevel("OFF")
    yield spark
    spark.stop()


@pytest.fixture
def local_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Options of a command that runs on two executors with processes of their own."""
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")
    # Executors write their logs into Spark's folder.
    home = tmp_path / "spark-home"
    home.mkdir()
    for entry in Path(pyspark.__file__).parent.iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    monkeypatch.setenv("SPARK_HOME", str(home))
    settings = QUICK | {"spark.executor.extraJavaOptions": QUICK["spark.driver.extraJavaOptions"]}
    conf = [option for key, value in settings.items() for option in ("--conf", f"{key}={value}")]
    return ["--master", "local-cluster[2,1,1024]", *conf]
