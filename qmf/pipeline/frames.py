"""The tables of a lake as DataFrames: batches or streams, with the same columns and so for the same code.

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
from qmf.pipeline.lake.columns import Cell, Table
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import NO_HASH, ORIGINALS, Place, class_folder, date_of
from qmf.pipeline.lake.row_columns import PARTITIONS
from qmf.pipeline.spark import catalog
from qmf.pipeline.spark.lake_stream import DEFAULT_FILES


@attrs.frozen
class Frames:
    """Reads one lake.

    Attributes:
        spark: to read with.
        lake: path, or any URL that Spark reads.
        stream: frames follow the lake, instead of reading what is in it.
        first, last: days of a batch, ``2030-01-31``, both included; None for no bound.
        files: most files in one batch of a stream.
    """

    spark: SparkSession
    lake: str
    stream: bool = attrs.field(default=False, kw_only=True)
    first: str | None = attrs.field(default=None, kw_only=True)
    last: str | None = attrs.field(default=None, kw_only=True)
    files: int = attrs.field(default=DEFAULT_FILES, kw_only=True)

    def classes(self, names: Sequence[str] = (), *, events: bool = False) -> list[list[Table]]:
        """The versions of each class that is wanted.

        Args:
            names: of classes, with or without ``package:``; none for all.
            events: classes of events instead of those of objects.

        Raises:
            LakeError: no lake, no such class, or several.
        """
        return catalog.choose(catalog.tables(self.lake, self.spark), names, events=events)

    def objects(self, name: str, *, package: str | None = None, hash: str | None = None) -> DataFrame:
        """Samples of a class.

        Raises:
            LakeError: as of `classes`; versions disagree about a type.
        """
        of = catalog.versions(catalog.tables(self.lake, self.spark), package, name, hash)
        return self.of(of, hash=hash)

    #: Events of a class: the same, as names tell which it is.
    events = objects

    def of(self, tables: Sequence[Table], *, hash: str | None = None) -> DataFrame:
        """Rows of the versions of one class together; columns that a version lacks are null.

        A stream has rows of versions that come later, too, with the columns known now; more join at a restart.

        Args:
            tables: as `classes` gives them.
            hash: only this version, also of those that come later.

        Raises:
            LakeError: versions disagree about a type.
        """
        kind = RowKind.EVENTS if tables[0].event else RowKind.OBJECTS
        if self.stream and catalog.is_local(self.lake):
            return self._follow({"class": tables[0].name, "package": tables[0].package, "hash": hash or ""})
        return self._read(kind, tables, hash)

    def count(self, tables: Sequence[Table]) -> int:
        """How many rows a batch of the versions of one class has, as the lake's log tells without reading them."""
        return sum(self._chosen(RowKind.EVENTS if tables[0].event else RowKind.OBJECTS, tables).values())

    def table(self, kind: RowKind) -> DataFrame:
        """Rows of a kind without classes: heartbeats, agents, schemas, gaps, untyped."""
        if self.stream and catalog.is_local(self.lake):
            return self._follow({"kind": kind.value})
        return self._read(kind, ())

    def any(self, kind: RowKind) -> DataFrame:
        """Objects or events of all classes, those that come while a stream runs among them.

        Columns: those of every row and of the kind, then `package`, `class`, `hash`, and `values`: the columns of the
        class as a JSON object, without those that are null, times as nanoseconds.
        """
        if self.stream and catalog.is_local(self.lake):
            return self._follow({"kind": kind.value})
        of = [table for table in catalog.tables(self.lake, self.spark) if table.event is (kind is RowKind.EVENTS)]
        if self.stream:
            frames = [self._as_json(kind, [table], self._read(kind, [table], table.hash or NO_HASH)) for table in of]
        else:
            # A scan for each class would have to be planned for each, which costs more than a small lake's rows.
            groups = catalog.together(of)
            frames = [self._as_json(kind, group, self._files(kind, group)) for group in groups]
        if not frames:
            return self.spark.createDataFrame([], catalog.any_schema(kind))
        return reduce(DataFrame.unionByName, frames)

    def _as_json(self, kind: RowKind, of: Sequence[Table], rows: DataFrame) -> DataFrame:
        common = catalog.schema_of(kind).fieldNames()
        columns = {column.name: column for table in of for column in table.columns}
        values = [F.col(name) for name, column in columns.items() if column.cell is not Cell.TIME]
        if len(of) == 1:
            told = [F.lit(of[0].package), F.lit(of[0].name), F.lit(of[0].hash)]
        else:
            package, name, hash = (F.col(partition) for partition in PARTITIONS[:3])
            told = [package, name, F.when(hash == NO_HASH, "").otherwise(hash)]
        return rows.select(
            *common,
            *(value.alias(name) for value, name in zip(told, ("package", "class", "hash"), strict=True)),
            # Columns that a class doesn't have are null, and so not in the text.
            (F.to_json(F.struct(*values)) if values else F.lit("{}")).alias("values"),
        )

    def _follow(self, options: dict[str, str]) -> DataFrame:
        stream = self.spark.readStream.format("qmf").option("lake", str(catalog.local(self.lake)))
        return stream.options(**{key: value for key, value in options.items() if value}, files=str(self.files)).load()

    def _read(self, kind: RowKind, of: Sequence[Table], hash: str | None = None) -> DataFrame:
        schema = catalog.schema_of(kind, of)
        root = str(catalog.local(self.lake)) if catalog.is_local(self.lake) else self.lake.rstrip("/")
        if self.stream:
            # Joined files hold nothing new, and are told by their names.
            stream = self.spark.readStream.schema(schema).option("recursiveFileLookup", "true")
            stream = stream.option("pathGlobFilter", ORIGINALS).option("maxFilesPerTrigger", self.files)
            named = (of[0].package, of[0].name) if of else ("", "")
            return stream.parquet(f"{root}/{class_folder(kind, *named, hash or '')}")
        return self._files(kind, of).select(*schema.fieldNames())

    def _files(self, kind: RowKind, of: Sequence[Table]) -> DataFrame:
        """Rows of files in the lake, with its partitions as columns: of some tables, or of a kind without classes."""
        schema = catalog.schema_of(kind, of)
        extra = PARTITIONS if of else PARTITIONS[-1:]
        full = T.StructType([*schema.fields, *(T.StructField(name, T.StringType()) for name in extra)])
        root = str(catalog.local(self.lake)) if catalog.is_local(self.lake) else self.lake.rstrip("/")
        found = self._chosen(kind, of)
        paths = [str(Lake(root).find(path)) if catalog.is_local(self.lake) else f"{root}/{path}" for path in found]
        if not paths:
            return self.spark.createDataFrame([], full)
        return self.spark.read.schema(full).option("basePath", f"{root}/{kind.value}").parquet(*paths)

    def _chosen(self, kind: RowKind, of: Sequence[Table]) -> dict[str, int]:
        """The files that a batch of some tables, or of a kind without classes, reads, with their rows."""
        folders = {Place(kind, item.package, item.name, item.hash, "").folder for item in of} or {kind.value}
        # A file lies in the folder of its day, that in its table's.
        return {
            path: rows
            for path, rows in catalog.files(self.lake, self.spark).items()
            if path.rsplit("/", 2)[0] in folders and self._wants(date_of(path))
        }

    def _wants(self, date: str | None) -> bool:
        return date is None or (self.first or date) <= date <= (self.last or date)
