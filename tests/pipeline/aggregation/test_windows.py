"""Roll-ups by DuckDB: the same rows as by Spark, whatever the samples."""

from __future__ import annotations

import datetime
import random
from collections.abc import Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pipeline.shop import PACKAGE, TILL

from qmf.pipeline.aggregation.members import number_members
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.aggregation.windows import rolled_up
from qmf.pipeline.duckdb_queries import connect
from qmf.pipeline.lake.arrow import arrow_table, columns_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TABLE = ClassVersion.from_schema(TILL)
COLUMNS = columns_of(RowKind.OBJECTS, TABLE)
SECOND = 10**9
HUGE = (1 << 64) - 1
DECIMALS = {name for name, type in COLUMNS if type.value.startswith("decimal")}

Row = dict[str, Any]


def sample(seq: int, at: float, *, epoch: int | None = 1, name: str = "one", run: str = "r", **values: Any) -> Row:
    """A sample; `at` in seconds."""
    return {
        "_run": run,
        "_seq": seq,
        "_ts": datetime.datetime.fromtimestamp(int(at), datetime.UTC),
        "_ts_ns": int(at) * SECOND,
        "_agent": "a",
        "_epoch": epoch,
        "_object": name,
        "_properties": False,
        "_statistics": True,
        **{key: Decimal(value) if key in DECIMALS and value is not None else value for key, value in values.items()},
    }


def duckdb_rows(samples: list[Row], *, seconds: int = 60, continued: bool = False) -> list[Row]:
    """The roll-up of samples, in the order of time, object and member."""
    cells = [tuple(row["_ts_ns"] // 1000 if name == "_ts" else row.get(name) for name, _ in COLUMNS) for row in samples]
    connection = connect()
    try:
        connection.execute("set timezone = 'UTC'")
        connection.register("samples", arrow_table(COLUMNS, cells))
        members = number_members([TABLE])
        with rolled_up(
            connection, "samples", members, package=PACKAGE, name="till", seconds=seconds, continued=continued
        ) as sql:
            if sql is None:
                return []
            found = connection.execute(sql)
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]
    finally:
        connection.close()


def spark_rows(spark: SparkSession, samples: list[Row], *, continued: bool) -> list[Row]:
    """The same by Spark."""
    from qmf.pipeline.rollup import rollup
    from qmf.pipeline.spark.catalog import kind_schema

    schema = kind_schema(RowKind.OBJECTS, [TABLE])
    frame = spark.createDataFrame([tuple(row.get(name) for name in schema.fieldNames()) for row in samples], schema)
    rolled = rollup(frame, [TABLE], "1m", continued=continued).orderBy("window_start", "agent", "object", "member")
    return [row.asDict() for row in rolled.collect()]


def plain(rows: list[Row]) -> Iterator[Row]:
    """Rows with times without a zone, as Spark returns them in a session whose zone is UTC."""
    for row in rows:
        yield {
            key: value.replace(tzinfo=None) if isinstance(value, datetime.datetime) else value
            for key, value in row.items()
        }


def any_samples(chance: random.Random, name: str) -> list[Row]:
    """Samples of an object in some minutes: restarts, missing values, two runs, and clocks that are set back."""
    rows = []
    at = 0
    for seq in range(chance.randint(1, 40)):
        at = max(0, at + chance.choice([0, 1, 5, 20, 20, -30]))
        rows.append(
            sample(
                seq + 1,
                at,
                epoch=chance.choice([1, 1, 1, 2, None]),
                name=name,
                run=chance.choice(["r", "r", "s"]),
                sales=chance.choice([0, HUGE, None, chance.randrange(1000), chance.randrange(1000)]),
                queue=chance.choice([None, chance.randrange(99)]),
                queueHigh=chance.randrange(99, 200),
                queueLow=0,
                serviceCount=chance.randrange(3),
                serviceMin=1,
                serviceMax=chance.randrange(9, 99),
                serviceAvg=chance.randrange(2, 9),
            )
        )
    chance.shuffle(rows)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize("continued", [False, True])
def test_they_are_those_of_spark(spark: SparkSession, continued: bool) -> None:
    chance = random.Random(random.randrange(10**6))  # pytest-randomly prints the seed
    samples = [row for n in range(60) for row in any_samples(chance, str(n))]
    expected = list(plain(spark_rows(spark, samples, continued=continued)))
    found = list(plain(duckdb_rows(samples, continued=continued)))
    assert [list(row) for row in found[:1]] == [list(row) for row in expected[:1]]
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        for key, value in theirs.items():
            # Doubles may differ in their last digit: sums of them depend on the order.
            wanted = pytest.approx(value) if isinstance(value, float) else value
            assert ours[key] == wanted, (key, ours, theirs)


def test_samples_without_any_counter_among_others() -> None:
    rows = [sample(n, n, sales=None if n % 2 else n, queue=1) for n in range(1, 11)]
    (sales,) = [row for row in duckdb_rows(rows) if row["member"] == "sales"]
    assert (sales["samples"], sales["delta_exact"], sales["first_ns"]) == (5, 8, 2 * SECOND)


def test_a_clock_that_was_set_back() -> None:
    # Received as 10, 20, 30, with times that say 20, 30, 10.
    rows = [sample(1, 30, sales=10), sample(2, 10, sales=20), sample(3, 20, sales=30)]
    (sales,) = [row for row in duckdb_rows(rows) if row["member"] == "sales"]
    assert (sales["delta_exact"], sales["resets"], sales["first_exact"], sales["last_exact"]) == (20, 0, 20, 10)


def test_windows_before_1970_and_at_their_edges() -> None:
    rows = [sample(1, -61, sales=1), sample(2, -60, sales=2), sample(3, -1, sales=3), sample(4, 0, sales=4)]
    found = {
        (row["window_start"].timestamp(), row["window_end"].timestamp()): row["samples"]
        for row in duckdb_rows(rows)
        if row["member"] == "sales"
    }
    assert found == {(-120, -60): 1, (-60, 0): 2, (0, 60): 1}


def test_no_samples() -> None:
    assert duckdb_rows([{**sample(1, 1, sales=1), "_statistics": False}]) == []
