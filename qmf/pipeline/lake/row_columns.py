"""The columns that all rows of a kind have, before those of their class. Arrow and Spark schemas are made from them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ColumnType

Columns = tuple[tuple[str, ColumnType], ...]

#: The first columns of every row. `_run` is the run of the recorder that wrote the row, `_seq` the row's number in that
#: run, from 1 without a gap: unique together. `_ts` is the time of the sample or event by its sender's clock,
#: `_received_ns` the time of its arrival by the recorder's.
COMMON_COLUMNS: Columns = (
    ("_run", ColumnType.TEXT),
    ("_seq", ColumnType.INT64),
    ("_ts", ColumnType.TIME),
    ("_ts_ns", ColumnType.INT64),
    ("_received_ns", ColumnType.INT64),
    ("_agent", ColumnType.TEXT),
    ("_epoch", ColumnType.INT64),
)

#: The columns after `COMMON_COLUMNS`, by kind; objects and events continue with the columns of their class.
KIND_COLUMNS: Mapping[RowKind, Columns] = MappingProxyType(
    {
        RowKind.OBJECTS: (
            ("_object", ColumnType.TEXT),
            ("_object_epoch", ColumnType.INT64),
            ("_create_ns", ColumnType.INT64),
            ("_delete_ns", ColumnType.INT64),
            # The message held properties; otherwise they are those of an earlier message.
            ("_properties", ColumnType.BOOL),
            # The message held statistics; otherwise their columns are null.
            ("_statistics", ColumnType.BOOL),
        ),
        RowKind.EVENTS: (("_severity", ColumnType.INT16), ("_object", ColumnType.TEXT)),
        RowKind.UNTYPED: (
            ("event", ColumnType.BOOL),
            ("package", ColumnType.TEXT),
            ("class", ColumnType.TEXT),
            ("object", ColumnType.TEXT),
            ("severity", ColumnType.INT16),
            ("values", ColumnType.TEXT),
            # Why it has no schema.
            ("reason", ColumnType.TEXT),
        ),
        # An interval of an agent's heartbeats, of which `_ts_ns` is the last one; or of all agents since the row of all
        # before, without an agent.
        RowKind.HEARTBEATS: (
            ("interval", ColumnType.DOUBLE),
            # The first heartbeat; null where the last one is the only one.
            ("first_ns", ColumnType.INT64),
            ("count", ColumnType.INT64),
            # From the arrival of the last heartbeat to that of the row, `_received_ns`.
            ("silent_ns", ColumnType.INT64),
            # When the agent's next row comes at the latest, as long as none is missed; null at the interval's end.
            ("open_until_ns", ColumnType.INT64),
        ),
        RowKind.AGENTS: (("change", ColumnType.TEXT), ("reason", ColumnType.TEXT), ("interval", ColumnType.DOUBLE)),
        RowKind.SCHEMAS: (
            ("package", ColumnType.TEXT),
            ("class", ColumnType.TEXT),
            ("hash", ColumnType.TEXT),
            ("event", ColumnType.BOOL),
            ("columns", ColumnType.TEXT),
            ("xml", ColumnType.TEXT),
            # Path of the table, inside the lake, that has the rows of the class.
            ("table", ColumnType.TEXT),
        ),
        RowKind.GAPS: (
            ("reason", ColumnType.TEXT),
            ("subject", ColumnType.TEXT),
            ("count", ColumnType.INT64),
            # When the gap began; null where it is a moment.
            ("since_ns", ColumnType.INT64),
        ),
    }
)

#: The columns after `KIND_COLUMNS` where rows of all classes are read together: the class, and its values as a JSON
#: object.
ANY_CLASS_COLUMNS: Columns = (
    ("package", ColumnType.TEXT),
    ("class", ColumnType.TEXT),
    ("hash", ColumnType.TEXT),
    ("values", ColumnType.TEXT),
)

#: The kinds whose rows belong to a class.
CLASS_KINDS = (RowKind.OBJECTS, RowKind.EVENTS)

#: The column of a row's day in UTC, ``2030-01-31``, by which tables are partitioned.
DATE = "_date"

#: The column of tables of classes that tells versions apart; empty for a class without a hash.
HASH = "_hash"
