"""Rows of several kinds of a lake as one stream, in the order of recording: the Spark data source `qmf_kinds`.

A query over one source per kind would need a process beside the driver for each, and would see them out of step.
Options: `lake`, `kinds` (separated by commas), `files` (files of a micro-batch at most). Columns: those of all kinds,
null where a kind has no such column; objects and events as `Frames.any` returns them; and `qmf_kind`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import columns_of, import_pyarrow
from qmf.pipeline.lake.columns import ColumnType
from qmf.pipeline.lake.file_rows import WantedRows, file_rows
from qmf.pipeline.lake.row_columns import ANY_CLASS_COLUMNS, CLASS_KINDS, Columns
from qmf.pipeline.spark import catalog
from qmf.pipeline.spark.data_source import storage_options
from qmf.pipeline.spark.lake_stream import DEFAULT_FILES, FilesPartition, LakePlace, LakeStreamReader

#: The column that holds a row's kind.
KIND_COLUMN = "qmf_kind"


def read_kinds(
    spark: SparkSession, lake: str, kinds: Sequence[RowKind], options: Mapping[str, str] | None = None
) -> DataFrame:
    """A stream of rows of several kinds of a lake; `options` are those of its object store."""
    spark.dataSource.register(MultiKindDataSource)
    stream = spark.readStream.format(MultiKindDataSource.name())
    storage = {f"storage.{key}": value for key, value in (options or {}).items()}
    return stream.options(**storage, lake=lake, kinds=",".join(kind.value for kind in kinds)).load()


def columns_of_kinds(kinds: Sequence[RowKind]) -> Columns:
    """The columns of several kinds together."""
    found: dict[str, ColumnType] = {}
    for kind in kinds:
        found.update(columns_of(kind, None))
        found.update(ANY_CLASS_COLUMNS if kind in CLASS_KINDS else ())
    return (*found.items(), (KIND_COLUMN, ColumnType.TEXT))


class MultiKindDataSource(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "qmf_kinds"

    def schema(self) -> T.StructType:
        """The columns of the kinds."""
        return catalog.spark_schema(columns_of_kinds(self._kinds()))

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:  # noqa: ARG002
        """A reader of the stream."""
        place = LakePlace(self.options["lake"], storage_options(dict(self.options)))
        return MultiKindStreamReader(place, self._kinds(), int(self.options.get("files", DEFAULT_FILES)))

    def _kinds(self) -> list[RowKind]:
        return [RowKind(name) for name in self.options["kinds"].split(",")]


class MultiKindStreamReader(LakeStreamReader):
    """Reads each file with the columns of its kind."""

    def __init__(self, place: LakePlace, kinds: Sequence[RowKind], limit: int) -> None:
        wanted = WantedRows(columns=columns_of_kinds(kinds))
        super().__init__(place, wanted, TablesOfKinds(tuple(kinds)), limit=limit)
        self._kinds = tuple(kinds)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of some files."""
        assert isinstance(partition, FilesPartition)
        schema = self._wanted.schema
        lake = self._place.open()
        for table_path, path in partition.files:
            kind = RowKind(table_path.partition("/")[0])
            wanted = WantedRows(columns=columns_of(kind, None), as_json=kind in CLASS_KINDS)
            for batch in file_rows(lake.table(table_path), table_path, path, wanted):
                yield _with_kind(batch, kind, schema)


@attrs.frozen
class TablesOfKinds:
    """Chooses the tables of some kinds."""

    kinds: tuple[RowKind, ...]

    def __call__(self, path: str) -> bool:
        return RowKind(path.partition("/")[0]) in self.kinds


def _with_kind(batch: Any, kind: RowKind, schema: Any) -> Any:
    """A batch with the columns of all kinds."""
    pa = import_pyarrow()
    rows = batch.num_rows
    present = set(batch.schema.names)
    columns = [
        pa.array([kind.value] * rows, pa.string())
        if field.name == KIND_COLUMN
        else batch.column(field.name)
        if field.name in present
        else pa.nulls(rows, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)
