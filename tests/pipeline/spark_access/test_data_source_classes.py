"""A lake by the source `qmf`, batch and stream: versions of a class, all classes, combined files, object stores."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from pipeline.lakes import Shop
from pipeline.object_store import s3_store
from pipeline.quick import WAIT_LIMIT
from pipeline.shop import PACKAGE, TILL

from qmf.pipeline import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import columns_of_versions
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.schema import TYPES, ClassSchema, Property, Statistic

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from pyspark.errors import PySparkException, StreamingQueryException

from qmf.pipeline.spark import rows, samples, sinks

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

DAY = 86_400
HUGE = (1 << 64) - 1


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


def newer() -> ClassVersion:
    """The class with one statistic and one property more."""
    schema = ClassSchema(
        package=PACKAGE,
        name="till",
        properties=(*TILL.properties, Property(name="colour", type=TYPES["sstr"])),
        statistics=(*TILL.statistics, Statistic(name="coins", type=TYPES["count32"])),
    )
    return ClassVersion.from_schema(schema)


def other() -> ClassVersion:
    """The class with another type of its counter."""
    return ClassVersion.from_schema(
        ClassSchema(package=PACKAGE, name="till", statistics=(Statistic(name="sales", type=TYPES["float"]),))
    )


def follow(spark: SparkSession, shop: Shop, **chosen: str) -> DataFrame:
    """A lake as a stream."""
    storage = {f"storage.{key}": value for key, value in shop.lake.options.items()}
    options = {"class": "till", **storage, **{key.rstrip("_"): value for key, value in chosen.items()}}
    if "kind" in chosen:
        del options["class"]
    return spark.readStream.format("qmf").options(lake=shop.root, **options).load()


def drain(frame: DataFrame, path: Path) -> None:
    """Write what a stream has now into a table."""
    query = sinks.start_stream(frame, str(path), name="drain", once=True)
    assert query.awaitTermination(WAIT_LIMIT)


def read(spark: SparkSession, path: Path, *columns: str) -> list[tuple[Any, ...]]:
    table = sinks.read_table(spark, LakeTable(str(path)))
    assert table is not None
    return sorted(tuple(row) for row in table.select(*columns).collect())


def test_versions_of_a_class_are_read_together(spark: SparkSession, shop: Shop) -> None:
    shop.put((1, 10), (2, HUGE))
    shop.put((3, 7), table=newer(), coins=5)
    found = samples(spark, shop.root, "Till", package=PACKAGE).orderBy("_seq").collect()
    assert [(int(row["sales"]), row["coins"]) for row in found] == [(10, None), (HUGE, None), (7, 5)]
    with pytest.raises(PySparkException, match="no class 'shelf'"):
        samples(spark, shop.root, "shelf")
    with pytest.raises(PySparkException, match="no lake, or nothing in it yet"):
        samples(spark, shop.root + "2", "till")


def test_days_bound_a_batch(spark: SparkSession, shop: Shop) -> None:
    shop.put((1, 1), (DAY + 1, 2), (2 * DAY, 3))
    found = samples(spark, shop.root, "till", first="1970-01-02", last="1970-01-02")
    assert [int(row["sales"]) for row in found.collect()] == [2]


def test_versions_that_disagree_are_errors(shop: Shop) -> None:
    with pytest.raises(LakeError, match="disagree about sales"):
        columns_of_versions(RowKind.OBJECTS, [ClassVersion.from_schema(TILL), other()])


def test_a_stream_has_rows_of_versions_that_are_added_while_it_runs(
    spark: SparkSession, shop: Shop, tmp_path: Path
) -> None:
    shop.put((1, 10))
    query = sinks.start_stream(follow(spark, shop), str(tmp_path / "out"), name="q", every="0 seconds")
    try:
        query.processAllAvailable()
        shop.put((2, 20), table=newer(), coins=5)
        query.processAllAvailable()
    finally:
        query.stop()
    assert read(spark, tmp_path / "out", "sales") == [(10,), (20,)]
    shop.put((3, 30), table=newer(), coins=7)
    drain(follow(spark, shop), tmp_path / "out")
    assert read(spark, tmp_path / "out", "_batch", "sales", "coins")[-1] == (2, 30, 7)
    assert read(spark, tmp_path / "out", "sales") == [(10,), (20,), (30,)]


def test_a_version_with_another_type_stops_a_stream_with_the_reason(
    spark: SparkSession, shop: Shop, tmp_path: Path
) -> None:
    shop.put((1, 10))
    stream = follow(spark, shop)
    shop.put((2, 20), table=other())
    query = sinks.start_stream(stream, str(tmp_path / "out"), name="q", once=True)
    with pytest.raises(StreamingQueryException, match="sales is float in this version of the class, not decimal128"):
        query.awaitTermination(WAIT_LIMIT)


def test_all_classes_are_the_same_as_a_batch_and_as_a_stream(spark: SparkSession, shop: Shop, tmp_path: Path) -> None:
    shop.events((1, {"till": "ä\n", "amount": HUGE}), (2, {"till": None, "amount": 3}))
    shop.put((3, 7), opened=1_000_001, opened_ns=1_000_001_234, name="n")
    # Another version, one whose column has another type, and classes without a hash and without a column.
    shop.put((4, 8), table=newer(), coins=5)
    float_sales = attrs.evolve(other(), hash="h2")
    shop.put((5, 9.5), table=float_sales)
    shop.put((6, 1), table=attrs.evolve(newer(), name="a b%/ä", hash=""), coins=6)
    shop.put((7, 0), table=attrs.evolve(newer(), name="empty", hash="h3", columns=()))
    columns = ("_seq", "package", "class", "hash", "values")
    for kind in (RowKind.EVENTS, RowKind.OBJECTS):
        drain(follow(spark, shop, kind=kind.value), tmp_path / kind.value)
        batch = sorted(tuple(row) for row in rows(spark, shop.root, kind).select(*columns).collect())
        streamed = read(spark, tmp_path / kind.value, *columns)
        assert [row[:4] for row in streamed] == [row[:4] for row in batch]
        assert [json.loads(row[4]) for row in streamed] == [json.loads(row[4]) for row in batch]
    by_class = {row[1:4]: json.loads(row[4]) for row in batch}
    assert {"opened_ns": 1_000_001_234, "sales": 7, "name": "n"} in by_class.values()
    assert by_class[PACKAGE, "a b%/ä", ""] == {"sales": 1, "coins": 6}
    assert by_class[PACKAGE, "till", "h2"] == {"sales": 9.5}
    assert by_class[PACKAGE, "empty", "h3"] == {}


def test_other_tables(spark: SparkSession, shop: Shop, tmp_path: Path) -> None:
    shop.beat(1, 11, 21)
    shop.agent(1, "added")
    assert rows(spark, shop.root, RowKind.AGENTS).collect()[0]["change"] == "added"
    drain(follow(spark, shop, kind="heartbeats"), tmp_path / "out")
    assert read(spark, tmp_path / "out", "_ts_ns") == [(10**9,), (11 * 10**9,), (21 * 10**9,)]
    assert rows(spark, shop.root, RowKind.GAPS).collect() == []


def optimize(shop: Shop) -> None:
    for path in shop.lake.tables_of(shop.lake.class_versions()):
        shop.lake.table(path).delta().optimize.compact()


def test_combined_files_are_no_news_to_a_stream(spark: SparkSession, shop: Shop, tmp_path: Path) -> None:
    for number in range(1, 5):
        shop.put((number, number))
    drain(follow(spark, shop, files="1"), tmp_path / "out")
    shop.put((5, 5))
    optimize(shop)
    shop.put((6, 6))
    drain(follow(spark, shop, files="1"), tmp_path / "out")
    assert read(spark, tmp_path / "out", "sales") == [(number,) for number in range(1, 7)]
    assert sorted(int(row["sales"]) for row in samples(spark, shop.root, "till").collect()) == [*range(1, 7)]


def test_a_lake_in_an_object_store(spark: SparkSession, tmp_path: Path) -> None:
    with s3_store() as store:
        url = f"{store.url}/shop"
        with pytest.raises(PySparkException, match="no lake, or nothing in it yet"):
            samples(spark, url, "till", storage=store.options)
        shop = Shop(url, options=store.options)
        for number in range(1, 5):
            shop.put((number, number))
        shop.events((3, {"till": "one", "amount": 3}))
        found = samples(spark, url, "till", storage=store.options)
        assert sorted(int(row["sales"]) for row in found.collect()) == [1, 2, 3, 4]
        drain(follow(spark, shop), tmp_path / "out")
        optimize(shop)
        shop.put((5, 5))
        drain(follow(spark, shop), tmp_path / "out")
        assert read(spark, tmp_path / "out", "sales") == [(1,), (2,), (3,), (4,), (5,)]
        found = samples(spark, url, "till", storage=store.options)
        assert sorted(int(row["sales"]) for row in found.collect()) == [1, 2, 3, 4, 5]
        events = rows(spark, url, RowKind.EVENTS, storage=store.options).collect()
        assert json.loads(events[0]["values"]) == {"till": "one", "amount": 3}
        assert rows(spark, url, RowKind.SCHEMAS, storage=store.options).count() == 2
