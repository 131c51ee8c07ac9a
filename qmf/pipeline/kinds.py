"""The tables that a lake has whatever the classes are, and the columns that every row of one kind begins with.

Nothing here knows Arrow or Spark; both schemas are made from these columns.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from types import MappingProxyType

from qmf.pipeline.members import Cell

Columns = tuple[tuple[str, Cell], ...]


class RowKind(enum.Enum):
    """What a row tells of; the value is the folder."""

    OBJECTS = "objects"  #: one sample of one object
    EVENTS = "events"
    UNTYPED = "untyped"  #: objects and events whose schema could not be learned
    HEARTBEATS = "heartbeats"
    AGENTS = "agents"  #: arrivals, departures, restarts
    SCHEMAS = "schemas"
    GAPS = "gaps"  #: what is missing: lost messages, connections and values


#: Which recorder run wrote the row, and its number in that run, from 1 without a gap: unique together.
#: `_ts` is when it happened by the clock of who told it, `_received_ns` when it came here.
COMMON: Columns = (
    ("_run", Cell.TEXT),
    ("_seq", Cell.INT64),
    ("_ts", Cell.TIME),
    ("_ts_ns", Cell.INT64),
    ("_received_ns", Cell.INT64),
    ("_agent", Cell.TEXT),
    ("_epoch", Cell.INT64),
)

#: What follows `COMMON`; objects and events go on with the columns of their class.
OWN: Mapping[RowKind, Columns] = MappingProxyType(
    {
        RowKind.OBJECTS: (
            ("_object", Cell.TEXT),
            ("_object_epoch", Cell.INT64),
            ("_create_ns", Cell.INT64),
            ("_delete_ns", Cell.INT64),
            ("_properties", Cell.BOOL),  # this row's message held properties; otherwise they are those known before
            ("_statistics", Cell.BOOL),  # this row's message held statistics; otherwise their columns are empty
        ),
        RowKind.EVENTS: (("_severity", Cell.INT16), ("_object", Cell.TEXT)),
        RowKind.UNTYPED: (
            ("event", Cell.BOOL),
            ("package", Cell.TEXT),
            ("class", Cell.TEXT),
            ("object", Cell.TEXT),
            ("severity", Cell.INT16),
            ("values", Cell.TEXT),
        ),
        RowKind.HEARTBEATS: (("interval", Cell.DOUBLE),),
        RowKind.AGENTS: (("change", Cell.TEXT), ("reason", Cell.TEXT), ("interval", Cell.DOUBLE)),
        RowKind.SCHEMAS: (
            ("package", Cell.TEXT),
            ("class", Cell.TEXT),
            ("hash", Cell.TEXT),
            ("event", Cell.BOOL),
            ("columns", Cell.TEXT),
            ("xml", Cell.TEXT),
        ),
        RowKind.GAPS: (("reason", Cell.TEXT), ("subject", Cell.TEXT), ("count", Cell.INT64)),
    }
)

#: What follows `OWN` where rows of all classes are read together: which class, and its columns as a JSON object.
ANY: Columns = (("package", Cell.TEXT), ("class", Cell.TEXT), ("hash", Cell.TEXT), ("values", Cell.TEXT))

#: Folders between kind and files, outermost first. They are columns when Spark reads the lake, so their names must
#: not be those of a class's values.
PARTITIONS = ("qmf_package", "qmf_class", "qmf_hash", "qmf_date")
