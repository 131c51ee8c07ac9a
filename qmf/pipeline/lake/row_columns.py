"""The columns that every row of one kind has, before those of its class. Arrow and Spark schemas are made from them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import Cell

Columns = tuple[tuple[str, Cell], ...]

#: The first columns of every row. `_run` is the run of a recorder that wrote the row, `_seq` the row's number in that
#: run, from 1 without a gap: unique together. `_ts` is the time of the sample or event by its sender's clock,
#: `_received_ns` the time of its arrival by the recorder's.
COMMON: Columns = (
    ("_run", Cell.TEXT),
    ("_seq", Cell.INT64),
    ("_ts", Cell.TIME),
    ("_ts_ns", Cell.INT64),
    ("_received_ns", Cell.INT64),
    ("_agent", Cell.TEXT),
    ("_epoch", Cell.INT64),
)

#: The columns after `COMMON`, by kind; objects and events continue with the columns of their class.
OWN: Mapping[RowKind, Columns] = MappingProxyType(
    {
        RowKind.OBJECTS: (
            ("_object", Cell.TEXT),
            ("_object_epoch", Cell.INT64),
            ("_create_ns", Cell.INT64),
            ("_delete_ns", Cell.INT64),
            ("_properties", Cell.BOOL),  # the message held properties; otherwise they are those of an earlier message
            ("_statistics", Cell.BOOL),  # the message held statistics; otherwise their columns are null
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

#: The columns after `OWN` where rows of all classes are read together: which class, and its values as a JSON object.
ANY: Columns = (("package", Cell.TEXT), ("class", Cell.TEXT), ("hash", Cell.TEXT), ("values", Cell.TEXT))

#: Folders between kind and files, outermost first. Spark reads them as columns, so their names must differ from those
#: of a class's values.
PARTITIONS = ("qmf_package", "qmf_class", "qmf_hash", "qmf_date")
