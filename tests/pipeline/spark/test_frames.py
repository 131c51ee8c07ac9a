"""The jobs as functions of frames: their rows are those of the jobs, filters and columns reach the files."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pipeline.correlation import RULES, UnsteadyShop, act, fill, ignore, options
from pipeline.lakes import HERE, SECOND, Shop
from pipeline.shop import PACKAGE
from pipeline.tills import Till

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from pyspark.sql import datasource

from qmf.pipeline import PipelineError
from qmf.pipeline.audit.job import audit_lake
from qmf.pipeline.audit.tables import AuditOptions
from qmf.pipeline.correlate import RuleError, parse_rules
from qmf.pipeline.correlate.alert_table import alerts as stored_alerts
from qmf.pipeline.correlate.batch import correlate_batch
from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.tables import RollupOptions, rollup_table
from qmf.pipeline.spark import alerts, lives, rollups, rows, samples, views
from qmf.pipeline.spark_access.data_source import QmfDataSource, recorded_class
from qmf.pipeline.spark_access.lake_stream import FilesPartition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

KINDS = ("heartbeats", "agents", "gaps")


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path / "lake")
    fill(shop)
    return shop


def content(table: Any) -> list[str]:
    """The rows of an Arrow table in any order, as text: columns by name. Sums of fractions depend on their order."""
    chosen = table.select(sorted(table.column_names))
    rows = [
        [float(f"{cell:.12g}") if isinstance(cell, float) else cell for cell in row.values()]
        for row in chosen.to_pylist()
    ]
    return sorted(map(str, rows))


def same(frame: DataFrame, table: Any) -> None:
    """A frame has the rows of an Arrow table."""
    assert sorted(frame.columns) == sorted(table.column_names)
    found, expected = content(frame.toArrow().cast(table.select(frame.columns).schema)), content(table)
    assert [row for row in found if row not in set(expected)] == []
    assert found == expected


def stored(table: Any) -> Any:
    """All rows of a table that a job wrote."""
    return table.delta().to_pyarrow_table()


# -- without a session


def scan(shop: Shop, *filters: datasource.Filter, **more: str) -> tuple[int, list[dict[str, Any]]]:
    """The number of files that a query with filters reads, and its rows."""
    source = QmfDataSource({"lake": shop.root, "class": "till", "one_query": "true", **more})
    reader = source.reader(source.schema())
    assert list(reader.pushFilters(list(filters))) == list(filters)
    parts = [part for part in reader.partitions() if isinstance(part, FilesPartition)]
    return sum(len(part.files) for part in parts), found(reader, parts)


def found(reader: Any, parts: Sequence[Any]) -> list[dict[str, Any]]:
    """The rows of some partitions."""
    return [row for part in parts for batch in reader.read(part) for row in batch.to_pylist()]


def test_filters_leave_out_files_and_rows(shop: Shop) -> None:
    files, everything = scan(shop)
    assert (files, len(everything)) == (6, 8)
    files, late = scan(shop, datasource.GreaterThan(("_ts_ns",), 35 * SECOND))
    assert (files, sorted(row["_ts_ns"] // SECOND for row in late)) == (3, [40, 50, 120])
    _, two = scan(shop, datasource.EqualTo(("_object",), "two"), datasource.Not(datasource.EqualTo(("sales",), 0)))
    assert [row["_object"] for row in two] == ["two"]
    assert scan(shop, datasource.IsNotNull(("limit",)))[1] == [row for row in everything if row["limit"] is not None]
    assert scan(shop, datasource.EqualTo(("no",), 1)) == (6, everything)


def test_a_column_that_a_file_lacks_is_null(shop: Shop) -> None:
    # Files of events have no such column.
    source = QmfDataSource({"lake": shop.root, "kind": "events", "one_query": "true"})
    reader = source.reader(source.schema())
    reader.pushFilters([datasource.EqualTo(("_object",), "one")])
    assert found(reader, reader.partitions()) == []


def test_chosen_columns_are_those_that_are_read(shop: Shop) -> None:
    source = QmfDataSource({"lake": shop.root, "class": "till", "columns": "sales, queue"})
    names = source.schema().names
    assert [name for name in names if not name.startswith("_")] == ["sales", "queue"]
    assert set(scan(shop, columns="sales,queue")[1][0]) == set(names)
    assert recorded_class(source.schema()).name == f"{PACKAGE}:till"
    with pytest.raises(PipelineError, match="there is no 'sails'; there are _run, "):
        QmfDataSource({"lake": shop.root, "class": "till", "columns": "sails"}).schema()


# -- with one


def test_queries_of_one_frame_do_not_affect_each_other(spark: SparkSession, shop: Shop) -> None:
    till = samples(spark, shop.root, "till")
    everything = till.count()
    assert till.where("_object = 'two'").count() < everything
    assert till.count() == everything


def test_filters_reach_the_files_and_change_nothing(spark: SparkSession, shop: Shop) -> None:
    till = samples(spark, shop.root, "till")
    for condition in (
        "_ts >= '1970-01-01 00:00:30'",
        "sales > 49 and _object like 'o%'",
        "queue is null or queue <> 3",
    ):
        expected = [row for row in till.collect() if row in till.persist().where(condition).collect()]
        assert samples(spark, shop.root, "till", one_query=True).where(condition).collect() == expected
        till.unpersist()


@pytest.mark.parametrize("continued", [False, True])
def test_rollups_are_those_of_the_job(spark: SparkSession, tmp_path: Path, continued: bool) -> None:
    chance = random.Random(random.randrange(10_000))  # pytest-randomly prints the seed
    shop = UnsteadyShop(tmp_path / "lake", chance)
    at = 1000.0
    for _ in range(150):
        at += chance.choice([1, 1, 2, 5, 20, 400])
        act(shop, at)
    shop.flush()
    of = RollupOptions(
        lake=shop.root, out=str(tmp_path / "out"), sizes=("1m", "1h"), classes=("till",), continued=continued
    )
    roll_up_lake(HERE, of, ignore)
    same(
        rollups(samples(spark, shop.root, "till"), ["1m", "1h"], continued=continued), stored(rollup_table(of, "batch"))
    )


def test_rollups_of_chosen_columns(spark: SparkSession, shop: Shop) -> None:
    whole = rollups(samples(spark, shop.root, "till"), "1m")
    few = rollups(samples(spark, shop.root, "till", columns=["sales"]).where("_object = 'one'"), "1m")
    assert few.collect() == whole.where("object = 'one' and member = 'sales'").collect()


def test_alerts_are_those_of_the_job(spark: SparkSession, tmp_path: Path) -> None:
    chance = random.Random(random.randrange(10_000))  # pytest-randomly prints the seed
    shop = UnsteadyShop(tmp_path / "lake", chance)
    at = 1000.0
    for _ in range(150):
        at += chance.choice([1, 1, 2, 5, 20])
        act(shop, at)
    shop.flush()
    of = options(shop)
    correlate_batch(HERE, of, ignore)
    given = [samples(spark, shop.root, name) for name in ("till", "opened", "tillRobbed")]
    given += [rows(spark, shop.root, kind) for kind in KINDS]
    table = stored_alerts(of.out, by="batch")
    assert table.num_rows > 3
    same(alerts(given, of.rules, late="5s"), table.drop_columns(["step"]))


def test_alerts_of_one_frame(spark: SparkSession, shop: Shop, tmp_path: Path) -> None:
    text = '[busy]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 5\n'
    path = tmp_path / "rules.toml"
    path.write_text(text)
    found = alerts(samples(spark, shop.root, "till"), str(path))
    assert [(row["rule"], row["change"]) for row in found.orderBy("at_ns").collect()] == [
        ("busy", "raised"),
        ("busy", "cleared"),
    ]
    with pytest.raises(PipelineError, match="what is given has no event opened yet"):
        alerts(samples(spark, shop.root, "till"), parse_rules(RULES, "rules.toml"))
    with pytest.raises(PipelineError, match="rules read heartbeats: no frame with these rows is given"):
        alerts(
            samples(spark, shop.root, "till"),
            parse_rules('[r]\nkind = "absence"\nof = "heartbeats"\nfor = "1s"\n', "r"),
        )
    with pytest.raises(RuleError, match="the class has no 'queues'"):
        alerts(samples(spark, shop.root, "till"), parse_rules(text.replace('"queue"', '"queues"'), "r"))
    with pytest.raises(PipelineError, match=r"two frames have rows of org.example.shop:till"):
        alerts([samples(spark, shop.root, "till")] * 2, str(path))


def test_lives_are_those_of_the_job(spark: SparkSession, tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    till = Till(shop)
    shop.agent(100, "added")
    till.publish(101, name="one", limit=10)
    Till(shop, "two").publish(111, name="two", limit=1)
    shop.beat(110, 120)
    till.publish(150, deleted=149, name="one", limit=10)
    shop.agent(160, "removed", reason="goodbye")
    shop.agent(300, "added", agent="b", epoch=2)
    shop.put((310, 1), agent="b", object="three", epoch=2)
    shop.beat(320, agent="b", epoch=2)
    shop.commit()
    of = AuditOptions(lake=shop.root, out=str(tmp_path / "out"))
    audit_lake(HERE, of, ignore)
    given = [samples(spark, shop.root, "till"), *(rows(spark, shop.root, kind) for kind in KINDS[:2])]
    same(lives(given), stored(of.table("lives")))
    (only,) = lives(samples(spark, shop.root, "till")).where("object = 'two'").collect()
    assert only["ended_by"] is None


def test_frames_that_say_nothing_about_lives(spark: SparkSession, shop: Shop) -> None:
    with pytest.raises(PipelineError, match="no samples of a class are given"):
        lives(rows(spark, shop.root, "heartbeats"))
    with pytest.raises(PipelineError, match=r"rows of org.example.shop:opened say nothing about lifetimes"):
        lives(samples(spark, shop.root, "opened"))
    with pytest.raises(PipelineError, match="rollups: these are rows of heartbeats"):
        rollups(rows(spark, shop.root, "heartbeats"))
    with pytest.raises(PipelineError, match="doesn't know its class"):
        rollups(spark.range(1))


def test_views_for_sql(spark: SparkSession, shop: Shop) -> None:
    names = views(spark, shop.root, sizes=["1m"])
    assert {"heartbeats", "schemas", "org_example_shop_till", "org_example_shop_till_rollups"} <= set(names)
    try:
        query = "select max(sales) from org_example_shop_till where _object = 'one'"
        assert [int(row[0]) for row in spark.sql(query).collect()] == [300]
        query = "select sum(delta) from org_example_shop_till_rollups where member = 'sales' and object = 'one'"
        assert [row[0] for row in spark.sql(query).collect()] == [300.0]
    finally:
        for name in names:
            spark.catalog.dropTempView(name)


#: What a client of Spark Connect does; it starts a server of its own.
REMOTE = """
import sys
from pyspark.sql import SparkSession
from qmf.pipeline.spark import alerts, lives, rollups, rows, samples, views

lake, rules = sys.argv[1:]
spark = SparkSession.builder.remote("local[1]").config("spark.sql.shuffle.partitions", "1").getOrCreate()
till = samples(spark, lake, "till")
assert type(till).__module__.startswith("pyspark.sql.connect"), type(till)
print(till.where("sales > 100").count())
print(rollups(till, ["1m"]).where("member = 'sales'").count())
print(alerts(till, rules).count())
print(lives([till, rows(spark, lake, "heartbeats")]).count())
print(len(views(spark, lake)), spark.sql("select count(*) from org_example_shop_till").collect()[0][0])
spark.stop()
"""


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.toml"
    path.write_text('[busy]\nkind = "threshold"\nclass = "till"\nvalue = "queue"\nabove = 5\n')
    return path


@pytest.mark.soak
def test_by_spark_connect(shop: Shop, rules: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio: pip install 'pyspark[connect]'")
    command = [sys.executable, "-c", REMOTE, shop.root, str(rules)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["5", "3", "2", "2", "8", "8"]
