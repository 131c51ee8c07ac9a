"""Several kinds of rows of a lake as one stream, in the order of its log: the Spark data source `qmf_kinds`.

A query over a source for each kind would need a process for each beside the driver, and would see them out of step.
Options: `lake`, `kinds` (parted by commas), `files` (most files in a batch). Columns: those of all kinds, null where a
kind has no such column; objects and events as `Frames.any` gives them; and `qmf_kind`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as T
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema, columns_of, library
from qmf.pipeline.lake.columns import Cell
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.row_columns import ANY, Columns
from qmf.pipeline.spark import catalog
from qmf.pipeline.spark.lake_stream import DEFAULT_FILES, LakeStreamReader

#: The column that tells a row's kind.
KIND = "qmf_kind"

_CLASSED = (RowKind.OBJECTS, RowKind.EVENTS)


def follow(spark: SparkSession, lake: str, kinds: Sequence[RowKind]) -> DataFrame:
    """A stream of rows of several kinds of a local lake."""
    spark.dataSource.register(KindsSource)
    stream = spark.readStream.format(KindsSource.name())
    return stream.options(lake=str(catalog.local(lake)), kinds=",".join(kind.value for kind in kinds)).load()


def columns_for(kinds: Sequence[RowKind]) -> Columns:
    """The columns of several kinds together."""
    found: dict[str, Cell] = {}
    for kind in kinds:
        found.update(_columns(kind))
    return (*found.items(), (KIND, Cell.TEXT))


class KindsSource(DataSource):
    """See the module."""

    @classmethod
    def name(cls) -> str:
        """What `format` is given."""
        return "qmf_kinds"

    def schema(self) -> T.StructType:
        """The columns of the kinds."""
        return catalog.struct(columns_for(self._kinds()))

    def streamReader(self, schema: T.StructType) -> DataSourceStreamReader:  # noqa: ARG002
        """A stream."""
        return KindsReader(self.options["lake"], self._kinds(), int(self.options.get("files", DEFAULT_FILES)))

    def _kinds(self) -> list[RowKind]:
        return [RowKind(name) for name in self.options["kinds"].split(",")]


class KindsReader(LakeStreamReader):
    """Reads each file as its kind wants it."""

    def __init__(self, root: str, kinds: Sequence[RowKind], limit: int) -> None:
        super().__init__(root, columns=columns_for(kinds), folder="", limit=limit)
        self._kinds = tuple(kinds)

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The rows of some files."""
        pa = library()
        wanted = arrow_schema(self._columns)
        lake = Lake(self._root)
        for path in partition.paths:  # type: ignore[attr-defined]
            kind = next((kind for kind in self._kinds if path.startswith(f"{kind.value}/")), None)
            if kind is None:
                continue
            own = LakeStreamReader(self._root, columns=columns_of(kind, None), folder="", as_json=kind in _CLASSED)
            for batch in own._batches(path, pa.parquet.ParquetFile(lake.find(path))):
                rows = batch.num_rows
                present = set(batch.schema.names)
                columns = [
                    pa.array([kind.value] * rows, pa.string())
                    if field.name == KIND
                    else batch.column(field.name)
                    if field.name in present
                    else pa.nulls(rows, field.type)
                    for field in wanted
                ]
                yield pa.RecordBatch.from_arrays(columns, schema=wanted)


def _columns(kind: RowKind) -> Columns:
    return (*columns_of(kind, None), *(ANY if kind in _CLASSED else ()))
