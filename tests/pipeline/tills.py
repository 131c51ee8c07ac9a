"""Tills as a recorder stores them, and the tables of an audit as rows to compare."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from uuid import UUID

from pipeline.lakes import Shop
from pipeline.shop import TILL

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.schema import TYPES, Argument, EventSchema, Severity

TILLS = ClassVersion.from_schema(TILL)

#: An event of a broker that describes a call.
QUEUE_DECLARE = ClassVersion.from_schema(
    EventSchema(
        package="org.apache.qpid.broker",
        name="queueDeclare",
        severity=Severity.INFORM,
        hash=UUID(int=0x31),
        arguments=tuple(Argument(name=name, type=TYPES["sstr"]) for name in ("rhost", "user", "qName", "disp")),
    )
)


class Till:
    """Writes the rows of one till."""

    def __init__(self, shop: Shop, name: str = "one", *, created: int = 1, epoch: int = 1) -> None:
        self.shop, self.name, self.created, self.epoch = shop, name, created, epoch

    def publish(
        self, at: float, *, table: ClassVersion = TILLS, deleted: int = 0, statistics: bool = False, **values: Any
    ) -> None:
        """Add a message, with properties unless it has statistics. It waits for a commit."""
        self.shop.add_schema(table)
        own = (self.name, self.epoch, self.created * 10**9, deleted * 10**9, not statistics, statistics)
        cells = tuple(values.get(column.name) for column in table.columns)
        self.shop.add(RowKind.OBJECTS, at, (*own, *cells), table=table, epoch=self.epoch)


def read(out: Path, tables: Iterable[str] | None = None) -> dict[str, list[dict[str, Any]]]:
    """All tables of an audit, or some of them, their rows in an order."""
    from qmf.pipeline.audit.schemas import ALL_TABLES
    from qmf.pipeline.lake.lake_table import LakeTable

    found = {}
    for name, columns in ALL_TABLES.items():
        if tables is not None and name not in tables:
            continue
        table = LakeTable(str(out / name))
        rows = table.dataset(table.snapshot().files).to_table(list(columns)).to_pylist()
        found[name] = sorted(rows, key=str)
    return found
