"""The job `audit` over a lake, as a batch or as a stream. Both make the same tables with the same functions.

::

    OUT/events, OUT/calls                     a batch: by day; a stream: each event once
    OUT/availability, OUT/lives, OUT/history  replaced as a whole
    OUT/parts                                 a stream's merged parts up to its last batch

The cost of a stream's batch depends on the number of agents, objects and changes so far, not on the number of samples.
A stream that is killed at any moment can be started again: each batch is committed once to each table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial, reduce

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from qmf.pipeline.audit import parts
from qmf.pipeline.audit.availability import availability
from qmf.pipeline.audit.calls import calls
from qmf.pipeline.audit.history import history
from qmf.pipeline.audit.lives import lives
from qmf.pipeline.audit.schemas import EVENTS, PARTS
from qmf.pipeline.frames import Frames
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.row_columns import DATE
from qmf.pipeline.spark import catalog, sinks
from qmf.pipeline.spark.batch_progress import PrintLine
from qmf.pipeline.spark.multi_kind_source import KIND_COLUMN, read_kinds

#: The kinds of rows that show the presence of agents and recorders.
_PRESENCE = (RowKind.HEARTBEATS, RowKind.AGENTS, RowKind.GAPS)

#: The kinds of rows that each of the two queries of a stream reads.
_EVENT_KINDS = (RowKind.EVENTS, RowKind.UNTYPED)
_PART_KINDS = (RowKind.OBJECTS, *_PRESENCE)

_PART = "part"

#: The names of the two queries of a stream: the writers of their tables.
_EVENTS_QUERY, _PARTS_QUERY = "audit events", "audit"


@attrs.frozen
class AuditOptions:
    """Options of an audit.

    Attributes:
        lake: path or URL.
        out: folder of the tables.
        storage: options of the object stores of both.
    """

    lake: str
    out: str
    storage: Mapping[str, str] = attrs.field(factory=dict)

    def table(self, name: str) -> LakeTable:
        """One of the tables."""
        return LakeTable(f"{self.out}/{name}", self.storage)


def make_tables(found: Mapping[str, DataFrame], keep: Callable[[str, DataFrame], DataFrame]) -> dict[str, DataFrame]:
    """Make the tables from parts.

    Args:
        found: merged parts by name.
        keep: called with name and frame of each table; stores the rows and returns a frame of them. A table is made
            from those before it, which would be computed again otherwise.

    Returns:
        `schemas.TABLES` by name, as returned by `keep`.
    """
    presence = keep("availability", availability(found["runs"], found["signs"], found["changes"]))
    lived = keep("lives", lives(found["objects"], presence))
    return {"availability": presence, "lives": lived, "history": keep("history", history(found["properties"], lived))}


def make_parts(rows: Mapping[RowKind, DataFrame], known: DataFrame) -> dict[str, DataFrame]:
    """Make parts by name from some rows: samples as `Frames.any` returns them, heartbeats, agents and gaps.

    Args:
        rows: by kind.
        known: see `qmf.pipeline.audit.parts.known_columns`.
    """
    common = [rows[kind].select("_run", "_received_ns") for kind in _PRESENCE]
    return {
        "runs": parts.runs(reduce(DataFrame.unionByName, common)),
        "signs": parts.signs(rows[RowKind.HEARTBEATS]),
        "changes": parts.arrivals(rows[RowKind.AGENTS]).unionByName(parts.breaks(rows[RowKind.GAPS])),
        "objects": parts.objects(rows[RowKind.OBJECTS]),
        "properties": parts.properties(rows[RowKind.OBJECTS], known),
    }


def audit_batch(spark: SparkSession, options: AuditOptions, print_line: PrintLine) -> dict[str, int]:
    """Audit a whole lake.

    Returns:
        rows of each table.

    Raises:
        LakeError: there is no lake.
    """
    frames = Frames(spark, options.lake, options=options.storage)
    known = parts.known_columns(spark, catalog.class_versions(options.lake, options.storage))
    counts: dict[str, int] = {}

    def write(name: str, frame: DataFrame, by: str | None = None) -> DataFrame:
        written = _write(frame, options.table(name), by)
        counts[name] = written.count()
        print_line(f"{name}: {counts[name]} rows")
        return written

    # Checkpoints shorten the plans: a lake of many classes is a union of many frames, and planning that for each use
    # would cost more than the work.
    events = parts.deduplicated(_all_events(frames, known)).localCheckpoint()
    write("events", events, "time")
    write("calls", calls(events), "time")
    rows = {kind: frames.table(kind) for kind in _PRESENCE} | {RowKind.OBJECTS: frames.any(RowKind.OBJECTS)}
    found = {name: parts.folded(name, part).localCheckpoint() for name, part in make_parts(rows, known).items()}
    make_tables(found, write)
    return counts


def audit_stream(
    spark: SparkSession, options: AuditOptions, *, every: str = "1 minute", once: bool = False
) -> list[StreamingQuery]:
    """Start the audit of a lake as it grows.

    Args:
        spark: to run on.
        options: of the audit.
        every: time from micro-batch to micro-batch.
        once: end when everything is read that is in the lake now.

    Returns:
        the running queries: one for events, one for all other tables.

    Raises:
        LakeError: there is no lake.
    """
    catalog.class_versions(options.lake, options.storage)
    frames = Frames(spark, options.lake, stream=True, options=options.storage)
    parts_table = _PartsTable(options)
    shared = {"every": every, "once": once}
    return [
        sinks.start_stream(
            _rows(frames, _EVENT_KINDS),
            options.table("events").url,
            name=_EVENTS_QUERY,
            write=partial(_write_events, options),
            **shared,  # type: ignore[arg-type]
        ),
        sinks.start_stream(
            _rows(frames, _PART_KINDS),
            options.table("parts").url,
            name=_PARTS_QUERY,
            write=parts_table.write,
            **shared,  # type: ignore[arg-type]
        ),
    ]


def _all_events(frames: Frames, known: DataFrame) -> DataFrame:
    typed = parts.events(frames.any(RowKind.EVENTS), known)
    return typed.unionByName(parts.untyped_events(frames.table(RowKind.UNTYPED)))


def _write(frame: DataFrame, table: LakeTable, by: str | None = None) -> DataFrame:
    """Replace a table as a whole, partitioned by day where `by` is a time; returns its rows."""
    if by:
        sinks.overwrite(sinks.with_date(frame, by), table, by=(DATE,), whole=True)
    else:
        sinks.overwrite(frame, table, whole=True)
    # Reading it back costs less than computing it twice.
    written = sinks.read_table(frame.sparkSession, table)
    assert written is not None
    return written.select(*frame.columns)


# -- a stream's batches


def _rows(frames: Frames, kinds: tuple[RowKind, ...]) -> DataFrame:
    """Rows of several kinds as one stream, distinguished by `KIND_COLUMN`."""
    return read_kinds(frames.spark, frames.lake, kinds, frames.options)


def _of_kind(batch: DataFrame, kind: RowKind) -> DataFrame:
    return batch.where(F.col(KIND_COLUMN) == kind.value)


def _known(batch: DataFrame, options: AuditOptions) -> DataFrame:
    """The columns of all classes; read again for each batch, as the lake may have new classes."""
    spark = batch.sparkSession
    found: list[ClassVersion] = catalog.class_versions(options.lake, options.storage)
    return parts.known_columns(spark, found)


def _write_events(options: AuditOptions, batch: DataFrame, number: int) -> None:
    """Add the new events of a batch to their table, and the calls among them to theirs."""
    events = _new_events(options, batch, number).persist()
    try:
        sinks.append_once(events, options.table("events"), _EVENTS_QUERY, number)
        sinks.append_once(calls(events).coalesce(1), options.table("calls"), _EVENTS_QUERY, number)
    finally:
        events.unpersist()


def _new_events(options: AuditOptions, batch: DataFrame, number: int) -> DataFrame:
    typed = parts.events(_of_kind(batch, RowKind.EVENTS), _known(batch, options))
    events = parts.deduplicated(typed.unionByName(parts.untyped_events(_of_kind(batch, RowKind.UNTYPED))))
    before = sinks.read_before(batch.sparkSession, options.table("events"), number)
    if before is None:
        return events
    # Parquet files have statistics of their times, so only those of the same time are read.
    times = events.agg(F.min("time_ns"), F.max("time_ns")).first()
    if times is None or times[0] is None:
        return events
    near = before.where(F.col("time_ns").between(times[0], times[1])).select("event_id")
    return events.join(near, "event_id", "left_anti").select(*EVENTS.fieldNames())


class _PartsTable:
    """The parts of a stream, and the tables that are made from them."""

    def __init__(self, options: AuditOptions) -> None:
        self._options = options
        self._table = options.table("parts")

    def write(self, batch: DataFrame, number: int) -> None:
        """Merge a batch with the parts of those before it, and make the tables from them."""
        # It is read several times, but only once from the lake.
        batch.persist()
        try:
            sinks.replace_once(self._merged(batch, number), self._table, _PARTS_QUERY, number)
        finally:
            batch.unpersist()
        written = sinks.read_table(batch.sparkSession, self._table)
        assert written is not None
        found = {name: _part(written, name) for name in PARTS}
        make_tables(found, lambda name, frame: _write(frame, self._options.table(name)))

    def _merged(self, batch: DataFrame, number: int) -> DataFrame:
        """All parts up to a batch, in one frame."""
        rows = {kind: _of_kind(batch, kind) for kind in _PART_KINDS}
        found = make_parts(rows, _known(batch, self._options))
        last = sinks.read_before(batch.sparkSession, self._table, number)
        if last is not None:
            found = {name: part.unionByName(_part(last, name)) for name, part in found.items()}
        each = [parts.folded(name, part).withColumn(_PART, F.lit(name)) for name, part in found.items()]
        return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), each).coalesce(1)


def _part(frame: DataFrame, name: str) -> DataFrame:
    return frame.where(F.col(_PART) == name).select(*PARTS[name].fieldNames())
