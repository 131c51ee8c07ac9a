"""Two recorders of one bus, read by Spark: the rows of one count, as a batch and as a stream."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pipeline.lakes import SECOND, Shop
from pipeline.object_store import s3_store
from pipeline.quick import WAIT_LIMIT

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.runs import SILENCE_NS, RecordedRuns

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from pyspark.sql.streaming.datasource import ReadMaxFiles

from qmf.pipeline.lake.file_rows import WantedRows
from qmf.pipeline.spark import samples, sinks
from qmf.pipeline.spark_access.data_source import TablesOf
from qmf.pipeline.spark_access.lake_stream import FilesPartition, LakeStreamReader

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

FIRST, SECOND_RUN = "00000000000000000001_1", "00000000000000000002_2"


def record(shop: Shop, *times: float, agent: str = "a") -> None:
    """Samples and heartbeats."""
    shop.put(*((at, at) for at in times), agent=agent)
    shop.beat(*times, agent=agent)


def twice(root: Path | str, options: dict[str, str] | None = None, start: float = 0) -> tuple[Shop, Shop]:
    """The first run has the agent from 0 to 30, the second one from 10 to 50, and another agent alone."""
    one, two = (Shop(root, run=run, options=options) for run in (FIRST, SECOND_RUN))
    record(one, start, start + 10)
    record(two, start + 10, start + 20)
    record(one, start + 20, start + 30)
    record(two, start + 30, start + 40, start + 50)
    record(two, start + 40, agent="b")
    return one, two


def found(frame: DataFrame) -> list[tuple[int, str, str]]:
    rows = frame.where("_statistics").select("_ts_ns", "_agent", "_run").collect()
    return sorted((row[0] // SECOND, row[1], row[2]) for row in rows)


CHOSEN = sorted(
    [(at, "a", FIRST) for at in (0, 10, 20, 30)] + [(at, "a", SECOND_RUN) for at in (40, 50)] + [(40, "b", SECOND_RUN)]
)


def test_as_a_batch_of_the_data_source_and_as_a_stream(spark: SparkSession, tmp_path: Path) -> None:
    lake = str(tmp_path / "lake")
    twice(lake)
    read = spark.read.format("qmf").option("lake", lake).option("class", "till")
    assert found(read.load()) == CHOSEN
    assert found(spark.read.format("qmf").option("lake", lake).option("kind", "objects").load()) == CHOSEN
    # Heartbeats are those of all: by them is chosen.
    assert spark.read.format("qmf").option("lake", lake).option("kind", "heartbeats").load().count() == 10
    stream = spark.readStream.format("qmf").option("lake", lake).option("class", "till").load()
    query = sinks.start_stream(stream, str(tmp_path / "out"), name="chosen", once=True)
    assert query.awaitTermination(WAIT_LIMIT)
    written = sinks.read_table(spark, LakeTable(str(tmp_path / "out")))
    assert written is not None
    assert found(written) == CHOSEN


def test_in_an_object_store(spark: SparkSession) -> None:
    with s3_store() as store:
        lake = f"{store.url}/lake"
        twice(lake, store.options)
        assert found(samples(spark, lake, "till", storage=store.options)) == CHOSEN


def test_what_is_not_decided_yet_waits(tmp_path: Path) -> None:
    root, now = str(tmp_path / "lake"), int(time.time())
    start = now - 75
    one, two = twice(root, start=start)
    reader = LakeStreamReader(DeltaLake(root), WantedRows(columns=()), TablesOf(RowKind.OBJECTS))

    def waiting(begin: dict[str, list[int | None]]) -> tuple[dict[str, list[int | None]], int]:
        end = reader.latestOffset(begin, ReadMaxFiles(100))
        parts = [part for part in reader.partitions(begin, end) if isinstance(part, FilesPartition)]
        return end, sum(len(part.files) for part in parts)

    first, count = waiting({})
    assert (first, count) == ({}, 0)  # the first run was last heard of at 30: until -30 everything is decided
    record(one, start + 70)
    record(two, start + 70)
    second, count = waiting(first)
    assert count == 1
    assert waiting(second)[1] == 0
    reader.prepareForTriggerAvailableNow()
    assert waiting(second)[1] == 6


def test_until_when_it_is_decided(tmp_path: Path) -> None:
    one, two = (Shop(tmp_path / "lake", run=run) for run in (FIRST, SECOND_RUN))
    runs = RecordedRuns(DeltaLake(str(tmp_path / "lake")))
    assert runs.decided_until(0) is None
    record(one, 1000, 1010)
    assert runs.decided_until(1010 * SECOND) is None
    record(two, 1015, 1025)
    assert runs.decided_until(1025 * SECOND) is None  # the first one has ended before, as far as is known
    record(one, 1020)
    assert runs.decided_until(1025 * SECOND) == 1020 * SECOND - SILENCE_NS
    record(two, 1090)
    assert runs.decided_until(1090 * SECOND) is None  # the first one has been silent
    record(one, 1100)
    assert runs.decided_until(1100 * SECOND) == 1090 * SECOND - SILENCE_NS
    assert runs.decided_until(2000 * SECOND) is None  # all have been
