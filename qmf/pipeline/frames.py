"""The tables of a lake as Spark DataFrames: batches or streams, with the same columns, so that one code serves both.

::

    frames = Frames(spark, lake)                        # or Frames(spark, lake, stream=True)
    frames.objects("cpu", package="qmf.host")           # samples of a class, all its versions together
    frames.events("filesystemAboveThreshold")           # events of a class
    frames.table(RowKind.AGENTS)                        # heartbeats, agents, schemas, gaps, untyped
    frames.any(RowKind.EVENTS)                          # events of all classes, their values as JSON
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.classes import choose_classes, versions_of
from qmf.pipeline.lake.columns import ClassVersion, ColumnType
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import NO_HASH, RECORDED_FILES, LakePartition, class_folder, date_of
from qmf.pipeline.lake.location import is_local, local_path
from qmf.pipeline.lake.row_columns import PARTITION_COLUMNS
from qmf.pipeline.spark import catalog
from qmf.pipeline.spark.lake_stream import DEFAULT_FILES


@attrs.frozen
class Frames:
    """Reads one lake.

    Attributes:
        spark: to read with.
        lake: path, or any URL that Spark reads.
        stream: frames follow the lake, instead of reading what is in it now.
        first, last: days of a batch, ``2030-01-31``, both included; None for no limit.
        files: files of a stream's micro-batch at most.
    """

    spark: SparkSession
    lake: str
    stream: bool = attrs.field(default=False, kw_only=True)
    first: str | None = attrs.field(default=None, kw_only=True)
    last: str | None = attrs.field(default=None, kw_only=True)
    files: int = attrs.field(default=DEFAULT_FILES, kw_only=True)

    def classes(self, names: Sequence[str] = (), *, events: bool = False) -> list[list[ClassVersion]]:
        """The versions of each class that is wanted.

        Args:
            names: of classes, with or without ``package:``; none for all.
            events: classes of events instead of those of objects.

        Raises:
            LakeError: no lake, no such class, or several.
        """
        return choose_classes(catalog.class_versions(self.lake, self.spark), names, events=events)

    def objects(self, name: str, *, package: str | None = None, hash: str | None = None) -> DataFrame:
        """Samples of a class.

        Raises:
            LakeError: as of `classes`; versions disagree about a type.
        """
        versions = versions_of(catalog.class_versions(self.lake, self.spark), package, name, hash)
        return self.class_rows(versions, hash=hash)

    #: Events of a class. The same function: the name determines whether the class is one of objects or of events.
    events = objects

    def class_rows(self, versions: Sequence[ClassVersion], *, hash: str | None = None) -> DataFrame:
        """Rows of the versions of one class together; columns that a version lacks are null.

        A stream also has the rows of versions that are added later, with the columns known now; their new columns join
        at a restart.

        Args:
            versions: as `classes` returns them.
            hash: only this version, also of those that are added later.

        Raises:
            LakeError: versions disagree about a type.
        """
        kind = _kind_of(versions)
        if self.stream and is_local(self.lake):
            return self._follow({"class": versions[0].name, "package": versions[0].package, "hash": hash or ""})
        return self._read(kind, versions, hash)

    def class_row_count(self, versions: Sequence[ClassVersion]) -> int:
        """The number of rows of one class in a batch, from the lake's log, without reading the rows."""
        return sum(self._selected_files(_kind_of(versions), versions).values())

    def table(self, kind: RowKind) -> DataFrame:
        """Rows of a kind without classes: heartbeats, agents, schemas, gaps, untyped."""
        if self.stream and is_local(self.lake):
            return self._follow({"kind": kind.value})
        return self._read(kind, ())

    def any(self, kind: RowKind) -> DataFrame:
        """Objects or events of all classes; a stream includes classes that are added while it runs.

        Columns: those of every row and of the kind, then `package`, `class`, `hash`, and `values`: the columns of the
        class as a JSON object, without those that are null, times as nanoseconds.
        """
        if self.stream and is_local(self.lake):
            return self._follow({"kind": kind.value})
        versions = [
            version
            for version in catalog.class_versions(self.lake, self.spark)
            if version.event is (kind is RowKind.EVENTS)
        ]
        if self.stream:
            frames = [self._as_json(kind, [item], self._read(kind, [item], item.hash or NO_HASH)) for item in versions]
        else:
            # A scan per class would have to be planned for each, which costs more than the rows of a small lake.
            groups = catalog.readable_groups(versions)
            frames = [self._as_json(kind, group, self._files(kind, group)) for group in groups]
        if not frames:
            return self.spark.createDataFrame([], catalog.any_class_schema(kind))
        return reduce(DataFrame.unionByName, frames)

    def _as_json(self, kind: RowKind, versions: Sequence[ClassVersion], rows: DataFrame) -> DataFrame:
        common = catalog.kind_schema(kind).fieldNames()
        columns = {column.name: column for version in versions for column in version.columns}
        values = [F.col(name) for name, column in columns.items() if column.column_type is not ColumnType.TIME]
        if len(versions) == 1:
            names = [F.lit(versions[0].package), F.lit(versions[0].name), F.lit(versions[0].hash)]
        else:
            package, name, hash = (F.col(partition) for partition in PARTITION_COLUMNS[:3])
            names = [package, name, F.when(hash == NO_HASH, "").otherwise(hash)]
        return rows.select(
            *common,
            *(value.alias(name) for value, name in zip(names, ("package", "class", "hash"), strict=True)),
            # Columns that a class doesn't have are null, and so not in the text.
            (F.to_json(F.struct(*values)) if values else F.lit("{}")).alias("values"),
        )

    def _follow(self, options: dict[str, str]) -> DataFrame:
        stream = self.spark.readStream.format("qmf").option("lake", str(local_path(self.lake)))
        return stream.options(**{key: value for key, value in options.items() if value}, files=str(self.files)).load()

    def _root(self) -> str:
        return str(local_path(self.lake)) if is_local(self.lake) else self.lake.rstrip("/")

    def _read(self, kind: RowKind, versions: Sequence[ClassVersion], hash: str | None = None) -> DataFrame:
        schema = catalog.kind_schema(kind, versions)
        if self.stream:
            # Compacted files hold nothing new, and are excluded by their names.
            stream = self.spark.readStream.schema(schema).option("recursiveFileLookup", "true")
            stream = stream.option("pathGlobFilter", RECORDED_FILES).option("maxFilesPerTrigger", self.files)
            names = (versions[0].package, versions[0].name) if versions else ("", "")
            return stream.parquet(f"{self._root()}/{class_folder(kind, *names, hash or '')}")
        return self._files(kind, versions).select(*schema.fieldNames())

    def _files(self, kind: RowKind, versions: Sequence[ClassVersion]) -> DataFrame:
        """Rows of files in the lake with its partition columns: of class versions, or of a kind without classes."""
        schema = catalog.kind_schema(kind, versions)
        extra = PARTITION_COLUMNS if versions else PARTITION_COLUMNS[-1:]
        full = T.StructType([*schema.fields, *(T.StructField(name, T.StringType()) for name in extra)])
        root = self._root()
        found = self._selected_files(kind, versions)
        paths = [str(Lake(root).find(path)) if is_local(self.lake) else f"{root}/{path}" for path in found]
        if not paths:
            return self.spark.createDataFrame([], full)
        return self.spark.read.schema(full).option("basePath", f"{root}/{kind.value}").parquet(*paths)

    def _selected_files(self, kind: RowKind, versions: Sequence[ClassVersion]) -> dict[str, int]:
        """The files of a batch of class versions, or of a kind without classes, with their numbers of rows."""
        folders = {LakePartition(kind, item.package, item.name, item.hash).folder for item in versions} or {kind.value}
        # A file lies in the folder of its day, which lies in the folder of its class version.
        return {
            path: rows
            for path, rows in catalog.lake_files(self.lake, self.spark).items()
            if path.rsplit("/", 2)[0] in folders and self._includes(date_of(path))
        }

    def _includes(self, date: str | None) -> bool:
        return date is None or (self.first or date) <= date <= (self.last or date)


def _kind_of(versions: Sequence[ClassVersion]) -> RowKind:
    return RowKind.EVENTS if versions[0].event else RowKind.OBJECTS
