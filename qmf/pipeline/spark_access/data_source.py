"""The Spark data source `qmf`: a bus or a lake as rows of a class.

- ``spark.read.format("qmf")`` with `url`, `package`, `class`: a live snapshot, requested from the agents when it runs;
- ``spark.read.format("qmf")`` with `lake`, `package`, `class`: what is recorded there; `from` and `to` bound its days;
- ``spark.readStream.format("qmf")`` with `lake`, `package`, `class`: all rows that are or will be recorded there;
- the same with `url` and `spool` in addition: records the bus into the spool, a lake, while the query runs, and follows
  it;
- ``spark.readStream.format("qmf")`` with `lake` and ``kind="versions"``: the number of the last commit of each table,
  for jobs that read rows themselves. With `tick`, there is a micro-batch after so many seconds though nothing is new.

A lake is a folder, or a URL of an object store whose options begin with ``storage.``. Files and versions come from the
Delta tables themselves: Spark needs no jar for it.

Other options: `kind` instead of a class (heartbeats, agents, gaps, ...; objects and events are then those of all
classes, with their values as JSON), `hash` (one version of the class), `columns` (those of the class that are read,
with commas between them, besides those of every row), `one_query` (``true`` for a frame of which there is one query
alone: its filters reach the files), `files` (files of a micro-batch at most),
`domain`, `timeout` (seconds, of the snapshot), `interval` (seconds, of the spool's commits).
"""

from __future__ import annotations

import json
from collections.abc import Mapping

import attrs
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.pandas.types import from_arrow_schema

from qmf.pipeline.errors import LakeError, PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema, columns_of
from qmf.pipeline.lake.columns import ANY_CLASS_COLUMNS, CLASS_KINDS, ClassVersion, Columns, ColumnType
from qmf.pipeline.lake.delta_lake import DeltaLake, columns_of_versions, versions_of
from qmf.pipeline.lake.feed import FeedFile
from qmf.pipeline.lake.file_rows import WantedRows
from qmf.pipeline.lake.location import class_of_path, class_path, kind_path
from qmf.pipeline.spark_access.lake_stream import (
    DEFAULT_FILES,
    SCHEMA,
    VERSIONS,
    FilteringLakeReader,
    LakeBatchReader,
    LakeStreamReader,
    LakeVersionsReader,
    PathFilter,
)

#: The column of which the metadata say what the rows are, and the key in these.
_MARKED, _MARK = "_ts_ns", "qmf"


def spark_schema(columns: Columns) -> T.StructType:
    return from_arrow_schema(arrow_schema(columns))


def columns_from_schema(schema: T.StructType) -> Columns:
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
        return f"{self.versions[0].package}:{self.versions[0].name}" if self.versions else self.kind.value

    @property
    def path(self) -> str:
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


#: The beginning of the options of an object store.
_STORAGE = "storage."


class QmfDataSource(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        return "qmf"

    def schema(self) -> T.StructType:
        """The columns of the class, as the lake or the bus has them now; those of later versions join at a restart."""
        if self._is_of_versions():
            return SCHEMA
        kind, versions = self._selected_class()
        if kind in CLASS_KINDS and not versions:
            return spark_schema((*columns_of(kind, None), *ANY_CLASS_COLUMNS))
        schema = self._choose_columns(spark_schema(columns_of_versions(kind, versions)), kind)
        return mark_schema(schema, FrameClass(kind, tuple(versions)))

    def _choose_columns(self, schema: T.StructType, kind: RowKind) -> T.StructType:
        names = [name.strip() for name in self.options.get("columns", "").split(",") if name.strip()]
        if not names:
            return schema
        unknown = sorted(set(names).difference(schema.names))
        if unknown:
            raise PipelineError(
                f'the option "columns": there is no {unknown[0]!r}; there are {", ".join(schema.names)}'
            )
        common = {name for name, _type in columns_of(kind, None)}
        return T.StructType([field for field in schema if field.name in common or field.name in names])

    def reader(self, schema: T.StructType) -> DataSourceReader:
        """A reader of a live snapshot of the bus, or of what is in a lake."""
        options = dict(self.options)
        if not options.get("lake"):
            if not options.get("url"):
                raise PipelineError('the option "url" is missing for a snapshot of a bus, or "lake"')
            from qmf.pipeline.spark_access.bus_snapshot import SnapshotReader

            return SnapshotReader(options)
        wanted, includes = self._wanted_rows(schema)
        lake = _lake(options["lake"], options)
        if not lake.exists():
            raise LakeError(f"{lake.url}: no lake")
        files = batch_files(lake, includes, options)
        if options.get("one_query", "").lower() == "true":
            return FilteringLakeReader(lake, files, wanted)
        return LakeBatchReader(lake, files, wanted)

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:
        """A reader of a lake, or of a bus by its spool."""
        options = dict(self.options)
        if self._is_of_versions():
            tick = float(options["tick"]) if options.get("tick") else None
            return LakeVersionsReader(_lake(options["lake"], options), tick)
        wanted, includes = self._wanted_rows(schema)
        return LakeStreamReader(
            _lake(options.get("spool") or options["lake"], options),
            wanted,
            includes,
            limit=int(options.get("files", DEFAULT_FILES)),
            spooled=(options["url"], options) if options.get("url") else None,
        )

    def _is_of_versions(self) -> bool:
        return bool(self.options.get("kind") == VERSIONS and self.options.get("lake"))

    def _wanted_rows(self, schema: T.StructType) -> tuple[WantedRows, PathFilter]:
        kind, versions = self._selected_class()
        if kind not in CLASS_KINDS:
            return WantedRows(columns=columns_of(kind, None)), TablesOf(kind)
        if not versions:
            return WantedRows(columns=columns_of(kind, None), as_json=True), TablesOf(kind)
        # From the schema that the query was planned with: another version may have been added since.
        columns = columns_from_schema(schema)
        own = TablesOf(kind, versions[0].package, versions[0].name)
        return WantedRows(columns=columns, hash=self.options.get("hash") or None), own

    def _selected_class(self) -> tuple[RowKind, list[ClassVersion]]:
        """The kind of rows, and the versions of their class where the options name one."""
        options = self.options
        name = options.get("class")
        if not name:
            kinds = [kind for kind in RowKind if kind.value == options.get("kind")]
            if not kinds:
                known = ", ".join(kind.value for kind in RowKind)
                raise PipelineError(f'the option "class" is missing, or "kind" with one of {known}')
            return kinds[0], []
        lake = options.get("lake") or (options.get("spool") if not options.get("url") else None)
        if lake:
            known_versions = _lake(lake, options).class_versions()
            versions = versions_of(known_versions, options.get("package"), name, options.get("hash"))
        else:
            from qmf.pipeline.spark_access.bus_snapshot import request_version

            versions = [request_version(dict(options))]
        return (RowKind.EVENTS if versions[0].event else RowKind.OBJECTS), versions


@attrs.frozen
class TablesOf:
    """Chooses the tables of a kind, or of one class, whose names are not empty then."""

    kind: RowKind
    package: str = ""
    name: str = ""

    def __call__(self, path: str) -> bool:
        if self.kind not in CLASS_KINDS:
            return path == kind_path(self.kind)
        if not path.startswith(f"{self.kind.value}/"):
            return False
        return not self.name or class_of_path(path) == (self.kind, self.package, self.name)


def _lake(lake: str, options: Mapping[str, str]) -> DeltaLake:
    """The lake at a path or URL, with those options of its object store that begin with ``storage.``."""
    own = {key.removeprefix(_STORAGE): value for key, value in options.items() if key.startswith(_STORAGE)}
    return DeltaLake(lake, own)


def batch_files(lake: DeltaLake, includes: PathFilter, options: Mapping[str, str]) -> list[FeedFile]:
    """The files of a batch; `from` and `to` bound their days."""
    first, last = options.get("from", ""), options.get("to", "9999-12-31")
    return [
        FeedFile(path, file)
        for path in lake.paths()
        if includes(path)
        for file in lake.table(path).snapshot().files
        if file.date is None or first <= file.date <= last
    ]
