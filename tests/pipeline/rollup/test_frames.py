"""Roll-ups of frames of Spark: the same rows as by plain Python."""

from __future__ import annotations

import datetime
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pipeline import rollup_reference
from pipeline.shop import PACKAGE, TILL

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.rollup.columns import ROLLUP_COLUMNS
from qmf.pipeline.rollup.members import number_members

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.lake.delta_lake import columns_of_versions
from qmf.pipeline.rollup import coarser, rollup
from qmf.pipeline.spark_access.data_source import spark_schema

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

TABLE = ClassVersion.from_schema(TILL)
SCHEMA = spark_schema(columns_of_versions(RowKind.OBJECTS, [TABLE]))
DECIMALS = {field.name for field in SCHEMA if field.dataType.typeName().startswith("decimal")}
SECOND = 10**9

Row = dict[str, Any]


def sample(seq: int, at: int, name: str, **values: Any) -> Row:
    """A sample; `at` in seconds."""
    return {
        "_run": "r",
        "_seq": seq,
        "_ts": datetime.datetime.fromtimestamp(at, datetime.UTC),
        "_ts_ns": at * SECOND,
        "_received_ns": at * SECOND,
        "_agent": "a",
        "_object": name,
        "_statistics": True,
        **{key: Decimal(value) if key in DECIMALS else value for key, value in values.items()},
    }


def any_samples(chance: random.Random) -> list[Row]:
    """Samples of some objects within two hours."""
    return [
        sample(
            seq,
            at,
            str(name),
            _epoch=chance.choice([1, 1, 1, 2, None]),
            sales=chance.choice([0, (1 << 64) - 1, chance.randrange(1000)]),
            queue=chance.randrange(99),
            queueHigh=chance.randrange(99, 200),
            queueLow=0,
            serviceCount=chance.randrange(3),
            serviceMin=1,
            serviceMax=chance.randrange(9, 99),
            serviceAvg=chance.randrange(2, 9),
        )
        for name in range(20)
        for seq, at in enumerate(sorted(chance.sample(range(7200), chance.randint(1, 30))))
    ]


def frame(spark: SparkSession, rows: list[Row]) -> DataFrame:
    return spark.createDataFrame([tuple(row.get(name) for name in SCHEMA.fieldNames()) for row in rows], SCHEMA)


def check(rolled: DataFrame, samples: list[Row], seconds: int, *, continued: bool) -> None:
    expected = rollup_reference.rolled_up(samples, number_members([TABLE]), seconds, continued=continued)
    found = [row.asDict() for row in rolled.collect()]
    assert rolled.columns == list(ROLLUP_COLUMNS)
    utc = datetime.UTC
    rows = {
        (
            int(row["window_start"].replace(tzinfo=utc).timestamp()) * SECOND,
            row["agent"],
            row["object"],
            row["member"],
        ): row
        for row in found
    }
    assert rows.keys() == expected.keys()
    assert len(rows) == len(found)
    for key, wanted in expected.items():
        assert (rows[key]["package"], rows[key]["class"]) == (PACKAGE, "till")
        for column, value in wanted.items():
            right = pytest.approx(value, rel=1e-9, abs=1e-9) if isinstance(value, float) else value
            assert rows[key][column] == right, (key, column)


@pytest.mark.parametrize("continued", [False, True])
def test_rollups_of_samples_and_of_rollups(spark: SparkSession, continued: bool) -> None:
    samples = any_samples(random.Random(random.randrange(10**6)))  # pytest-randomly prints the seed
    fine = rollup(frame(spark, samples), [TABLE], "1m", continued=continued)
    check(fine, samples, 60, continued=continued)
    check(coarser(fine, "1h"), samples, 3600, continued=continued)


def test_rows_without_statistics_do_not_count(spark: SparkSession) -> None:
    samples = [sample(1, 1, "one", sales=1), {**sample(2, 2, "one", sales=2), "_statistics": False}]
    (row,) = rollup(frame(spark, samples), [TABLE], "1m").collect()
    assert row["samples"] == 1
