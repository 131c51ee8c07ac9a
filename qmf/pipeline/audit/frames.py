"""Lifetimes of objects in frames of Spark: executors run the statements of the audit.

A map makes parts of the rows, which Spark brings together by agent; a reduce on each share of the agents merges them
and makes the table. What is about recorders, a few rows for each of their runs, is collected and goes to all shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from functools import reduce
from typing import Any

import attrs
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from qmf.pipeline.audit import parts
from qmf.pipeline.audit.schemas import PARTS, TABLES, Columns, names
from qmf.pipeline.audit.state import PART, PRESENCE_PARTS, AuditState, columns_together, part_table, together
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.runners.runner import duckdb_batches
from qmf.pipeline.runners.spark_tasks import task_connection
from qmf.pipeline.spark_access.catalog import FrameClass

#: The parts that lifetimes are made of.
_PARTS: dict[str, Columns] = {name: PARTS[name] for name in (*PRESENCE_PARTS, "objects")}

_ROWS = "qmf_rows"

#: Rows that the map has in memory at once.
_PORTION = 250_000


def life_frame(given: Sequence[tuple[FrameClass, DataFrame]]) -> DataFrame:
    """The lifetimes of objects.

    Args:
        given: frames with their classes.

    Returns:
        the columns of the table of lifetimes.

    Raises:
        PipelineError: a frame is one of events, or none is of a class of objects.
    """
    wrong = [own.name for own, _frame in given if own.kind in (RowKind.EVENTS, RowKind.UNTYPED, RowKind.SCHEMAS)]
    if wrong:
        raise PipelineError(f"lives: rows of {', '.join(wrong)} say nothing about lifetimes")
    if not any(own.kind is RowKind.OBJECTS for own, _frame in given):
        raise PipelineError("lives: no samples of a class are given")
    made = [
        frame.mapInArrow(_PartMaker(own.kind, own.versions[0] if own.versions else None).parts, _spark_schema(_PARTS))
        for own, frame in given
    ]
    found = reduce(DataFrame.unionAll, made)
    of_recorders = F.col(PART).isin("runs") | F.col("change").isin(parts.DISCONNECTED, parts.CONNECTED)
    recorders = _merge_recorders(found.where(of_recorders).toArrow())
    reduced = _LifeMaker(recorders)
    shares = found.where(F.col(PART) != "runs").repartition("agent")
    return shares.mapInArrow(reduced.lifetimes, _spark_schema({"lives": TABLES["lives"]})).drop(PART)


@attrs.frozen
class _PartMaker:
    """The map.

    Attributes:
        kind: of the rows.
        version: of their class; None for rows without one.
    """

    kind: RowKind
    version: ClassVersion | None

    def parts(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The function of `mapInArrow`."""
        pa = import_pyarrow()
        with closing(task_connection()) as connection:
            state = AuditState(connection)
            waiting: list[Any] = []
            for batch in batches:
                waiting.append(batch)
                if sum(item.num_rows for item in waiting) >= _PORTION:
                    self._add(connection, state, pa.Table.from_batches(waiting))
                    waiting = []
            if waiting:
                self._add(connection, state, pa.Table.from_batches(waiting))
            yield from _part_batches(connection)

    def _add(self, connection: Any, state: AuditState, rows: Any) -> None:
        connection.register(_ROWS, rows)
        if self.version is not None:
            state.insert("objects", parts.objects(_ROWS, self.version))
        else:
            state.insert("runs", parts.runs(_ROWS))
            name, make = {
                RowKind.HEARTBEATS: ("signs", parts.signs),
                RowKind.AGENTS: ("changes", parts.arrivals),
                RowKind.GAPS: ("changes", parts.breaks),
            }[self.kind]
            state.insert(name, make(_ROWS))
        connection.unregister(_ROWS)
        state.fold(tuple(_PARTS))


@attrs.frozen
class _LifeMaker:
    """The reduce.

    Attributes:
        recorders: the parts about recorders, as an Arrow table.
    """

    recorders: Any

    def lifetimes(self, batches: Iterable[Any]) -> Iterator[Any]:
        """The function of `mapInArrow`."""
        with closing(task_connection()) as connection:
            state = AuditState(connection)
            _insert(connection, state, self.recorders)
            for batch in batches:
                _insert(connection, state, batch)
            state.fold(tuple(_PARTS))
            available = state.availability()
            made = state.object_tables(available)["lives"]
            yield from duckdb_batches(connection, together({"lives": made}, {"lives": TABLES["lives"]}))


def _insert(connection: Any, state: AuditState, rows: Any) -> None:
    connection.register(_ROWS, rows)
    for name, columns in _PARTS.items():
        state.insert(name, f"select {names(columns)} from {_ROWS} where {PART} = '{name}'")
    connection.unregister(_ROWS)


def _merge_recorders(recorders: Any) -> Any:
    """Parts about recorders, merged."""
    with closing(task_connection()) as connection:
        state = AuditState(connection)
        _insert(connection, state, recorders)
        state.fold(tuple(_PARTS))
        return import_pyarrow().Table.from_batches(list(_part_batches(connection)), recorders.schema)


def _part_batches(connection: Any) -> Iterator[Any]:
    yield from duckdb_batches(connection, together({name: part_table(name) for name in _PARTS}, _PARTS))


def _spark_schema(columns: dict[str, Columns]) -> Any:
    with closing(task_connection()) as connection:
        types = ", ".join(f'cast(null as {type}) as "{name}"' for name, type in columns_together(columns).items())
        return from_arrow_schema(connection.sql(f"select {types} limit 0").to_arrow_table().schema)
