"""The schemas of parts and tables. Every time has two columns: a timestamp in UTC, and all nanoseconds."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

_TEXT, _LONG, _BOOL, _TIME = T.StringType(), T.LongType(), T.BooleanType(), T.TimestampType()


def _struct(**fields: T.DataType) -> T.StructType:
    return T.StructType([T.StructField(name.rstrip("_"), kind) for name, kind in fields.items()])


_OBJECT: dict[str, T.DataType] = {"package": _TEXT, "class": _TEXT, "agent": _TEXT, "object": _TEXT}

#: Identifies one lifetime of an object. An object that is created again has another time of creation or epoch.
LIFE_KEY = ("package", "class", "agent", "object", "created_ns", "epoch")

#: The parts, by name.
PARTS: Mapping[str, T.StructType] = MappingProxyType(
    {
        # The time of a recorder's run, by its own clock.
        "runs": _struct(run=_TEXT, first_ns=_LONG, last_ns=_LONG),
        # The first and the last heartbeat of an agent in a run.
        "signs": _struct(
            agent=_TEXT, epoch=_LONG, run=_TEXT, first_seq=_LONG, first_ns=_LONG, last_seq=_LONG, last_ns=_LONG
        ),
        # Agents that were added, removed or restarted; without an agent, the recorder's own connection.
        "changes": _struct(
            run=_TEXT,
            seq=_LONG,
            received_ns=_LONG,
            agent=_TEXT,
            epoch=_LONG,
            change=_TEXT,
            reason=_TEXT,
            interval=T.DoubleType(),
        ),
        # The rows of an object's lifetime.
        "objects": _struct(
            **_OBJECT,
            created_ns=_LONG,
            epoch=_LONG,
            transient=_BOOL,
            first_ns=_LONG,
            last_ns=_LONG,
            received_ns=_LONG,
            deleted_ns=_LONG,
        ),
        # The properties in a message.
        "properties": _struct(
            **_OBJECT,
            created_ns=_LONG,
            epoch=_LONG,
            run=_TEXT,
            seq=_LONG,
            time_ns=_LONG,
            received_ns=_LONG,
            values=T.MapType(_TEXT, _TEXT),
        ),
    }
)

#: Events, each once.
EVENTS = _struct(
    event_id=_TEXT, time=_TIME, time_ns=_LONG, received_ns=_LONG, run=_TEXT, seq=_LONG, package=_TEXT, class_=_TEXT,
    hash=_TEXT, severity=T.ShortType(), agent=_TEXT, epoch=_LONG, object=_TEXT, arguments=_TEXT,
)  # fmt: skip

#: Calls, with their results.
CALLS = _struct(
    event_id=_TEXT, time=_TIME, time_ns=_LONG, agent=_TEXT, user=_TEXT, origin=_TEXT, operation=_TEXT, target=_TEXT,
    arguments=_TEXT, result=_TEXT, code=_LONG, text=_TEXT, results=_TEXT, duration_ns=_LONG, source=_TEXT,
)  # fmt: skip

#: The tables that are made from parts, by name.
TABLES: Mapping[str, T.StructType] = MappingProxyType(
    {
        "availability": _struct(
            agent=_TEXT,
            state=_TEXT,
            epoch=_LONG,
            cause=_TEXT,
            start=_TIME,
            start_ns=_LONG,
            end=_TIME,
            end_ns=_LONG,
            ongoing=_BOOL,
        ),
        "lives": _struct(
            **_OBJECT,
            created=_TIME,
            created_ns=_LONG,
            epoch=_LONG,
            first_seen=_TIME,
            first_seen_ns=_LONG,
            last_seen=_TIME,
            last_seen_ns=_LONG,
            ended=_TIME,
            ended_ns=_LONG,
            ended_by=_TEXT,
        ),
        "history": _struct(
            **_OBJECT,
            created_ns=_LONG,
            epoch=_LONG,
            property=_TEXT,
            value=_TEXT,
            previous=_TEXT,
            valid_from=_TIME,
            valid_from_ns=_LONG,
            valid_to=_TIME,
            valid_to_ns=_LONG,
            ended_by=_TEXT,
        ),
    }
)


def timestamp(time_ns: Column) -> Column:
    """A time in nanoseconds as a timestamp, truncated to microseconds."""
    return F.timestamp_micros(F.floor(time_ns / F.lit(1000)).cast(T.LongType()))


def conform(frame: DataFrame, schema: T.StructType) -> DataFrame:
    """Bring a frame into the order and types of a schema; a missing timestamp `x` is made from `x_ns`."""
    present = set(frame.columns)
    columns = [
        (F.col(field.name) if field.name in present else timestamp(F.col(f"{field.name}_ns")))
        .cast(field.dataType)
        .alias(field.name)
        for field in schema
    ]
    return frame.select(*columns)
