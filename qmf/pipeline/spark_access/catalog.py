"""The classes that a lake holds, and the Spark schema of each of its tables."""

from __future__ import annotations

import json

import attrs
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_schema

from qmf.pipeline.errors import PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema
from qmf.pipeline.lake.columns import ClassVersion, Columns, ColumnType
from qmf.pipeline.lake.table_paths import class_path, kind_path

#: The column of which the metadata say what the rows are, and the key in these.
_MARKED, _MARK = "_ts_ns", "qmf"


def spark_schema(columns: Columns) -> T.StructType:
    """The Spark schema of a file's columns."""
    return from_arrow_schema(arrow_schema(columns))


def columns_from_schema(schema: T.StructType) -> Columns:
    """The reverse of `spark_schema`."""
    known = spark_schema(tuple((column_type.value, column_type) for column_type in ColumnType))
    column_types = {field.dataType: column_type for field, column_type in zip(known, ColumnType, strict=True)}
    return tuple((field.name, column_types[field.dataType]) for field in schema)


@attrs.frozen
class FrameClass:
    """What the rows of a frame are: of a kind, and of the versions of a class, if they have one."""

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
    """What the rows of a frame of the data source `qmf` are; columns may have been left out, or added.

    Raises:
        PipelineError: the schema doesn't say so.
    """
    for field in schema:
        if field.name == _MARKED and field.metadata and _MARK in field.metadata:
            content = json.loads(field.metadata[_MARK])
            versions = tuple(ClassVersion.from_json(*item) for item in content["versions"])
            return FrameClass(RowKind(content["kind"]), versions)
    raise PipelineError(
        f"the frame doesn't know its class: take one of qmf.pipeline.spark.samples or rows, with its column {_MARKED}"
    )
