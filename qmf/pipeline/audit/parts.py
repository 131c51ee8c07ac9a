"""Rows of a lake as parts. Functions of some rows only, so that parts can be made of a lake or of a few new files.

`folded` joins parts that tell of one thing. It is idempotent, and the order of rows and of foldings doesn't matter;
that is what makes tables of a stream, whose parts are folded batch by batch, equal those of a batch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T
from pyspark.sql.pandas.types import to_arrow_schema

from qmf.pipeline.audit.schemas import EVENTS, LIFE_KEY, PARTS, shaped
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.columns import ClassVersion, ColumnType, LakeColumn, MemberKind, MemberPart

#: Reasons in the table of gaps that tell of the recorder's own connection.
DISCONNECTED, CONNECTED = "disconnected", "connected again"

_CLASS = ("package", "class", "hash")
_MAP = "map<string,string>"

_TEXT = T.StringType()
_COLUMN = T.StructType([T.StructField(name, _TEXT) for name in ("name", "property", "cell")])
_KNOWN = T.StructType(
    [*(T.StructField(name, _TEXT) for name in _CLASS), T.StructField("columns", T.ArrayType(_COLUMN))]
)


def known(spark: SparkSession, tables: Iterable[ClassVersion]) -> DataFrame:
    """What is needed to read the JSON of `Frames.any`: the properties or arguments of each version of each class."""
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
    # The driver holds it: rows of Python's would be sent and read again by each query.
    return spark.createDataFrame(pa.Table.from_pylist(rows, schema=to_arrow_schema(_KNOWN)), _KNOWN)


def runs(rows: DataFrame) -> DataFrame:
    """When recorders were listening, as rows of any kind show."""
    told = rows.select(
        F.col("_run").alias("run"), F.col("_received_ns").alias("first_ns"), F.col("_received_ns").alias("last_ns")
    )
    return _fold_runs(shaped(told, PARTS["runs"]))


def signs(heartbeats: DataFrame) -> DataFrame:
    """The first and last heartbeat of each agent in each run."""
    told = heartbeats.select(
        *(F.col("_agent").alias("agent"), _epoch(), F.col("_run").alias("run")),
        *(F.col("_seq").alias(f"{which}_seq") for which in ("first", "last")),
        *(F.col("_received_ns").alias(f"{which}_ns") for which in ("first", "last")),
    )
    return _fold_signs(shaped(told, PARTS["signs"]))


def arrivals(agents: DataFrame) -> DataFrame:
    """Agents that came, went or started anew."""
    return shaped(agents.select(*_numbered(), "change", "reason", "interval"), PARTS["changes"])


def breaks(gaps: DataFrame) -> DataFrame:
    """Losses and returns of the recorders' connections."""
    told = gaps.where(F.col("reason").isin(DISCONNECTED, CONNECTED)).select(
        *_numbered(),
        F.col("reason").alias("change"),
        F.col("subject").alias("reason"),
        F.lit(None).alias("interval"),
    )
    return shaped(told, PARTS["changes"])


def objects(samples: DataFrame) -> DataFrame:
    """What samples, as `Frames.any` gives them, tell of the lives of objects."""
    told = samples.select(
        *_life(),
        F.col("_object_epoch").isNotNull().alias("transient"),
        F.col("_ts_ns").alias("first_ns"),
        F.col("_ts_ns").alias("last_ns"),
        F.col("_received_ns").alias("received_ns"),
        F.when(F.col("_delete_ns") > 0, F.col("_delete_ns")).alias("deleted_ns"),
    )
    return _fold_objects(shaped(told, PARTS["objects"]))


def properties(samples: DataFrame, known: DataFrame) -> DataFrame:
    """The properties that messages held, as text.

    Args:
        samples: as `Frames.any` gives them.
        known: of their classes.
    """
    told = _typed(samples.where(F.col("_properties")), known).select(
        *_life(),
        F.col("_run").alias("run"),
        F.col("_seq").alias("seq"),
        F.col("_ts_ns").alias("time_ns"),
        F.col("_received_ns").alias("received_ns"),
        F.col("typed").alias("values"),
    )
    return shaped(told, PARTS["properties"])


def events(rows: DataFrame, known: DataFrame) -> DataFrame:
    """Events, still as often as they were recorded, see `once`.

    Args:
        rows: as `Frames.any` gives them.
        known: of their classes.
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
    """Events whose schema no agent told."""
    told = rows.where(F.col("event")).select(
        *_numbered(),
        F.col("_ts_ns").alias("time_ns"),
        "package",
        "class",
        F.lit("").alias("hash"),
        "severity",
        "object",
        F.col("values").alias("arguments"),
    )
    return _events(told)


def once(events: DataFrame) -> DataFrame:
    """Each event once: as it was recorded first.

    An event may arrive twice, when an agent isn't sure that the first got through; and two recorders write it twice.
    It is the same when agent, class, time to the nanosecond, severity and arguments are.
    """
    names = [name for name in EVENTS.fieldNames() if name != "event_id"]
    row = F.min(F.struct(*_ARRIVAL, *(name for name in names if name not in _ARRIVAL)))
    kept = events.groupBy("event_id").agg(row.alias("row"))
    return shaped(kept.select("event_id", *(F.col(f"row.{name}").alias(name) for name in names)), EVENTS)


def folded(name: str, parts: DataFrame) -> DataFrame:
    """Parts of one name, with one row for each thing that they tell of."""
    return shaped(_FOLDS[name](parts), PARTS[name])


#: What says which of several records came first.
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
    """Where a row comes from, under the names that parts use."""
    names = {"_run": "run", "_seq": "seq", "_received_ns": "received_ns", "_agent": "agent"}
    return [*(F.col(name).alias(alias) for name, alias in names.items()), _epoch()]


def _epoch() -> Column:
    """The epoch; an agent that is known by its name only is recorded with 0."""
    return F.nullif("_epoch", F.lit(0)).alias("epoch")


def _life() -> list[Column]:
    """`LIFE_KEY` of samples. What isn't told is 0: a null would be unequal to itself."""
    values = {
        "agent": F.col("_agent"),
        "object": F.col("_object"),
        "created_ns": F.coalesce("_create_ns", F.lit(0)),
        "epoch": F.coalesce("_object_epoch", F.lit(0)),
    }
    return [values.get(name, F.col(name)).alias(name) for name in LIFE_KEY]


def _typed(rows: DataFrame, known: DataFrame) -> DataFrame:
    """Add `typed`: the values of a class by name as text, the same whoever wrote the JSON; all of them, null or not."""
    found = rows.join(F.broadcast(known), list(_CLASS), "left").withColumn("text", F.from_json("values", _MAP))

    def entry(column: Column) -> Column:
        text = F.element_at(F.col("text"), column["name"])
        # The only numbers that can be written in more than one way.
        value = (
            F.when(column["cell"] == ColumnType.FLOAT.value, text.cast("float").cast("string"))
            .when(column["cell"] == ColumnType.DOUBLE.value, text.cast("double").cast("string"))
            .otherwise(text)
        )
        return F.struct(column["property"], value)

    return found.withColumn("typed", F.map_from_entries(F.transform("columns", entry)))


def _events(frame: DataFrame) -> DataFrame:
    """Events with their id; without the epoch, which a recorder may not know yet."""
    told = ("agent", *_CLASS, "severity", "time_ns", "object", "arguments")
    parts = (F.coalesce(F.col(name).cast("string"), F.lit("")) for name in told)
    return shaped(frame.withColumn("event_id", F.sha2(F.to_json(F.array(*parts)), 256)), EVENTS)


def _property(column: LakeColumn) -> str:
    """What the value is called: a time is stored under another name."""
    return column.member if column.part is MemberPart.NANOSECONDS else column.name
