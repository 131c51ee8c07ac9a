"""Tables that streams write: each row exactly once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pipeline.lakes import Shop
from pipeline.quick import WAIT_LIMIT
from pipeline.unusual import BY_TOTAL, BY_VALUE, fill, raise_alerts

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

import deltalake
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import CHECKPOINT
from qmf.pipeline.lake.maintenance import optimize_table
from qmf.pipeline.spark import samples, sinks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


def counts(frame: DataFrame, conditions: Iterable[str]) -> Counter[str]:
    """How many rows each condition chooses: a scan with its filter for each, all in one query."""
    scans = (frame.where(where).select(F.lit(where)) for where in conditions)
    return Counter(where for (where,) in reduce(DataFrame.union, scans).collect())


@pytest.mark.parametrize("written", [False, True])
def test_an_interrupted_batch_is_written_once(spark: SparkSession, shop: Shop, tmp_path: Path, written: bool) -> None:
    table = LakeTable(str(tmp_path / "out"))

    def cut(rows: DataFrame, number: int) -> None:
        if written:
            sinks.append_once(rows, table, "q", number)
        raise RuntimeError("cut off")

    shop.put((1, 10), (2, 20))
    frame = samples(spark, shop.root, "till", stream=True).select("_seq")
    query = sinks.start_stream(frame, table.url, name="q", once=True, write=cut)
    with pytest.raises(StreamingQueryException, match="cut off"):
        query.awaitTermination(WAIT_LIMIT)
    shop.put((3, 30))
    query = sinks.start_stream(frame, table.url, name="q", once=True)
    assert query.awaitTermination(WAIT_LIMIT)
    rows = sinks.read_table(spark, table)
    assert rows is not None
    assert sorted((row["_seq"], row["_batch"]) for row in rows.collect()) == [(2, 0), (3, 0), (4, 1)]


def test_values_that_statistics_would_hide_are_found(spark: SparkSession, shop: Shop) -> None:
    alerts, out = raise_alerts(f"{shop.root}/alerts"), LakeTable(f"{shop.root}/_tables/copied")
    for _ in range(2):
        gauges = fill(shop)
        stream = samples(spark, shop.root, "scale", stream=True).select("value", "total")
        assert sinks.start_stream(stream, out.url, name="copied", once=True).awaitTermination(WAIT_LIMIT)
    assert optimize_table(out).combined == 2
    everything = {where: 2 * count for where, count in {**BY_VALUE, **BY_TOTAL}.items()}
    rows = deltalake.QueryBuilder().register("t", out.delta())
    for where, count in everything.items():
        assert sum(batch.num_rows for batch in rows.execute(f"SELECT * FROM t WHERE {where}")) == count, where
    for url, expected in ((gauges, everything), (out.url, everything), (alerts, BY_VALUE)):
        frame = sinks.read_table(spark, LakeTable(url))
        assert frame is not None
        assert counts(frame, expected) == expected, url
    source = spark.read.format("qmf").options(**{"lake": shop.root, "class": "scale"}).load()
    assert counts(source, everything) == everything


def test_a_relative_path_is_one_of_the_program(
    spark: SparkSession, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # Java, and the executors, have another working directory
    shop.put((1, 10), (2, 20))
    frame = samples(spark, "lake", "till", stream=True).select("_seq")
    query = sinks.start_stream(frame, "out", name="q", once=True)
    assert query.awaitTermination(WAIT_LIMIT)
    rows = sinks.read_table(spark, LakeTable("out"))
    assert rows is not None
    assert sorted(row["_seq"] for row in rows.collect()) == [2, 3]
    assert (tmp_path / "out" / CHECKPOINT).is_dir()
