"""The job `audit` on Spark: executors read the files of the lake and make parts, and tables of these, by DuckDB.

The parts of objects are shuffled by object, those of events by event, so that each executor makes its share of the
tables. Only the parts about the presence of agents, a few rows for each start of an agent, come to the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qmf.pipeline.audit.job import DATED, replace_table
from qmf.pipeline.audit.options import AuditOptions
from qmf.pipeline.audit.schemas import ALL_TABLES, EVENTS, PARTS, TABLES, Columns
from qmf.pipeline.audit.state import (
    EVENT_PART,
    OBJECT_PARTS,
    PART,
    PRESENCE_PARTS,
    AuditState,
    columns_together,
    part_table,
    together,
)
from qmf.pipeline.audit.stream import AuditStream
from qmf.pipeline.duckdb_queries import duckdb_errors
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.location import absolute
from qmf.pipeline.lake.row_columns import DATE
from qmf.pipeline.lake.table_files import FilesByTable, in_portions
from qmf.pipeline.rollup.frames import arrow_batches, executor_connection
from qmf.pipeline.spark import sinks
from qmf.pipeline.spark.tasks import run_tasks

#: Rows of a task.
TASK_ROWS = 2_000_000

_MADE_BY_TASKS: Mapping[str, Columns] = {**PARTS, EVENT_PART: EVENTS}
_EVENT_TABLES = {name: ALL_TABLES[name] for name in DATED}
_OBJECT_TABLES = {name: columns for name, columns in TABLES.items() if name != "availability"}

_SPARK_TYPES = {"timestamptz": "timestamp", "varchar": "string", "map(varchar, varchar)": "map<string, string>"}


@attrs.frozen
class PartsTask:
    """A piece of work: the parts of some files.

    Attributes:
        lake: absolute path or URL.
        storage: options of its object store.
        files: of the lake.
    """

    lake: str
    storage: Mapping[str, str]
    files: FilesByTable

    def run(self) -> Iterator[Any]:
        """Record batches with `PARTS` and `EVENTS`, told apart by a column.

        Raises:
            LakeError: a table or a file of the lake is not on this machine, or cannot be read.
        """
        with closing(executor_connection()) as connection, duckdb_errors(self.lake):
            state = AuditState(connection)
            state.add(DeltaLake(self.lake, self.storage), self.files)
            state.fold()
            tables = {**{name: part_table(name) for name in PARTS}, EVENT_PART: state.events()}
            yield from arrow_batches(connection, together(tables, _MADE_BY_TASKS))


def audit_on_spark(spark: SparkSession, options: AuditOptions, print_line: Callable[[str], None]) -> dict[str, int]:
    """Audit a whole lake.

    Args:
        spark: to run on; its executors read the lake and write the tables themselves.
        options: of the audit.
        print_line: called for each table that is written.

    Returns:
        rows of each table.

    Raises:
        LakeError: there is no lake, a file cannot be read, or a table cannot be written.
    """
    lake = DeltaLake(options.lake, options.storage)
    lake.class_versions()  # refuses what is no lake
    parts = _parts(spark, options, {path: lake.table(path).snapshot().files for path in lake.paths()}).persist()
    counts: dict[str, int] = {}

    def write(name: str, frame: DataFrame) -> None:
        own = frame.where(F.col(PART) == name).select(*ALL_TABLES[name])
        if name in DATED:
            counts[name] = sinks.overwrite(sinks.with_date(own, "time"), options.table(name), by=(DATE,), whole=True)
        else:
            counts[name] = sinks.overwrite(own, options.table(name), whole=True)
        print_line(f"{name}: {counts[name]} rows")

    try:
        events = _events(parts).persist()
        for name in _EVENT_TABLES:
            write(name, events)
        events.unpersist()
        with closing(executor_connection()) as connection:
            available = _availability(connection, parts)
            counts["availability"] = available.num_rows
            replace_table(connection, options, "availability", "qmf_available")
        print_line(f"availability: {available.num_rows} rows")
        objects = _objects(parts, available).persist()
        for name in _OBJECT_TABLES:
            write(name, objects)
        objects.unpersist()
    finally:
        parts.unpersist()
    return counts


class SparkAuditStream(AuditStream):
    """A stream whose executors make the parts of new files; see `AuditStream`. The driver merges them."""

    def __init__(self, options: AuditOptions, spark: SparkSession) -> None:
        """As of `AuditStream`; `spark` is what to run on."""
        super().__init__(options)
        self._spark = spark

    def _add(self, files: FilesByTable) -> None:
        for batch in _parts(self._spark, self._options, files).toArrow().to_batches():
            self._state.insert_all(batch)


def _parts(spark: SparkSession, options: AuditOptions, files: FilesByTable) -> DataFrame:
    return run_tasks(spark, make_tasks(options, files), PartsTask.run, _declared(_MADE_BY_TASKS))


def make_tasks(options: AuditOptions, files: FilesByTable) -> list[PartsTask]:
    """The pieces of the work on some files, of `TASK_ROWS` rows each, about."""
    lake = absolute(options.lake)
    return [PartsTask(lake, options.storage, own) for own in in_portions(files, TASK_ROWS)]


def _events(parts: DataFrame) -> DataFrame:
    """Events, each once, and calls."""

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        with closing(executor_connection()) as connection:
            state = AuditState(connection)
            for batch in batches:
                state.insert_all(batch)
            events = state.events()
            tables = {"events": events, "calls": state.calls(events)}
            yield from arrow_batches(connection, together(tables, _EVENT_TABLES))

    own = parts.where(F.col(PART) == EVENT_PART).repartition("event_id")
    return own.mapInArrow(work, _declared(_EVENT_TABLES))


def _availability(connection: Any, parts: DataFrame) -> Any:
    """The availability of agents as an Arrow table, which the connection has as ``qmf_available``."""
    state = AuditState(connection)
    state.insert_all(parts.where(F.col(PART).isin(*PRESENCE_PARTS)).toArrow())
    state.fold(PRESENCE_PARTS)
    found = connection.sql(f"from {state.availability()}").to_arrow_table()
    connection.register("qmf_available", found)
    return found


def _objects(parts: DataFrame, available: Any) -> DataFrame:
    """Lifetimes and history."""

    def work(batches: Iterable[Any]) -> Iterator[Any]:
        with closing(executor_connection()) as connection:
            state = AuditState(connection)
            for batch in batches:
                state.insert_all(batch)
            state.fold(OBJECT_PARTS)
            connection.register("qmf_available", available)
            yield from arrow_batches(connection, together(state.object_tables("qmf_available"), _OBJECT_TABLES))

    own = parts.where(F.col(PART).isin(*OBJECT_PARTS)).repartition("package", "class", "agent", "object")
    return own.mapInArrow(work, _declared(_OBJECT_TABLES))


def _declared(columns: Mapping[str, Columns]) -> str:
    """The columns of `together`, as Spark declares them."""
    each = columns_together(columns).items()
    return ", ".join(f"`{name}` {_SPARK_TYPES.get(type, type)}" for name, type in each)
