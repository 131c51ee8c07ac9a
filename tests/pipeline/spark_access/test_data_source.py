"""The data source `qmf` on a bus: snapshots, and streams through a spool that are killed with it."""

from __future__ import annotations

import json
import random
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pipeline.kills import kill_family
from pipeline.quick import QUICK, WAIT_LIMIT
from support.processes import running
from support.waiting import wait_until

from qmf.broker import EmbeddedBroker
from qmf.hostagent import EmbeddedHostAgent, ProcessSelection, Settings

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from pyspark.errors import PySparkException

from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.spark import sinks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

#: Follows a bus through a spool until it is killed.
FOLLOW = """
import json, sys
from qmf.pipeline.spark import session, sinks
url, spool, out, settings = sys.argv[1:]
spark = session("local[1]", partitions=1, settings=json.loads(settings))
stream = spark.readStream.format("qmf").options(url=url, spool=spool, kind="objects", interval="0.5").load()
query = sinks.start_stream(stream, out, name="killed", every="0 seconds")
print("following", flush=True)
query.awaitTermination()
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    settings = Settings(interval=0.5, instance="spark", selection=ProcessSelection.parse("none"))
    with EmbeddedBroker() as broker, EmbeddedHostAgent(broker.url, settings=settings):
        yield broker.url


def test_a_snapshot_of_the_bus(spark: SparkSession, url: str) -> None:
    frame = spark.read.format("qmf").option("url", url).option("package", "qmf.host").option("class", "memory").load()
    (row,) = frame.collect()
    assert row["_agent"] == "qmf:host:spark"
    assert row["total"] > 0


def test_invalid_options_are_errors(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(PySparkException, match='the option "url" is missing for a snapshot of a bus, or "lake"'):
        spark.read.format("qmf").option("kind", "agents").load().collect()
    with pytest.raises(PySparkException, match=r'the option "class" is missing, or "kind" with one of objects, events'):
        spark.readStream.format("qmf").option("lake", str(tmp_path)).load()
    with pytest.raises(PySparkException, match="no lake"):
        spark.read.format("qmf").options(kind="agents", lake=str(tmp_path / "misspelt")).load().collect()


@pytest.mark.soak
def test_killed_with_its_spool_a_stream_neither_loses_nor_repeats(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    chance = random.Random(random.randrange(1000))  # pytest-randomly prints the seed
    spool, out, quick = tmp_path / "spool", tmp_path / "out", json.dumps(QUICK)
    for killed in range(2):
        before = _last_batch(out)

        def began(before: int = before, killed: int = killed) -> bool:
            return len(_runs(spool)) > killed and _last_batch(out) > before

        with running(sys.executable, "-u", "-c", FOLLOW, url, str(spool), str(out), quick) as process:
            wait_until(began, "the spool and the query", WAIT_LIMIT)
            threading.Event().wait(chance.uniform(0, 1.5))  # so that the kill comes at any point of its work
            kill_family(process)
    # A recorder of the same name commits what a killed one had begun.
    with running(sys.executable, "-u", "-c", FOLLOW, url, str(spool), str(tmp_path / "other"), quick):
        wait_until(lambda: len(_runs(spool)) > 2, "another run", WAIT_LIMIT)
    stream = spark.readStream.format("qmf").option("lake", str(spool)).option("kind", "objects").load()
    query = sinks.start_stream(stream, str(out), name="killed", once=True)
    assert query.awaitTermination(WAIT_LIMIT)

    spooled = sorted(_numbers(spool))
    table = sinks.read_table(spark, LakeTable(str(out)))
    assert table is not None
    assert sorted((row[0], row[1]) for row in table.select("_run", "_seq").collect()) == spooled
    assert len(set(spooled)) == len(spooled) > 0
    assert len(_runs(spool)) >= 3


def _numbers(spool: Path) -> list[tuple[str, int]]:
    """Run and number of the rows of objects in a lake."""
    lake = DeltaLake(str(spool))
    found: list[tuple[str, int]] = []
    for path in lake.paths():
        if path.startswith("objects/"):
            table = lake.table(path)
            rows = table.dataset(table.snapshot().files).to_table(["_run", "_seq"])
            found += zip(rows["_run"].to_pylist(), rows["_seq"].to_pylist(), strict=True)
    return found


def _last_batch(out: Path) -> int:
    """Number of the last batch that Spark noted as done; -1 for none."""
    return max((int(path.name) for path in out.glob("_checkpoint/commits/[0-9]*")), default=-1)


def _runs(spool: Path) -> set[str]:
    """The runs of recorders that wrote into a lake."""
    return {run for run, _seq in _numbers(spool)}
