"""The classes that a lake holds, and the Spark schema of each of its tables."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import attrs
from pyspark.sql import types as T

from qmf.pipeline.errors import PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake import classes
from qmf.pipeline.lake.arrow import columns_of
from qmf.pipeline.lake.columns import ClassVersion, ColumnType
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.row_columns import ANY_CLASS_COLUMNS, Columns
from qmf.pipeline.lake.table_paths import class_path, kind_path

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

#: The column of which the metadata say what the rows are, and the key in these.
_MARKED, _MARK = "_ts_ns", "qmf"


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
    """The Spark schema of the rows of all classes together."""
    return spark_schema((*columns_of(kind, None), *ANY_CLASS_COLUMNS))


def class_versions(lake: str, options: Mapping[str, str] | None = None) -> list[ClassVersion]:
    """The class versions of a lake, sorted.

    Args:
        lake: path or URL.
        options: of its object store.

    Raises:
        LakeError: there is no lake, or no class in it yet.
    """
    return DeltaLake(lake, options).class_versions()


@attrs.frozen
class FrameClass:
    """What the rows of a frame are.

    Attributes:
        kind: of the rows.
        versions: of their class; none for kinds without classes.
    """

    kind: RowKind
    versions: tuple[ClassVersion, ...] = ()

    @property
    def name(self) -> str:
        """The name, for people."""
        return f"{self.versions[0].package}:{self.versions[0].name}" if self.versions else self.kind.value

    @property
    def path(self) -> str:
        """The path of the table of the class, or of the kind, in a lake."""
        if not self.versions:
            return kind_path(self.kind)
        return class_path(self.kind, self.versions[0].package, self.versions[0].name)


def mark_schema(schema: T.StructType, own: FrameClass) -> T.StructType:
    """A schema whose metadata say what the rows are, for `recorded_class`."""
    versions = [[item.package, item.name, item.hash, item.event, item.to_json()] for item in own.versions]
    text = json.dumps({"kind": own.kind.value, "versions": versions})
    return T.StructType(
        [
            T.StructField(field.name, field.dataType, field.nullable, {_MARK: text}) if field.name == _MARKED else field
            for field in schema
        ]
    )


def recorded_class(schema: T.StructType) -> FrameClass:
    """What the rows of a frame of the data source `qmf` are.

    Args:
        schema: of the frame; columns may have been left out, or added.

    Raises:
        PipelineError: it doesn't say so.
    """
    for field in schema:
        if field.name == _MARKED and field.metadata and _MARK in field.metadata:
            content = json.loads(field.metadata[_MARK])
            versions = tuple(ClassVersion.from_json(*item) for item in content["versions"])
            return FrameClass(RowKind(content["kind"]), versions)
    raise PipelineError(
        f"the frame doesn't know its class: take one of qmf.pipeline.spark.samples or rows, with its column {_MARKED}"
    )
