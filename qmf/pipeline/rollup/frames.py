"""Roll-ups of frames: samples of one class, or rows of a roll-up, that Spark has. Executors run DuckDB on Arrow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from qmf.pipeline.duckdb_queries import text
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.columns import DATE, ClassVersion
from qmf.pipeline.rollup.columns import KEY, ROLLUP_COLUMNS
from qmf.pipeline.rollup.columns import coarser as coarser_rows
from qmf.pipeline.rollup.members import number_members, window_seconds
from qmf.pipeline.rollup.source import sample_columns
from qmf.pipeline.rollup.windows import roll_up
from qmf.pipeline.rollup.zones import UTC, base_seconds
from qmf.pipeline.runners.runner import duckdb_batches
from qmf.pipeline.runners.spark_tasks import task_connection

_SPARK_TYPES = {"timestamptz": "timestamp", "varchar": "string"}

#: The columns of a roll-up, as Spark declares them.
ROLLUP = ", ".join(f"`{name}` {_SPARK_TYPES.get(type, type)}" for name, type in ROLLUP_COLUMNS.items())


#: The same with the columns by which the table is partitioned.
_TABLE = f"`size` string, `{DATE}` string, {ROLLUP}"


def rollup(samples: DataFrame, versions: Sequence[ClassVersion], size: str, *, continued: bool = False) -> DataFrame:
    """Roll up samples to windows of one size; otherwise as `rollup_sizes`, without the columns of the partitions."""
    return rollup_sizes(samples, versions, [size], continued=continued).select(*ROLLUP_COLUMNS)


def rollup_sizes(
    samples: DataFrame, versions: Sequence[ClassVersion], sizes: Sequence[str], *, continued: bool = False
) -> DataFrame:
    """Roll up samples.

    Args:
        samples: of one class, as the data source returns them. A batch; a stream has them in
            `foreachBatch`. All samples of an object are in the memory of one executor at a time. Statistics of which
            columns are missing are left out.
        versions: of that class.
        sizes: of the windows, see `window_seconds`.
        continued: counters outlive restarts of their agents, as those do that an agent only forwards.

    Returns:
        the columns of the table of roll-ups; no rows for classes without numbers among their statistics.
    """
    present = set(samples.columns)
    members = [member for member in number_members(versions) if present.issuperset(member.columns)]
    seconds = {size: window_seconds(size) for size in sizes}
    base = base_seconds(sizes, UTC)
    package, name = versions[0].package, versions[0].name

    def work(connection: Any) -> Iterator[Any]:
        with roll_up(connection, _INPUT, members, package=package, name=name, seconds=base, continued=continued) as sql:
            if sql is None:
                return
            connection.execute(f"create temp table {_BASE} as {sql}")
        for size, length in seconds.items():
            rows = _BASE if length == base else f"({coarser_rows(_BASE, length)})"
            day = f"strftime(window_start, '%Y-%m-%d') as {DATE}"
            yield from duckdb_batches(connection, f"select {text(size)} as size, {day}, * from {rows}")

    if not members:
        return samples.sparkSession.createDataFrame([], _TABLE)
    columns = [name for name, _ in sample_columns(versions, members)]
    chosen = samples.where(F.col("_statistics")).select(*(F.col(f"`{name}`") for name in columns))
    return chosen.repartition("_agent", "_object").mapInArrow(_whole(work), _TABLE)


def coarser(finer: DataFrame, size: str) -> DataFrame:
    """Roll rows up to larger windows: the same rows as from the samples, exactly so for whole numbers.

    Args:
        finer: rows of one size, with the columns of the table of roll-ups.
        size: of the new windows: a multiple of the old size.
    """
    seconds = window_seconds(size)

    def work(connection: Any) -> Iterator[Any]:
        yield from duckdb_batches(connection, coarser_rows(_INPUT, seconds))

    return finer.select(*ROLLUP_COLUMNS).repartition(*KEY).mapInArrow(_whole(work), ROLLUP)


_INPUT, _BASE = "qmf_input", "qmf_base"


def _whole(work: Callable[[Any], Iterator[Any]]) -> Callable[[Iterable[Any]], Iterator[Any]]:
    """A function of `mapInArrow` that runs on a whole partition, which DuckDB has as a table."""

    def run(batches: Iterable[Any]) -> Iterator[Any]:
        found = [batch for batch in batches if batch.num_rows]
        if found:
            with closing(task_connection()) as connection:
                connection.register(_INPUT, import_pyarrow().Table.from_batches(found))
                yield from work(connection)

    return run
