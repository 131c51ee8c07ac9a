"""What does a value cost to record and to roll up, beside DuckDB and pandas on the same files, as values grow?

Makes a lake of one class with 7 values per sample, rolls it up to minutes with Spark, and computes the same growth of
the counter per object and minute with the others; their answers must be equal. Prints values per second and ratios.

    python bench/pipeline_rollup.py [VALUES ...]        default: 100000 1000000

Needs duckdb and pandas besides the extra `pipeline`. Spark's start is not counted; its first run is a warm-up.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pandas

from qmf.pipeline.buffers import Buffers, Converters, commit
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake import Lake
from qmf.pipeline.members import Table, table_of
from qmf.pipeline.rollup import rollup
from qmf.pipeline.spark import read, session, tables, versions
from qmf.schema import TYPES, ClassSchema, Statistic

OBJECTS = 100
VALUES = 7
SECOND = 10**9
RUN = "00000000000000000001_1"

CLASS = ClassSchema(
    package="org.example.bench",
    name="thing",
    hash=UUID(int=1),
    statistics=(
        Statistic(name="done", type=TYPES["count64"]),
        Statistic(name="load", type=TYPES["double"]),
        Statistic(name="level", type=TYPES["int32"]),
        Statistic(name="delay", type=TYPES["mma64"]),
    ),
)

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


def fill(lake: Lake, samples: int) -> float:
    """Record so many samples as the recorder does, in commits of 100,000 rows; seconds taken."""
    table = table_of(CLASS)
    converters = Converters(table)
    buffers = Buffers()
    started = time.perf_counter()
    told = (RUN, 0, 0, 0, 0, None, None, table.package, table.name, table.hash, False, table.to_json(), "")
    buffers.add(RowKind.SCHEMAS, None, 0, told)
    files = 1
    for n in range(samples):
        time_ns = n // OBJECTS * SECOND
        values: dict[str, object] = {"done": n, "load": n / 7, "level": n % 90}
        values |= {"delayCount": 3, "delayMin": 1, "delayMax": 9, "delayAvg": n % 9}
        own = (f"thing-{n % OBJECTS}", 0, 0, 0, False, True)
        common = (RUN, n + 1, time_ns // 1000, time_ns, time_ns, "bench", 1)
        buffers.add(RowKind.OBJECTS, table, time_ns, (*common, *own, *converters.cells(values, statistics=True)))
        if n % 100_000 == 99_999 or n == samples - 1:
            batch = buffers.take()
            commit(lake, "bench", RUN, files, batch)
            files += len(batch.parts)
    return time.perf_counter() - started


def timed(work: Callable[..., float], *args: object) -> tuple[float, float]:
    """The answer, and seconds taken."""
    started = time.perf_counter()
    answer = work(*args)
    return answer, time.perf_counter() - started


def by_spark(spark: Any, root: str, of: list[Table]) -> float:
    """All members, as the job does; the sum of the counter's growth."""
    rolled = rollup(read(spark, root, RowKind.OBJECTS, of), of, "1m")
    (row,) = rolled.groupBy().sum("delta", "mean", "low", "high").collect()
    return float(row["sum(delta)"])


def by_duckdb(root: str) -> float:
    """The same per object and minute: growth of the counter, extremes and means of the others."""
    (row,) = duckdb.connect().execute(QUERY.format(files=f"{root}/objects/**/*.parquet")).fetchall()
    return float(row[0])


def by_pandas(root: str) -> float:
    """The same; the exact columns are Decimals to pandas, so they are made floats first, which it is given for free."""
    frame = pandas.read_parquet(
        f"{root}/objects", columns=["_object", "_ts_ns", *(c.name for c in table_of(CLASS).columns)]
    )
    for name in ("done", "delayCount", "delayMin", "delayMax", "delayAvg"):
        frame[name] = frame[name].astype(float)
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


def main() -> int:
    """Run and print; 1 when answers differ."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("values", nargs="*", type=int, default=[100_000, 1_000_000])
    wrong = 0
    spark = session("local[2]", name="bench")
    spark.sparkContext.setLogLevel("ERROR")
    print(
        f"{'values':>12} {'record/s':>12} {'spark/s':>12} {'duckdb/s':>12} {'pandas/s':>12}  duckdb:spark  pandas:spark"
    )
    for values in parser.parse_args().values:
        with tempfile.TemporaryDirectory() as folder:
            root = str(Path(folder) / "lake")
            lake = Lake(root)
            lake.create()
            recorded = fill(lake, values // VALUES)
            of = versions(tables(root), None, "thing")
            by_spark(spark, root, of)
            answers = [timed(by_spark, spark, root, of), timed(by_duckdb, root), timed(by_pandas, root)]
            wrong += len({answer for answer, _ in answers}) - 1
            rates = [values / seconds for _, seconds in answers]
            print(
                f"{values:12,} {values / recorded:12,.0f} "
                + " ".join(f"{rate:12,.0f}" for rate in rates)
                + f" {rates[1] / rates[0]:13.1f} {rates[2] / rates[0]:13.1f}"
            )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"peak memory of this process, without Spark's: {peak:.0f} MB; answers {'differ' if wrong else 'agree'}")
    spark.stop()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
