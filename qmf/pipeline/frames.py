"""The tables of a lake as Spark DataFrames: batches or streams, with the same columns, so that one code serves both.

::

    frames = Frames(spark, lake)                        # or Frames(spark, lake, stream=True)
    frames.objects("cpu", package="qmf.host")           # samples of a class, all its versions together
    frames.events("filesystemAboveThreshold")           # events of a class
    frames.table(RowKind.AGENTS)                        # heartbeats, agents, schemas, gaps, untyped
    frames.any(RowKind.EVENTS)                          # events of all classes, their values as JSON
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.classes import choose_classes, versions_of
from qmf.pipeline.lake.columns import ClassVersion, ColumnType
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.row_columns import HASH
from qmf.pipeline.lake.runs import RecordedRuns, counted_condition
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.lake.table_paths import class_of_path, kind_path
from qmf.pipeline.spark import catalog
from qmf.pipeline.spark.lake_stream import DEFAULT_FILES

#: The path of a class's table in that of a file.
_TABLE = r"((?:objects|events)/[^/]+/[^/]+)/[^/]+/[^/]+$"


@attrs.frozen
class Frames:
    """Reads one lake.

    Attributes:
        spark: to read with.
        lake: path or URL.
        stream: frames follow the lake, instead of reading what is in it now.
        first, last: days of a batch, ``2030-01-31``, both included; None for no limit.
        files: files of a stream's micro-batch at most, about.
        options: of the lake's object store.
    """

    spark: SparkSession
    lake: str
    stream: bool = attrs.field(default=False, kw_only=True)
    first: str | None = attrs.field(default=None, kw_only=True)
    last: str | None = attrs.field(default=None, kw_only=True)
    files: int = attrs.field(default=DEFAULT_FILES, kw_only=True)
    options: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)

    def classes(self, names: Sequence[str] = (), *, events: bool = False) -> list[list[ClassVersion]]:
        """The versions of each class that is wanted.

        Args:
            names: of classes, with or without ``package:``; none for all.
            events: classes of events instead of those of objects.

        Raises:
            LakeError: no lake, no such class, or several.
        """
        return choose_classes(self._lake.class_versions(), names, events=events)

    def objects(self, name: str, *, package: str | None = None, hash: str | None = None) -> DataFrame:
        """Samples of a class.

        Raises:
            LakeError: as of `classes`; versions disagree about a type.
        """
        versions = versions_of(self._lake.class_versions(), package, name, hash)
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
        options = {"class": versions[0].name, "package": versions[0].package, "hash": hash or ""}
        if self.stream:
            return self._follow(options)
        if not self._lake.is_local:
            return self._batch(options)
        rows = self._files(kind, versions)
        return rows.select(*catalog.kind_schema(kind, versions).fieldNames())

    def table(self, kind: RowKind) -> DataFrame:
        """Rows of a kind without classes: heartbeats, agents, schemas, gaps, untyped."""
        if self.stream:
            return self._follow({"kind": kind.value})
        if not self._lake.is_local:
            return self._batch({"kind": kind.value})
        return self._read([kind_path(kind)], catalog.kind_schema(kind))

    def any(self, kind: RowKind) -> DataFrame:
        """Objects or events of all classes; a stream includes classes that are added while it runs.

        Columns: those of every row and of the kind, then `package`, `class`, `hash`, and `values`: the columns of the
        class as a JSON object, without those that are null, times as nanoseconds.
        """
        if self.stream:
            return self._follow({"kind": kind.value})
        if not self._lake.is_local:
            return self._batch({"kind": kind.value})
        versions = [item for item in self._lake.class_versions() if item.event is (kind is RowKind.EVENTS)]
        if not any(self._selected_files(self._lake.tables_of(versions))):
            return self.spark.createDataFrame([], catalog.any_class_schema(kind))
        # A scan per class would have to be planned for each, which costs more than the rows of a small lake.
        groups = [
            group
            for group in catalog.readable_groups(versions)
            if any(self._selected_files(self._lake.tables_of(group)))
        ]
        frames = [self._as_json(kind, group) for group in groups]
        return reduce(DataFrame.unionByName, frames)

    def _as_json(self, kind: RowKind, versions: Sequence[ClassVersion]) -> DataFrame:
        rows = self._files(kind, versions)
        columns = {column.name: column for version in versions for column in version.columns}
        values = [F.col(name) for name, column in columns.items() if column.column_type is not ColumnType.TIME]
        places = {path: class_of_path(path) for path in self._lake.tables_of(versions)}
        path = F.regexp_extract(F.try_url_decode("_metadata.file_path"), _TABLE, 1)
        package, name = (
            F.create_map(*(F.lit(text) for path, place in places.items() for text in (path, place[at])))[path]
            for at in (1, 2)
        )
        return rows.select(
            *catalog.kind_schema(kind).fieldNames(),
            package.alias("package"),
            name.alias("class"),
            F.col(HASH).alias("hash"),
            # Columns that a class doesn't have are null, and so not in the text.
            (F.to_json(F.struct(*values)) if values else F.lit("{}")).alias("values"),
        )

    @property
    def _lake(self) -> DeltaLake:
        return DeltaLake(self.lake, self.options)

    def _source_options(self, options: Mapping[str, str]) -> dict[str, str]:
        storage = {f"storage.{key}": value for key, value in self.options.items()}
        return {**{key: value for key, value in options.items() if value}, **storage, "lake": self._lake.url}

    def _follow(self, options: Mapping[str, str]) -> DataFrame:
        stream = self.spark.readStream.format("qmf").options(**self._source_options(options))
        return stream.option("files", str(self.files)).load()

    def _batch(self, options: Mapping[str, str]) -> DataFrame:
        """Rows of an object store, which Spark may have no jar for."""
        days = {"from": self.first or "", "to": self.last or ""}
        return self.spark.read.format("qmf").options(**self._source_options({**options, **days})).load()

    def _files(self, kind: RowKind, versions: Sequence[ClassVersion]) -> DataFrame:
        """Rows of class versions with the column `HASH`."""
        schema = catalog.kind_schema(kind, versions)
        full = T.StructType([*schema.fields, T.StructField(HASH, T.StringType())])
        hashes = sorted({version.hash for version in versions})
        rows = self._read(self._lake.tables_of(versions), full).where(F.col(HASH).isin(hashes))
        # Of several recorders of an agent, the rows of one count.
        condition = counted_condition(RecordedRuns(self._lake).left_out_rows())
        return rows.where(condition) if condition else rows

    def _read(self, paths: Sequence[str], schema: T.StructType) -> DataFrame:
        found = [file.url for _path, file in self._selected_files(paths)]
        return self.spark.read.schema(schema).parquet(*found) if found else self.spark.createDataFrame([], schema)

    def _selected_files(self, paths: Sequence[str]) -> Iterator[tuple[str, TableFile]]:
        """The files of tables in a batch, with the paths of their tables."""
        lake = self._lake
        for path in paths:
            if lake.table(path).version() is not None:
                yield from ((path, file) for file in lake.table(path).snapshot().files if self._includes(file.date))

    def _includes(self, date: str | None) -> bool:
        return date is None or (self.first or date) <= date <= (self.last or date)


def _kind_of(versions: Sequence[ClassVersion]) -> RowKind:
    return RowKind.EVENTS if versions[0].event else RowKind.OBJECTS
