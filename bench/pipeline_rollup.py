"""What does a value cost to record and to roll up, beside DuckDB and pandas on the same files, as values grow?

Makes a lake of one class with 7 values per sample, rolls it up to minutes as the command does (in this process, with
the tables written) and with Spark, and computes the same growth of the counter per object and minute with the others;
their answers must be equal. Prints values per second, ratios, and the peak memory of the process and of Spark's Java.

    python bench/pipeline_rollup.py [VALUES ...]        default: 1000000 10000000

Needs duckdb and pandas besides the extra `pipeline`. Each size runs in a process of its own, so that peaks are its own.
Spark's start is not counted; it rolls up a small lake first, to warm up. All have two processors.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow
import pyarrow.compute
import pyarrow.parquet
from pipeline_lake import CLASS, SECOND, VALUES, each_size, fill, peak, peaks

from qmf.pipeline.aggregation.job import roll_up_lake
from qmf.pipeline.aggregation.tables import RollupOptions
from qmf.pipeline.frames import Frames
from qmf.pipeline.lake.classes import versions_of
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.rollup import rollup
from qmf.pipeline.spark import session
from qmf.pipeline.spark.catalog import class_versions

QUERY = """
with step as (
    select *, _ts_ns // 60000000000 as minute,
        lag(done) over (partition by _object, _ts_ns // 60000000000 order by _ts_ns) as before
    from '{files}'),
rolled as (
    select _object, minute,
        sum(case when done >= before then done - before when before is null then 0 else done end) as delta,
        min(load), max(load), avg(load), min(level), max(level), avg(level),
        min("delayMin"), max("delayMax"), sum("delayCount" * "delayAvg") / sum("delayCount")
    from step group by _object, minute)
select sum(delta) from rolled
"""


def timed(work: Callable[..., float], *args: object) -> tuple[float, float]:
    """The answer, and seconds taken."""
    started = time.perf_counter()
    answer = work(*args)
    return answer, time.perf_counter() - started


def by_spark(spark: Any, root: str) -> float:
    """All members, as the job does; the sum of the counter's growth."""
    of = versions_of(class_versions(root), None, "thing")
    rolled = rollup(Frames(spark, root).class_rows(of), of, "1m")
    (row,) = rolled.groupBy().sum("delta", "mean", "low", "high").collect()
    return float(row["sum(delta)"])


def by_command(root: str) -> float:
    """All members, into the tables of the job; the sum of the counter's growth."""
    with tempfile.TemporaryDirectory() as out:
        roll_up_lake(RollupOptions(lake=root, out=out, classes=("thing",)), lambda _text: None)
        (row,) = duckdb.execute(f"select sum(delta) from '{out}/**/*.parquet'").fetchall()
    return float(row[0])


def by_duckdb(root: str) -> float:
    """The same per object and minute: growth of the counter, extremes and means of the others."""
    connection = duckdb.connect(config={"threads": 2})
    (row,) = connection.execute(QUERY.format(files=f"{root}/objects/**/*.parquet")).fetchall()
    return float(row[0])


def by_pandas(root: str) -> float:
    """The same; the exact columns would be Decimals to pandas, so Arrow makes them floats while it reads."""
    columns = ["_object", "_ts_ns", *(column.name for column in ClassVersion.from_schema(CLASS).columns)]
    read = pyarrow.parquet.read_table(f"{root}/objects", columns=columns)
    for index, field in enumerate(read.schema):
        if pyarrow.types.is_decimal(field.type):
            read = read.set_column(index, field.name, pyarrow.compute.cast(read[field.name], pyarrow.float64()))
    frame = read.to_pandas()
    frame["minute"] = frame["_ts_ns"] // (60 * SECOND)
    frame = frame.sort_values(["_object", "_ts_ns"])
    groups = frame.groupby(["_object", "minute"])
    step = groups["done"].diff()
    frame["delta"] = step.where(~(step < 0), frame["done"]).fillna(0)
    frame["total"] = frame["delayCount"] * frame["delayAvg"]
    rolled = frame.groupby(["_object", "minute"]).agg(
        {"delta": "sum", "load": ["min", "max", "mean"], "level": ["min", "max", "mean"], "delayMin": "min",
         "delayMax": "max", "total": "sum", "delayCount": "sum"}
    )  # fmt: skip
    return float(rolled["delta"]["sum"].sum())


def level(second: int) -> int:
    """Goes up for 90 seconds, then again."""
    return second % 90


def one(values: int) -> dict[str, Any]:
    """Measure one size in this process."""
    with tempfile.TemporaryDirectory() as folder, peaks() as found:
        root, warm = f"{folder}/lake", f"{folder}/warm"
        for path, count in ((warm, 20_000), (root, values)):
            Lake(path).create()
            recorded = fill(Lake(path), count // VALUES, 100_000, level)
        recording = peak(os.getpid())
        spark = session("local[2]", name="bench", partitions=None)
        spark.sparkContext.setLogLevel("ERROR")
        by_spark(spark, warm)
        answers = {"spark": timed(by_spark, spark, root)}
        spark.stop()
        answers |= {
            "command": timed(by_command, root),
            "duckdb": timed(by_duckdb, root),
            "pandas": timed(by_pandas, root),
        }
    agree = len({answer for answer, _ in answers.values()}) == 1
    rates = {name: values / took for name, (_, took) in answers.items()}
    return {"right": agree, "record": values / recorded, **rates, "recording": recording, "java": found["java"]}


def line(found: dict[str, Any]) -> str:
    """A row of the table."""
    rates = " ".join(f"{found[name]:12,.0f}" for name in ("record", "command", "spark", "duckdb", "pandas"))
    ratios = f"{found['duckdb'] / found['command']:15.1f} {found['command'] / found['spark']:14.1f}"
    return f"{rates} {ratios} {found['recording']:12.0f} {found['java']:8.0f}"


HEADING = (
    f"{'record/s':>12} {'command/s':>12} {'spark/s':>12} {'duckdb/s':>12} {'pandas/s':>12}"
    "  duckdb:command  command:spark  recorder MB  java MB"
)

if __name__ == "__main__":
    sys.exit(each_size(__file__, __doc__ or "", HEADING, one, line))
