"""The classes that a lake holds, and the Spark schema of each of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from qmf.pipeline.errors import LakeError, PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake import classes
from qmf.pipeline.lake.arrow import columns_of
from qmf.pipeline.lake.columns import ClassVersion, ColumnType
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import LOG
from qmf.pipeline.lake.location import is_local, local_path
from qmf.pipeline.lake.row_columns import ANY_CLASS_COLUMNS, Columns
from qmf.pipeline.lake.transaction_log import replay

_SPARK_TYPES: dict[ColumnType, T.DataType] = {
    ColumnType.INT8: T.ByteType(),
    ColumnType.INT16: T.ShortType(),
    ColumnType.INT32: T.IntegerType(),
    ColumnType.INT64: T.LongType(),
    ColumnType.DECIMAL: T.DecimalType(20, 0),
    ColumnType.FLOAT: T.FloatType(),
    ColumnType.DOUBLE: T.DoubleType(),
    ColumnType.BOOL: T.BooleanType(),
    ColumnType.TEXT: T.StringType(),
    ColumnType.TIME: T.TimestampType(),
}

#: Columns of a frame of several classes at most: each row pays for the columns that its class doesn't have.
MAX_COLUMNS = 250


def spark_schema(columns: Columns) -> T.StructType:
    """The Spark schema of a file's columns."""
    return T.StructType([T.StructField(name, _SPARK_TYPES[column_type]) for name, column_type in columns])


def columns_from_schema(schema: T.StructType) -> Columns:
    """The reverse of `spark_schema`."""
    column_types = {type: column_type for column_type, type in _SPARK_TYPES.items()}
    return tuple((field.name, column_types[field.dataType]) for field in schema)


def kind_schema(kind: RowKind, versions: Sequence[ClassVersion] = ()) -> T.StructType:
    """The Spark schema of a kind, or of the versions of a class together.

    Raises:
        LakeError: two versions give a column different types; the user can choose one version by its hash.
    """
    return spark_schema(classes.columns_of_versions(kind, versions))


def any_class_schema(kind: RowKind) -> T.StructType:
    """The Spark schema of the rows of all classes together, see `qmf.pipeline.frames.Frames.any`."""
    return spark_schema((*columns_of(kind, None), *ANY_CLASS_COLUMNS))


def class_versions(lake: str, spark: SparkSession | None = None) -> list[ClassVersion]:
    """The class versions of a lake, sorted.

    Args:
        lake: path, or any URL that Spark reads; URLs need `spark`.
        spark: to read with.

    Raises:
        LakeError: there is no lake, or no class in it yet.
    """
    if is_local(lake):
        return classes.local_class_versions(Lake(local_path(lake)))
    rows: list[tuple[Any, ...]] = []
    if paths := [path for path in lake_files(lake, spark) if path.startswith(f"{RowKind.SCHEMAS.value}/")]:
        assert spark is not None
        urls = [f"{lake.rstrip('/')}/{path}" for path in paths]
        frame = spark.read.schema(kind_schema(RowKind.SCHEMAS)).parquet(*urls)
        rows = [tuple(row) for row in frame.select(*classes.SCHEMA_COLUMNS).collect()]
    return classes.sorted_versions(rows, lake)


def lake_files(lake: str, spark: SparkSession | None = None) -> dict[str, int]:
    """The files that are in a lake by its log: paths inside the lake, with their numbers of rows.

    Raises:
        PipelineError: the lake is a URL, and `spark` is missing.
    """
    if is_local(lake):
        return Lake(local_path(lake)).files()
    if spark is None:
        raise PipelineError(f"{lake}: can be read by Spark only")
    try:
        texts = spark.read.text(f"{lake.rstrip('/')}/{LOG}/[0-9]*.json", wholetext=True)
        named = [(row[0], row[1]) for row in texts.select("_metadata.file_name", "value").collect()]
    except AnalysisException as error:
        raise LakeError(f"{lake}: no lake, or nothing in it yet: {error.getCondition()}") from error
    return replay(named)


def readable_groups(versions: Iterable[ClassVersion], limit: int = MAX_COLUMNS) -> list[list[ClassVersion]]:
    """Versions of any classes in groups that one frame can read: within a group, a column name has one type.

    Args:
        versions: to group.
        limit: columns of a group at most, unless one version has more.
    """
    groups: list[tuple[list[ClassVersion], dict[str, tuple[str, ColumnType]]]] = []
    for version in versions:
        # A session of the user may ignore the case of names.
        own = {column.name.lower(): (column.name, column.column_type) for column in version.columns}
        for members, columns in groups:
            joined = {**own, **columns}
            fits = len(joined) <= limit and all(joined[name] == column for name, column in own.items())
            if fits and _has_ascii_names(version) and _has_ascii_names(members[0]):
                columns.update(own)
                members.append(version)
                break
        else:
            groups.append(([version], own))
    return [members for members, _columns in groups]


def _has_ascii_names(version: ClassVersion) -> bool:
    """Spark can read package, class and hash from the folder's name: it decodes %XX bytes as single characters."""
    return f"{version.package}{version.name}{version.hash}".isascii()
