"""What is new in a lake, as a stream: the number of the last commit of each table, by the data source `qmf`.

Jobs read the rows themselves, in the tasks of a micro-batch. So their offsets are versions of tables, which Spark keeps
in its checkpoint, and a micro-batch that Spark runs again after a kill has the versions that it had before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from pyspark.sql import types as T
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_versions import LakeVersions, all_versions

#: The kind of rows, among the options of the source.
VERSIONS = "versions"

#: The columns: path of a table in the lake, number of its last commit, and until when it was complete: the arrival of
#: the first row that recorders held back. Both may be null.
SCHEMA = T.StructType(
    [
        T.StructField("path", T.StringType()),
        T.StructField("version", T.LongType()),
        T.StructField("waiting_ns", T.LongType()),
    ]
)

#: What stands for the time in an offset, beside the paths of tables.
_TIME = ""

Offset = dict[str, list[int | None]]


class VersionsPartition(InputPartition):
    """The tables of a micro-batch, as of `SCHEMA`."""

    def __init__(self, tables: list[tuple[str, int | None, int | None]]) -> None:
        super().__init__(tables)
        self.tables = tables


class LakeVersionsReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Follows all tables of a lake, those that are added later too. A lake that is not there yet is waited for."""

    def __init__(
        self,
        lake: str,
        storage: Mapping[str, str],
        tick: float | None = None,
        *,
        clock: Callable[[], int] = time.time_ns,
    ) -> None:
        """Prepare the reading of a lake, which may not be there yet.

        Args:
            lake: absolute path, or URL.
            storage: options of its object store.
            tick: seconds after which there is a micro-batch though nothing is new; None for never.
            clock: ns since 1970.
        """
        self._lake = DeltaLake(lake, storage)
        self._tick_ns = None if tick is None else round(tick * 10**9)
        self._clock = clock
        self._end: Offset | None = None

    def initialOffset(self) -> Offset:
        """Nothing was read."""
        return {}

    def prepareForTriggerAvailableNow(self) -> None:
        """Remember the present as the end."""
        self._end = self._versions()

    def latestOffset(self, start: Offset, limit: ReadLimit | None) -> Offset:  # noqa: ARG002
        """The present, and of tables that are gone what was read of them."""
        if self._end is not None:
            return {**start, **self._end}
        found = {**start, **self._versions()}
        if self._tick_ns is not None:
            found[_TIME] = [self._clock() // self._tick_ns, None]
        return found

    def partitions(self, start: Offset, end: Offset) -> list[InputPartition]:  # noqa: ARG002
        """One, with all tables: a job knows what it has read of them."""
        return [VersionsPartition([(path, version, at) for path, (version, at) in end.items() if path != _TIME])]

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """The tables."""
        assert isinstance(partition, VersionsPartition)
        pa = import_pyarrow()
        types = (pa.string(), pa.int64(), pa.int64())
        columns = list(zip(*partition.tables, strict=True)) or [(), (), ()]
        arrays = [pa.array(values, type) for values, type in zip(columns, types, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, SCHEMA.fieldNames())

    def _versions(self) -> Offset:
        found = all_versions(self._lake, self._clock)
        paths = sorted({*found.versions, *found.waiting})
        return {path: [found.versions.get(path), found.waiting.get(path)] for path in paths}


def versions_of(rows: Iterable[Any]) -> LakeVersions:
    """The rows of a micro-batch."""
    known = [(row["path"], row["version"], row["waiting_ns"]) for row in rows]
    return LakeVersions(
        {path: version for path, version, _at in known if version is not None},
        {path: at for path, _version, at in known if at is not None},
    )
