"""Lifetimes of objects in frames of Spark: executors run the statements of the audit.

A map makes parts of the rows, which Spark brings together by agent; a reduce on each share of the agents merges them
and makes the table. What is about recorders, a few rows for each of their runs, is collected and goes to all shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from qmf.pipeline.audit import parts
from qmf.pipeline.audit.schemas import PARTS, TABLES, Columns, arrow_schema
from qmf.pipeline.audit.state import (
    PART,
    PRESENCE_PARTS,
    AuditState,
    columns_together,
    part_table,
    queries_of,
    together,
)
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import import_pyarrow, table_portions
from qmf.pipeline.runners.runner import duckdb_batches
from qmf.pipeline.runners.spark_tasks import task_connection
from qmf.pipeline.spark_access.data_source import FrameClass

#: The parts that lifetimes are made of, and what is made of them.
_PARTS: dict[str, Columns] = {name: PARTS[name] for name in (*PRESENCE_PARTS, "objects")}
_LIVES: dict[str, Columns] = {"lives": TABLES["lives"]}

_ROWS = "qmf_rows"

#: Rows that the map has in memory at once.
_PORTION = 250_000


def life_frame(given: Sequence[tuple[FrameClass, DataFrame]]) -> DataFrame:
    """The lifetimes of objects, with the columns of their table.

    Raises:
        PipelineError: a frame is one of events, or none is of a class of objects.
    """
    wrong = [own.name for own, _frame in given if own.kind in (RowKind.EVENTS, RowKind.UNTYPED, RowKind.SCHEMAS)]
    if wrong:
        raise PipelineError(f"lives: rows of {', '.join(wrong)} say nothing about lifetimes")
    if not any(own.kind is RowKind.OBJECTS for own, _frame in given):
        raise PipelineError("lives: no samples of a class are given")
    made = [frame.mapInArrow(partial(_map_parts, own), _spark_schema(_PARTS)) for own, frame in given]
    found = reduce(DataFrame.unionAll, made)
    of_recorders = F.col(PART).isin("runs") | F.col("change").isin(parts.DISCONNECTED, parts.CONNECTED)
    recorders = _merge_recorders(found.where(of_recorders).toArrow())
    shares = found.where(F.col(PART) != "runs").repartition("agent")
    return shares.mapInArrow(partial(_lifetimes, recorders), _spark_schema(_LIVES)).drop(PART)


def _map_parts(own: FrameClass, batches: Iterable[Any]) -> Iterator[Any]:
    """The map: parts of the rows of a frame."""
    with closing(task_connection()) as connection:
        state = AuditState(connection)
        for rows in table_portions(batches, _PORTION):
            connection.register(_ROWS, rows)
            for name, query in queries_of(own.kind, _ROWS, own.versions[0] if own.versions else None).items():
                if name in _PARTS:
                    state.insert(name, query)
            connection.unregister(_ROWS)
            state.fold(_PARTS)
        yield from _part_batches(connection)


def _lifetimes(recorders: Any, batches: Iterable[Any]) -> Iterator[Any]:
    """The reduce, with the parts about recorders as an Arrow table."""
    with closing(task_connection()) as connection:
        state = _state(connection, [recorders, *batches])
        made = state.object_tables(state.availability())["lives"]
        yield from duckdb_batches(connection, together({"lives": made}, _LIVES))


def _merge_recorders(recorders: Any) -> Any:
    """Parts about recorders, merged."""
    with closing(task_connection()) as connection:
        _state(connection, [recorders])
        return import_pyarrow().Table.from_batches(list(_part_batches(connection)), recorders.schema)


def _state(connection: Any, given: Iterable[Any]) -> AuditState:
    """The merged parts of Arrow tables or record batches."""
    state = AuditState(connection)
    for rows in given:
        state.insert_all(rows, _PARTS)
    state.fold(_PARTS)
    return state


def _part_batches(connection: Any) -> Iterator[Any]:
    yield from duckdb_batches(connection, together({name: part_table(name) for name in _PARTS}, _PARTS))


def _spark_schema(columns: dict[str, Columns]) -> Any:
    return from_arrow_schema(arrow_schema(columns_together(columns)))
