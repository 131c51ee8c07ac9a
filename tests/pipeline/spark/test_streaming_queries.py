"""Streaming queries that run until a signal, their end, or a failure."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pipeline.lakes import Shop

from qmf.pipeline import PipelineError

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from pyspark.sql import functions as F

from qmf.pipeline.frames import Frames
from qmf.pipeline.spark import sinks
from qmf.pipeline.spark.streaming_queries import run_until_stopped
from qmf.pipeline.spark.watermark import watermarked

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

PROGRAM = "import sys; from qmf.pipeline.cli import main; sys.exit(main())"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


def test_metrics_are_printed_when_a_signal_ends_the_queries(spark: SparkSession, shop: Shop, tmp_path: Path) -> None:
    shop.put((1, 10), (2, 20))
    samples = watermarked(Frames(spark, shop.root, stream=True).objects("till"), "60 seconds")
    counted = samples.groupBy(F.window("_ts", "60 seconds")).count()
    queries = [sinks.start_stream(counted, str(tmp_path / "out"), name="tills", every="0 seconds")]
    queries[0].processAllAvailable()
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
    lines: list[str] = []
    run_until_stopped(queries, lines.append)
    (line,) = lines
    assert line.startswith("tills: 1 batch, 2 rows read in ")
    assert line.endswith("; 0 came too late, 0 are from the future, 1 wait in the state")
    assert not queries[0].isActive


def test_a_failed_query_ends_the_command_with_the_reason(spark: SparkSession, shop: Shop, tmp_path: Path) -> None:
    shop.put((1, 10))

    def fail(_rows: DataFrame, _number: int) -> None:
        raise RuntimeError("no more paper")

    query = sinks.start_stream(
        Frames(spark, shop.root, stream=True).objects("till"), str(tmp_path / "out"), name="printer", write=fail
    )
    with pytest.raises(PipelineError, match="the query printer failed: RuntimeError: no more paper"):
        run_until_stopped([query], lambda _text: None)
