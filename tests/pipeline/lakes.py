"""A lake as recorders write it, made without a bus: samples, events, heartbeats and agents at given times."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.shop import ROBBED, TILL

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import KIND_COLUMNS, ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.record.buffers import Cells, RowBuffers
from qmf.pipeline.record.lake_writer import LakeWriter
from qmf.pipeline.runners.process import ProcessRunner

SECOND = 10**9

#: Runs jobs in this process.
HERE = ProcessRunner()
RUN = "00000000000000000001_1"


def recorded(lake: DeltaLake, path: str) -> list[dict[str, Any]]:
    """All rows of a table, by run and number; none where there is no table."""
    table = lake.table(path)
    if table.version() is None:
        return []
    rows: list[dict[str, Any]] = table.dataset(table.snapshot().files).to_table().to_pylist()
    return sorted(rows, key=lambda row: (row["_run"], row["_seq"]))


def numbers(lake: DeltaLake) -> list[tuple[str, int]]:
    """Run and number of every row of a lake, by run and number."""
    return sorted((row["_run"], row["_seq"]) for path in lake.paths() for row in recorded(lake, path))


class Shop:
    """Writes rows as a recorder does; each call of `put`, `events`, `beat`, `agent` is one commit.

    Times are seconds since 1970.
    """

    def __init__(
        self, root: Path | str, *, run: str = RUN, name: str = "shop", options: dict[str, str] | None = None
    ) -> None:
        self.lake = DeltaLake(str(root), options)
        self.lake.create()
        self.root = str(root)
        self._run = run
        self._writer = LakeWriter(self.lake, f"{name}-{run}")
        self._seq = 0
        self._batches = self._writer.next_batch() - 1
        self._schemas: set[tuple[str, str, str]] = set()
        self._buffers = RowBuffers()

    def put(
        self,
        *samples: tuple[float, float],
        table: ClassVersion | None = None,
        object: str = "one",
        agent: str = "a",
        epoch: int = 1,
        create: float = 0,
        delete: float = 0,
        properties: bool = False,
        received: float | None = None,
        commit: bool = True,
        **more: Any,
    ) -> None:
        """Samples of tills: times and `sales`.

        `received` is another time of arrival, `more` are other columns, the same for all. Without `commit` they wait.
        """
        table = table or ClassVersion.from_schema(TILL)
        self.add_schema(table)
        for at, sales in samples:
            own = (object, epoch, int(create * SECOND), int(delete * SECOND), properties, True)
            values = {"sales": sales, **more}
            cells = tuple(values.get(column.name) for column in table.columns)
            self.add(RowKind.OBJECTS, at, (*own, *cells), table=table, agent=agent, epoch=epoch, received=received)
        if commit:
            self.commit()

    def events(
        self,
        *events: tuple[float, dict[str, Any]],
        table: ClassVersion | None = None,
        severity: int = 1,
        object: str | None = None,
        agent: str = "a",
        epoch: int = 1,
    ) -> None:
        """Events of robberies: times and arguments."""
        table = table or ClassVersion.from_schema(ROBBED)
        self.add_schema(table)
        for at, arguments in events:
            cells = tuple(arguments.get(column.name) for column in table.columns)
            self.add(RowKind.EVENTS, at, (severity, object, *cells), table=table, agent=agent, epoch=epoch)
        self.commit()

    def beat(
        self, *times: float, agent: str = "a", epoch: int = 1, interval: float = 10.0, commit: bool = True
    ) -> None:
        """Heartbeats. Without `commit` they wait: commits are most of what such a lake costs."""
        for at in times:
            self.add(RowKind.HEARTBEATS, at, (interval, None, 1, None, None), agent=agent, epoch=epoch)
        if commit:
            self.commit()

    def agent(
        self,
        at: float,
        change: str,
        *,
        reason: str | None = None,
        agent: str = "a",
        epoch: int = 1,
        interval: float = 10,
    ) -> None:
        """An agent is added, removed (with the reason) or restarted."""
        self.add(RowKind.AGENTS, at, (change, reason, interval), agent=agent, epoch=epoch)
        self.commit()

    def add(
        self,
        kind: RowKind,
        at: float,
        cells: Cells,
        *,
        table: ClassVersion | None = None,
        agent: str | None = "a",
        epoch: int = 1,
        received: float | None = None,
    ) -> None:
        """Add a row that waits for `commit`; `cells` are those after the common columns."""
        self._seq += 1
        if kind is RowKind.UNTYPED:
            cells = (*cells, "no schema")[: len(KIND_COLUMNS[kind])]
        assert len(cells) >= len(KIND_COLUMNS[kind])
        time_ns = int(at * SECOND)
        received_ns = time_ns if received is None else int(received * SECOND)
        common = (self._run, self._seq, time_ns // 1000, time_ns, received_ns, agent, epoch)
        self._buffers.add(kind, table, time_ns, (*common, *cells))

    def commit(self) -> None:
        """Commit the rows that wait."""
        self._batches += 1
        self._writer.commit(self._batches, self._buffers.take())

    def add_schema(self, table: ClassVersion, xml: str = "") -> None:
        """Add the row of a class version, unless it is there."""
        key = (table.package, table.name, table.hash)
        if key not in self._schemas:
            self._schemas.add(key)
            self.add(RowKind.SCHEMAS, 0, (*key, table.event, table.to_json(), xml, None))
