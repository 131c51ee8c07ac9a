"""Parts: partial aggregates of a lake's rows, made from a whole lake or from a few new files.

`folded` merges parts with the same key. It is idempotent, and the order of rows and of merges doesn't matter. So the
tables of a stream, whose parts are merged batch by batch, are equal to those of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from qmf.pipeline.audit.schemas import EVENTS, LIFE_KEY, PARTS, conform
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.columns import ClassVersion, ColumnType, LakeColumn, MemberKind, MemberPart

#: Reasons in the table of gaps that are about the recorder's own connection.
DISCONNECTED, CONNECTED = "disconnected", "connected again"

_CLASS = ("package", "class", "hash")
_MAP = "map<string,string>"

_TEXT = T.StringType()
_COLUMN = T.StructType([T.StructField(name, _TEXT) for name in ("name", "property", "cell")])
_VERSIONS = T.StructType(
    [*(T.StructField(name, _TEXT) for name in _CLASS), T.StructField("columns", T.ArrayType(_COLUMN))]
)


def known_columns(spark: SparkSession, tables: Iterable[ClassVersion]) -> DataFrame:
    """The properties or arguments of each class version: what is needed to read the JSON of `Frames.any`."""
    rows: list[dict[str, object]] = [
        {
            **{"package": table.package, "class": table.name, "hash": table.hash},
            "columns": [
                {"name": column.name, "property": _property(column), "cell": column.column_type.value}
                for column in table.columns
                if column.kind is not MemberKind.STATISTIC and column.column_type is not ColumnType.TIME
            ],
        }
        for table in tables
    ]
    pa = import_pyarrow()
    # Spark keeps an Arrow table in the driver; rows of Python would be serialized again by each query.
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=to_arrow_schema(_VERSIONS)), _VERSIONS)


def runs(rows: DataFrame) -> DataFrame:
    """The time of each recorder's run, from rows of any kind."""
    found = rows.select(
        F.col("_run").alias("run"), F.col("_received_ns").alias("first_ns"), F.col("_received_ns").alias("last_ns")
    )
    return _fold_runs(conform(found, PARTS["runs"]))


def signs(heartbeats: DataFrame) -> DataFrame:
    """The first and last heartbeat of each agent in each run."""
    found = heartbeats.select(
        *(F.col("_agent").alias("agent"), _epoch(), F.col("_run").alias("run")),
        *(F.col("_seq").alias(f"{which}_seq") for which in ("first", "last")),
        *(F.col("_received_ns").alias(f"{which}_ns") for which in ("first", "last")),
    )
    return _fold_signs(conform(found, PARTS["signs"]))


def arrivals(agents: DataFrame) -> DataFrame:
    """Agents that were added, removed or restarted."""
    return conform(agents.select(*_numbered(), "change", "reason", "interval"), PARTS["changes"])


def breaks(gaps: DataFrame) -> DataFrame:
    """Losses and recoveries of the recorders' connections."""
    found = gaps.where(F.col("reason").isin(DISCONNECTED, CONNECTED)).select(
        *_numbered(),
        F.col("reason").alias("change"),
        F.col("subject").alias("reason"),
        F.lit(None).alias("interval"),
    )
    return conform(found, PARTS["changes"])


def objects(samples: DataFrame) -> DataFrame:
    """The lifetimes of objects, from samples as `Frames.any` returns them."""
    found = samples.select(
        *_life(),
        F.col("_object_epoch").isNotNull().alias("transient"),
        F.col("_ts_ns").alias("first_ns"),
        F.col("_ts_ns").alias("last_ns"),
        F.col("_received_ns").alias("received_ns"),
        F.when(F.col("_delete_ns") > 0, F.col("_delete_ns")).alias("deleted_ns"),
    )
    return _fold_objects(conform(found, PARTS["objects"]))


def properties(samples: DataFrame, known: DataFrame) -> DataFrame:
    """The properties in messages, as text.

    Args:
        samples: as `Frames.any` returns them.
        known: see `known_columns`.
    """
    found = _typed(samples.where(F.col("_properties")), known).select(
        *_life(),
        F.col("_run").alias("run"),
        F.col("_seq").alias("seq"),
        F.col("_ts_ns").alias("time_ns"),
        F.col("_received_ns").alias("received_ns"),
        F.col("typed").alias("values"),
    )
    return conform(found, PARTS["properties"])


def events(rows: DataFrame, known: DataFrame) -> DataFrame:
    """Events, as often as they were recorded, see `deduplicated`.

    Args:
        rows: as `Frames.any` returns them.
        known: see `known_columns`.
    """
    arguments = F.to_json(F.map_filter("typed", lambda _name, value: value.isNotNull()))
    return _events(
        _typed(rows, known).select(
            *_numbered(),
            F.col("_ts_ns").alias("time_ns"),
            *_CLASS,
            F.col("_severity").alias("severity"),
            F.col("_object").alias("object"),
            arguments.alias("arguments"),
        )
    )


def untyped_events(rows: DataFrame) -> DataFrame:
    """Events whose schema is unknown."""
    found = rows.where(F.col("event")).select(
        *_numbered(),
        F.col("_ts_ns").alias("time_ns"),
        "package",
        "class",
        F.lit("").alias("hash"),
        "severity",
        "object",
        F.col("values").alias("arguments"),
    )
    return _events(found)


def deduplicated(events: DataFrame) -> DataFrame:
    """Each event once: its first record.

    An event arrives twice when an agent repeats it after a lost connection, and when two recorders write one lake.
    Events are the same when agent, class, time to the nanosecond, severity and arguments are.
    """
    names = [name for name in EVENTS.fieldNames() if name != "event_id"]
    row = F.min(F.struct(*_ARRIVAL, *(name for name in names if name not in _ARRIVAL)))
    kept = events.groupBy("event_id").agg(row.alias("row"))
    return conform(kept.select("event_id", *(F.col(f"row.{name}").alias(name) for name in names)), EVENTS)


def folded(name: str, parts: DataFrame) -> DataFrame:
    """Parts of one name, merged to one row per key."""
    return conform(_FOLDS[name](parts), PARTS[name])


#: The columns that order the records of an event.
_ARRIVAL = ("received_ns", "run", "seq")


def _fold_runs(parts: DataFrame) -> DataFrame:
    return parts.groupBy("run").agg(F.min("first_ns").alias("first_ns"), F.max("last_ns").alias("last_ns"))


def _fold_signs(parts: DataFrame) -> DataFrame:
    return parts.groupBy("agent", "epoch", "run").agg(
        F.min("first_seq").alias("first_seq"),
        F.min_by("first_ns", "first_seq").alias("first_ns"),
        F.max("last_seq").alias("last_seq"),
        F.max_by("last_ns", "last_seq").alias("last_ns"),
    )


def _fold_objects(parts: DataFrame) -> DataFrame:
    return parts.groupBy(*LIFE_KEY).agg(
        F.max("transient").alias("transient"),
        F.min("first_ns").alias("first_ns"),
        F.max("last_ns").alias("last_ns"),
        F.max("received_ns").alias("received_ns"),
        F.min("deleted_ns").alias("deleted_ns"),
    )


def _each_row_once(parts: DataFrame) -> DataFrame:
    return parts.dropDuplicates(["run", "seq"])


_FOLDS: Mapping[str, Callable[[DataFrame], DataFrame]] = MappingProxyType(
    {
        "runs": _fold_runs,
        "signs": _fold_signs,
        "changes": _each_row_once,
        "objects": _fold_objects,
        "properties": _each_row_once,
    }
)


def _numbered() -> list[Column]:
    """The origin of a row, under the names that parts use."""
    names = {"_run": "run", "_seq": "seq", "_received_ns": "received_ns", "_agent": "agent"}
    return [*(F.col(name).alias(alias) for name, alias in names.items()), _epoch()]


def _epoch() -> Column:
    """The epoch; null where an agent is known by its name only, which is recorded as 0."""
    return F.nullif("_epoch", F.lit(0)).alias("epoch")


def _life() -> list[Column]:
    """`LIFE_KEY` of samples. Unknown values are 0: a null would be unequal to itself."""
    values = {
        "agent": F.col("_agent"),
        "object": F.col("_object"),
        "created_ns": F.coalesce("_create_ns", F.lit(0)),
        "epoch": F.coalesce("_object_epoch", F.lit(0)),
    }
    return [values.get(name, F.col(name)).alias(name) for name in LIFE_KEY]


def _typed(rows: DataFrame, known: DataFrame) -> DataFrame:
    """Add `typed`: all values of a class by name as text, null or not, in the same form whatever wrote the JSON."""
    found = rows.join(F.broadcast(known), list(_CLASS), "left").withColumn("text", F.from_json("values", _MAP))

    def entry(column: Column) -> Column:
        text = F.element_at(F.col("text"), column["name"])
        # The only types whose values have more than one text.
        value = (
            F.when(column["cell"] == ColumnType.FLOAT.value, text.cast("float").cast("string"))
            .when(column["cell"] == ColumnType.DOUBLE.value, text.cast("double").cast("string"))
            .otherwise(text)
        )
        return F.struct(column["property"], value)

    return found.withColumn("typed", F.map_from_entries(F.transform("columns", entry)))


def _events(frame: DataFrame) -> DataFrame:
    """Events with their id, which ignores the epoch: a recorder may not know that yet."""
    identity = ("agent", *_CLASS, "severity", "time_ns", "object", "arguments")
    parts = (F.coalesce(F.col(name).cast("string"), F.lit("")) for name in identity)
    return conform(frame.withColumn("event_id", F.sha2(F.to_json(F.array(*parts)), 256)), EVENTS)


def _property(column: LakeColumn) -> str:
    """The name of the property: a time is stored under another name."""
    return column.member if column.part is MemberPart.NANOSECONDS else column.name
