"""The lake of `pipeline.lakes.Shop` as Delta tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
from pipeline.lakes import RUN, Shop

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_table
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import DATE
from qmf.pipeline.recording.buffers import Cells, RowBuffers


class DeltaShop(Shop):
    """Writes rows as a recorder does; each call of `put` and others is one commit for each table."""

    def __init__(self, root: Path, *, run: str = RUN, name: str = "shop") -> None:
        self.delta = DeltaLake(str(root))
        self.root = str(root)
        self._run, self._name = run, name
        self._seq = self._batch = 0
        self._schemas: set[tuple[str, str, str]] = set()
        self._versions: dict[tuple[str, str, str], ClassVersion] = {}
        self._buffers = RowBuffers()

    def add(self, kind: RowKind, at: float, cells: Cells, *, table: ClassVersion | None = None, **options: Any) -> None:
        if table is not None:
            self._versions[table.package, table.name, table.hash] = table
        super().add(kind, at, cells, table=table, **options)

    def commit(self) -> None:
        for partition, columns, rows in sorted(
            self._buffers.take().parts, key=lambda part: part[0].kind.value != "schemas"
        ):
            written = arrow_table(columns, rows).append_column(DATE, pa.array([partition.date] * len(rows)))
            version = self._versions.get((partition.package, partition.name, partition.hash))
            path = partition.kind.value
            if partition.kind is RowKind.SCHEMAS:
                places = [
                    self.delta.place(self._versions_by_row(row))
                    for row in written.select(["package", "class", "hash"]).to_pylist()
                ]
                written = written.append_column("table", pa.array(places))
            elif version is not None:
                path = self.delta.place(version)
                written = written.append_column("_hash", pa.array([version.hash] * len(rows)))
            self._batch += 1
            assert self.delta.table(path).append(written, writer=self._name, batch=self._batch)

    def add_schema(self, table: ClassVersion, xml: str = "") -> None:
        self._versions[table.package, table.name, table.hash] = table
        super().add_schema(table, xml)

    def _versions_by_row(self, row: dict[str, str]) -> ClassVersion:
        return self._versions[row["package"], row["class"], row["hash"]]
