"""Rows of several kinds of a lake as one stream, in the order of its log: the Spark data source `qmf_kinds`.

A query over one source per kind would need a process beside the driver for each, and would see them out of step.
Options: `lake`, `kinds` (separated by commas), `files` (files of a micro-batch at most). Columns: those of all kinds,
null where a kind has no such column; objects and events as `Frames.any` returns them; and `qmf_kind`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema, columns_of, import_pyarrow
from qmf.pipeline.lake.columns import ColumnType
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.location import local_path
from qmf.pipeline.lake.row_columns import ANY_CLASS_COLUMNS, CLASS_KINDS, Columns
from qmf.pipeline.spark import catalog
from qmf.pipeline.spark.lake_stream import DEFAULT_FILES, FilesPartition, LakeStreamReader, read_file

#: The column that holds a row's kind.
KIND_COLUMN = "qmf_kind"


def read_kinds(spark: SparkSession, lake: str, kinds: Sequence[RowKind]) -> DataFrame:
    """A stream of rows of several kinds of a local lake."""
    spark.dataSource.register(MultiKindDataSource)
    stream = spark.readStream.format(MultiKindDataSource.name())
    return stream.options(lake=str(local_path(lake)), kinds=",".join(kind.value for kind in kinds)).load()


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
        return MultiKindStreamReader(self.options["lake"], self._kinds(), int(self.options.get("files", DEFAULT_FILES)))

    def _kinds(self) -> list[RowKind]:
        return [RowKind(name) for name in self.options["kinds"].split(",")]


class MultiKindStreamReader(LakeStreamReader):
    """Reads each file with the columns of its kind."""

    def __init__(self, root: str, kinds: Sequence[RowKind], limit: int) -> None:
        super().__init__(root, columns=columns_of_kinds(kinds), folder="", limit=limit)
        self._kinds = tuple(kinds)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of some files."""
        pa = import_pyarrow()
        assert isinstance(partition, FilesPartition)
        wanted = arrow_schema(columns_of_kinds(self._kinds))
        lake = Lake(self._root)
        for path in partition.paths:
            kind = next((kind for kind in self._kinds if path.startswith(f"{kind.value}/")), None)
            if kind is None:
                continue
            for batch in read_file(lake, path, columns_of(kind, None), as_json=kind in CLASS_KINDS):
                rows = batch.num_rows
                present = set(batch.schema.names)
                columns = [
                    pa.array([kind.value] * rows, pa.string())
                    if field.name == KIND_COLUMN
                    else batch.column(field.name)
                    if field.name in present
                    else pa.nulls(rows, field.type)
                    for field in wanted
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=wanted)
