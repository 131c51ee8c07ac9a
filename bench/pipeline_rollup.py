"""What does a value cost to record and to roll up, beside Spark, DuckDB and pandas on the same files, as values grow?

Makes a lake of one class with 7 values per sample and rolls it up to minutes: as the command does, in its process and
on Spark; then plain Spark computes number, minimum, maximum, first and last of each value, DuckDB and pandas the same
with the growth of the counter. Each writes its rows into Parquet files; where the growth is computed, it must be the
same. Prints seconds and processor seconds of each, and the peak memory of the process and of Spark's Java.

    python bench/pipeline_rollup.py [VALUES ...]        default: 1000000 10000000

Needs duckdb and pandas besides the extra `pipeline`. Each size runs in a process of its own, so that peaks are its own.
Spark's start is not counted; it rolls up a small lake first, to warm up. All have two processors. On a machine that
does other work as well, compare processor seconds.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow
import pyarrow.compute
import pyarrow.dataset
from pipeline_lake import CLASS, SECOND, VALUES, each_size, fill, peak, peaks
from pyspark.sql import functions as F

from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.tables import RollupOptions, rollup_table
from qmf.pipeline.runners.process import ProcessRunner
from qmf.pipeline.runners.spark import SparkRunner
from qmf.pipeline.spark import session

#: The values of a sample.
NAMES = ("done", "load", "level", "delayCount", "delayMin", "delayMax", "delayAvg")

#: The data files of the class in a lake, without those of its log.
FILES = "objects/*/*/_date=*/*.parquet"

_EACH = ", ".join(
    f'min("{name}"), max("{name}"), arg_min("{name}", _ts_ns), arg_max("{name}", _ts_ns)' for name in NAMES
)

QUERY = f"""
copy (
    with step as (
        select *, _ts_ns // 60000000000 as minute, lag(done) over (partition by _object order by _ts_ns) as before
        from '{{files}}')
    select _object, minute, count(*),
        sum(case when done >= before then done - before when before is null then 0 else done end) as delta,
        avg(load), avg(level), sum("delayCount" * "delayAvg") / sum("delayCount"), {_EACH}
    from step group by _object, minute
) to '{{out}}/rows.parquet' (format parquet, compression zstd)
"""


def timed(work: Callable[[str, str], float | None], root: str, others: Mapping[str, float]) -> dict[str, Any]:
    """Run a work from a lake to a folder: its answer, seconds, and processor seconds with those of `others`."""

    def used() -> float:
        return time.process_time() + others["processor"]

    with tempfile.TemporaryDirectory() as out:
        processor, started = used(), time.perf_counter()
        work(root, out)
        return {"seconds": time.perf_counter() - started, "processor": used() - processor, "answer": growth(out)}


def growth(out: str) -> float | None:
    """The growth of the counter in the rows that were written; None where it was not computed."""
    for name in ("batch", "rows.parquet"):
        if (Path(out) / name).exists():
            files = f"{out}/{name}" + ("/**/*.parquet" if name == "batch" else "")
            ((total,),) = duckdb.execute(f"select sum(delta) from '{files}'").fetchall()
            return float(total)
    return None


def by_command(root: str, out: str) -> None:
    """As the command does."""
    roll_up_lake(ProcessRunner(), RollupOptions(lake=root, out=out, classes=("thing",)), lambda _text: None)


def on_spark(spark: Any) -> Callable[[str, str], None]:
    """As the command does on Spark."""

    def work(root: str, out: str) -> None:
        options = RollupOptions(lake=root, out=out)
        roll_up_lake(SparkRunner(spark), options, lambda _text: None)
        assert rollup_table(options, "batch").version() is not None

    return work


def by_plain_spark(spark: Any) -> Callable[[str, str], None]:
    """Spark's own aggregates, without counters."""

    def work(root: str, out: str) -> None:
        rows = spark.read.parquet(f"{root}/objects")
        each = [
            aggregate
            for name in NAMES
            for aggregate in (F.min(name), F.max(name), F.min_by(name, "_ts_ns"), F.max_by(name, "_ts_ns"))
        ]
        named = [aggregate.alias(f"c{number}") for number, aggregate in enumerate(each)]
        minute = F.expr(f"_ts_ns div {60 * SECOND}").alias("minute")
        rows.groupBy("_object", minute).agg(F.count("*").alias("n"), *named).write.parquet(f"{out}/spark")

    return work


def by_duckdb(root: str, out: str) -> None:
    """DuckDB, with the growth of the counter."""
    connection = duckdb.connect(config={"threads": 2})
    connection.execute(QUERY.format(files=f"{root}/{FILES}", out=out))
    connection.close()


def by_pandas(root: str, out: str) -> None:
    """The same; the exact columns would be Decimals to pandas, so Arrow makes them floats while it reads."""
    columns = ["_object", "_ts_ns", *(column.name for column in ClassVersion.from_schema(CLASS).columns)]
    # pyarrow leaves out folders like `_date=` where it looks for files itself
    files = [str(path) for path in Path(root).glob(FILES)]
    read = pyarrow.dataset.dataset(files).to_table(columns)
    for index, field in enumerate(read.schema):
        if pyarrow.types.is_decimal(field.type):
            read = read.set_column(index, field.name, pyarrow.compute.cast(read[field.name], pyarrow.float64()))
    frame = read.to_pandas()
    frame["minute"] = frame["_ts_ns"] // (60 * SECOND)
    frame = frame.sort_values(["_object", "_ts_ns"])
    step = frame.groupby("_object")["done"].diff()
    frame["delta"] = step.where(~(step < 0), frame["done"]).fillna(0)
    frame["total"] = frame["delayCount"] * frame["delayAvg"]
    each: dict[str, Any] = {name: ["min", "max", "first", "last"] for name in NAMES}
    rolled = frame.groupby(["_object", "minute"]).agg({"_ts_ns": "count", "delta": "sum", "total": "sum", **each})
    rolled.columns = ["".join(name) if name[0] != "delta" else "delta" for name in rolled.columns]
    rolled.to_parquet(f"{out}/rows.parquet", compression="zstd")


def level(second: int) -> int:
    """Goes up for 90 seconds, then again."""
    return second % 90


def one(values: int) -> dict[str, Any]:
    """Measure one size in this process."""
    with tempfile.TemporaryDirectory() as folder, peaks() as found:
        root, warm = f"{folder}/lake", f"{folder}/warm"
        for path, count in ((warm, 20_000), (root, values)):
            DeltaLake(str(path)).create()
            recorded = fill(DeltaLake(str(path)), count // VALUES, 100_000, level)
        recording = peak(os.getpid())
        timed(by_command, warm, found)
        results = {"command": timed(by_command, root, found), "duckdb": timed(by_duckdb, root, found)}
        spark = session("local[2]", name="bench", partitions=None)
        spark.sparkContext.setLogLevel("ERROR")
        for name, work in (("on spark", on_spark(spark)), ("plain spark", by_plain_spark(spark))):
            timed(work, warm, found)
            results[name] = timed(work, root, found)
        spark.stop()
        results["pandas"] = timed(by_pandas, root, found)
    answers = {result["answer"] for result in results.values() if result["answer"] is not None}
    return {
        "right": len(answers) == 1,
        "record": values / recorded,
        "recording": recording,
        "java": found["java"],
        "results": results,
    }


WORKS = ("command", "duckdb", "pandas", "on spark", "plain spark")


def line(found: dict[str, Any]) -> str:
    """A row of the table."""
    results = found["results"]
    each = " ".join(f"{results[name]['seconds']:7.2f} {results[name]['processor']:7.2f}" for name in WORKS)
    return f"{found['record']:10,.0f} {each} {found['recording']:11.0f} {found['java']:8.0f}"


HEADING = (
    f"{'record/s':>10} "
    + " ".join(f"{name[:7]:>7} {'cpu s':>7}" for name in ("command", "duckdb", "pandas", "our spk", "spark"))
    + " recorder MB  java MB"
)

if __name__ == "__main__":
    sys.exit(each_size(__file__, __doc__ or "", HEADING, one, line))
