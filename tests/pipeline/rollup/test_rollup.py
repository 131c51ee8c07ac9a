"""Rollups: known answers for counters, gauges, hilos and mmas, and rollups of rollups against rollups of samples."""

from __future__ import annotations

import datetime
import itertools
import random
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from pipeline.shop import PACKAGE, TILL

from qmf.pipeline import PipelineError
from qmf.pipeline.lake.columns import ClassVersion

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.aggregation.members import window_seconds  # noqa: E402
from qmf.pipeline.kinds import RowKind  # noqa: E402
from qmf.pipeline.rollup import ROLLUP, coarser, rollup  # noqa: E402
from qmf.pipeline.spark.catalog import kind_schema  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.slow

TABLE = ClassVersion.from_schema(TILL)
SCHEMA = kind_schema(RowKind.OBJECTS, [TABLE])
HUGE = (1 << 64) - 1
SECOND = 10**9


def sample(seq: int, at: float, epoch: int | None = 1, name: str = "one", **values: Any) -> tuple[Any, ...]:
    """One row of the class; `at` in seconds."""
    time_ns = int(at * SECOND)
    row: dict[str, Any] = {
        "_run": "r",
        "_seq": seq,
        "_ts": datetime.datetime.fromtimestamp(at, datetime.UTC),
        "_ts_ns": time_ns,
        "_agent": "a",
        "_epoch": epoch,
        "_object": name,
        "_properties": False,
        "_statistics": True,
        **{key: Decimal(value) if key in DECIMALS else value for key, value in values.items()},
    }
    return tuple(row.get(field) for field in SCHEMA.fieldNames())


DECIMALS = {field.name for field in SCHEMA if field.dataType.typeName().startswith("decimal")}


def frame(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), SCHEMA)


def only(rolled: DataFrame, member: str) -> dict[str, Any]:
    (row,) = rolled.where(rolled.member == member).collect()
    found: dict[str, Any] = row.asDict()
    return found


def test_the_table_is_as_declared(spark: SparkSession) -> None:
    rolled = rollup(frame(spark, sample(1, 0, sales=1)), [TABLE], "1m")
    assert [(field.name, field.dataType) for field in rolled.schema] == [
        (field.name, field.dataType) for field in ROLLUP
    ]


#: Values, epochs, whether counters go on at a restart; then delta and resets.
COUNTERS: list[tuple[tuple[int, ...], tuple[int | None, ...], bool, int, int]] = [
    ((10, 15, 15, 40), (1, 1, 1, 1), False, 30, 0),
    ((10, 15, 3, 4), (1, 1, 1, 1), False, 5 + 3 + 1, 1),
    ((10, 15, 20, 21), (1, 1, 2, 2), False, 5 + 20 + 1, 1),
    ((10, 15, 20, 21), (1, 1, 2, 2), True, 11, 0),
    ((10, 15, 3, 21), (1, 1, 2, 2), True, 5 + 3 + 18, 1),
    ((10, 15, 20, 21), (None, 1, None, 1), False, 11, 0),
    ((0, HUGE), (1, 1), False, HUGE, 0),
    ((7,), (1,), False, 0, 0),
]


@pytest.mark.parametrize("continued", [False, True])
def test_restarts_of_counters(spark: SparkSession, continued: bool) -> None:
    cases = {str(n): case for n, case in enumerate(COUNTERS) if case[2] is continued}
    rows = [
        sample(n, n, epoch, name, sales=value)
        for name, (values, epochs, *_) in cases.items()
        for n, (value, epoch) in enumerate(zip(values, epochs, strict=True))
    ]
    random.Random(1).shuffle(rows)
    rolled = rollup(frame(spark, *rows), [TABLE], "1m", continued=continued).where("member = 'sales'").collect()
    assert sorted(row["object"] for row in rolled) == sorted(cases)
    for row in rolled:
        values, _epochs, _continued, delta, resets = cases[row["object"]]
        assert (row["delta_exact"], row["resets"], row["samples"]) == (delta, resets, len(values))
        assert row["rate"] == (pytest.approx(delta / (len(values) - 1)) if len(values) > 1 else None)
        assert (row["first_exact"], row["last_exact"]) == (values[0], values[-1])
        assert (row["package"], row["class"], row["agent"]) == (PACKAGE, "till", "a")


def test_hilos_and_mmas_merge(spark: SparkSession) -> None:
    rolled = rollup(
        frame(
            spark,
            sample(1, 1, queue=5, queueHigh=9, queueLow=4, serviceCount=1, serviceMin=10, serviceMax=10, serviceAvg=10),
            sample(2, 2, queue=6, queueHigh=7, queueLow=2, serviceCount=3, serviceMin=20, serviceMax=60, serviceAvg=40),
            sample(3, 3, queue=1, queueHigh=6, queueLow=1, serviceCount=0, serviceMin=0, serviceMax=0, serviceAvg=0),
        ),
        [TABLE],
        "1m",
    )
    queue, service = only(rolled, "queue"), only(rolled, "service")
    assert (queue["low_exact"], queue["high_exact"], queue["last_exact"], queue["mean"]) == (1, 9, 1, 4.0)
    assert (service["low_exact"], service["high_exact"], service["weight"], service["mean"]) == (10, 60, 4, 32.5)
    assert service["unit"] == "nanosecond"


def test_rows_without_statistics_do_not_count(spark: SparkSession) -> None:
    rows = frame(spark, sample(1, 1, sales=1), sample(2, 2))
    hidden = rows.withColumn("_statistics", rows["_seq"] == 1)
    assert only(rollup(hidden, [TABLE], "1m"), "sales")["samples"] == 1


def series(chance: random.Random, name: str) -> list[tuple[Any, ...]]:
    """Samples of one object within two hours, some of them from another run of the recorder."""
    times = sorted(chance.uniform(0, 7200) for _ in range(chance.randint(1, 30)))
    return [
        sample(
            seq,
            at,
            chance.choice([1, 1, 1, 2, None]),
            name,
            _run=chance.choice(["r", "r", "s"]),
            sales=chance.choice([0, HUGE, chance.randrange(1000)]),
            queue=chance.randrange(99),
            queueHigh=chance.randrange(99, 200),
            queueLow=0,
            serviceCount=chance.randrange(3),
            serviceMin=1,
            serviceMax=chance.randrange(9, 99),
            serviceAvg=chance.randrange(2, 9),
        )
        for seq, at in enumerate(times)
    ]


def grown(rows: list[tuple[Any, ...]], *, continued: bool) -> tuple[int, int]:
    """Growth and restarts of a counter, by its definition."""
    samples = [dict(zip(SCHEMA.fieldNames(), row, strict=True)) for row in rows]
    delta = resets = 0
    for before, after in itertools.pairwise(samples):
        value, last = int(after["sales"]), int(before["sales"])
        known = None not in (before["_epoch"], after["_epoch"])
        reset = value < last or (not continued and known and before["_epoch"] != after["_epoch"])
        delta += value if reset else value - last
        resets += reset
    return delta, resets


@pytest.mark.parametrize("continued", [False, True])
def test_rollups_of_rollups_are_rollups_of_samples(spark: SparkSession, continued: bool) -> None:
    chance = random.Random(random.randrange(1000))  # pytest-randomly prints the seed
    all_series = {str(n): series(chance, str(n)) for n in range(25)}
    samples = frame(spark, *itertools.chain.from_iterable(all_series.values()))
    fine = rollup(samples, [TABLE], "1m", continued=continued)
    order = ["window_start", "object", "member"]
    left = rollup(samples, [TABLE], "1d", continued=continued).orderBy(*order).collect()
    right = coarser(coarser(fine, "1h", continued=continued), "1d", continued=continued).orderBy(*order).collect()
    assert [row.asDict() for row in right] == [row.asDict() for row in left]
    counted = {row["object"]: (row["delta_exact"], row["resets"]) for row in left if row["member"] == "sales"}
    assert counted == {name: grown(rows, continued=continued) for name, rows in all_series.items()}


@pytest.mark.parametrize(("size", "length"), [("10s", 10), ("15m", 900), ("1h", 3600), ("1d", 86400)])
def test_sizes(size: str, length: int) -> None:
    assert window_seconds(size) == length


@pytest.mark.parametrize("size", ["", "7", "7m", "0s", "2d", "-1h", "1w"])
def test_sizes_that_would_cross_midnight_are_refused(size: str) -> None:
    with pytest.raises(PipelineError, match="part of a day"):
        window_seconds(size)
