"""The rows of samples of one class, part by part in the order of time, and what is last known after each part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs

from qmf.pipeline.rollup.rows import carry
from qmf.pipeline.rollup.source import ClassSource
from qmf.pipeline.rollup.windows import roll_up
from qmf.pipeline.rollup.zones import Span

_NEXT = "qmf_next"


@attrs.define
class ClassRows:
    """Makes rows, and holds a temporary table until it is dropped.

    Attributes:
        connection: to DuckDB.
        continued: counters outlive restarts of their agents.
        table: for what is last known.
        carried: `table` where something is known; None before.
    """

    connection: Any
    continued: bool
    table: str
    carried: str | None = None

    def make(self, source: ClassSource, seconds: int, table: str, spans: Sequence[Span] = (), where: str = "") -> bool:
        """Make a table of the rows of some samples; False for no samples.

        Args:
            source: with the samples.
            seconds: of the windows.
            table: to make, or to replace.
            spans: the days in which the samples are, of another zone than UTC.
            where: condition for the samples, as `s`; empty for all.
        """
        if not source.days:
            return False
        samples = source.sql(self.connection)
        with roll_up(
            self.connection,
            f"(select * from {samples} as s where {where})" if where else samples,
            source.members,
            package=source.package,
            name=source.name,
            seconds=seconds,
            continued=self.continued,
            carried=self.carried,
            spans=spans,
        ) as rows:
            if rows is not None:
                self.connection.execute(f"create or replace temp table {table} as {rows}")
            return rows is not None

    def keep(self, rows: str, oldest_ns: int) -> None:
        """Remember the last samples of some rows, and of what was known before.

        Args:
            rows: a table, or a query in parentheses.
            oldest_ns: what is older is forgotten.
        """
        self.connection.execute(f"create or replace temp table {_NEXT} as {carry(rows, self.carried, oldest_ns)}")
        self.connection.execute(f"drop table if exists {self.table}")
        self.connection.execute(f"alter table {_NEXT} rename to {self.table}")
        self.carried = self.table

    def drop(self) -> None:
        """Forget what is known."""
        self.connection.execute(f"drop table if exists {self.table}")
        self.carried = None
