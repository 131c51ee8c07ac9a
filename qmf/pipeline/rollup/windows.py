"""The roll-up of the samples of one class, by DuckDB: windows of all sizes, and what was known before."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import import_duckdb
from qmf.pipeline.rollup import rows, statements
from qmf.pipeline.rollup.columns import coarser
from qmf.pipeline.rollup.members import NumberMember, window_seconds
from qmf.pipeline.rollup.rows import carry
from qmf.pipeline.rollup.source import ClassSource
from qmf.pipeline.rollup.statements import ClassSamples
from qmf.pipeline.rollup.zones import Span, WindowGrid, Zone, base_seconds

#: The table that `made_windows` makes.
WINDOWS = "qmf_windows"
_KEYS, _CORRECTIONS = "qmf_keys", "qmf_corrections"


@contextmanager
def made_windows(
    connection: Any, source: str, members: Sequence[NumberMember], grid: WindowGrid, *, continued: bool
) -> Iterator[ClassSamples | None]:
    """Make `WINDOWS` of samples of one class, see `statements.windows`; it is dropped at the end of the block.

    Args:
        connection: to DuckDB.
        source: the samples as SQL, a table or a function.
        members: of the class, at least one.
        grid: of the windows.
        continued: counters outlive restarts of their agents: only a lower value is a restart.

    Yields:
        the samples, with what is known of them now; None for no samples.
    """
    samples = ClassSamples(source, members, grid, continued, _KEYS)
    try:
        connection.execute(f"create temp table {_KEYS} as {statements.keys(source)}")
        if not connection.execute(f"select 1 from {_KEYS} limit 1").fetchall():
            yield None
            return
        ((steady,),) = connection.execute(statements.steady(_KEYS)).fetchall()
        yield _make_windows(connection, attrs.evolve(samples, steady=bool(steady)))
    finally:
        for table in (_KEYS, WINDOWS, _CORRECTIONS):
            connection.execute(f"drop table if exists {table}")


@contextmanager
def roll_up(
    connection: Any,
    source: str,
    members: Sequence[NumberMember],
    *,
    package: str,
    name: str,
    seconds: int,
    continued: bool,
    carried: str | None = None,
    spans: Sequence[Span] = (),
) -> Iterator[str | None]:
    """Roll up samples of one class.

    Args:
        connection, source, members, continued: as of `made_windows`.
        package, name: of the class.
        seconds: of a window.
        carried: a table with `rows.CARRIED_COLUMNS`: what was last known before the samples.
        spans: the days in which the samples are, of another zone than UTC; then `seconds` divides `ZONE_STEP`.

    Yields:
        SQL that selects a row per object, window and member, with the columns of the table of roll-ups; None for no
        samples.
    """
    grid = WindowGrid(seconds, spans)
    with made_windows(connection, source, members, grid, continued=continued) as samples:
        yield None if samples is None else rows.rows(samples, package, name, WINDOWS, carried)


def _make_windows(connection: Any, samples: ClassSamples) -> ClassSamples:
    """Make the table of windows; returns what is known of the samples now."""
    # Most samples have all members, times of their own and need no more than 64 bits, and then it takes half the time.
    # Whether they do is known afterwards.
    samples = _aggregate(connection, samples)
    ((ties, *lacks),) = connection.execute(statements.surprises(samples, WINDOWS)).fetchall()
    sparse = tuple(number for number, lack in enumerate(lacks) if lack)
    if ties or sparse:
        connection.execute(f"drop table {WINDOWS}")
        steady = samples.steady and not sparse
        samples = _aggregate(connection, attrs.evolve(samples, sparse=sparse, steady=steady, ties=bool(ties)))
    if samples.counters:
        _correct(connection, samples)
    return samples


def _aggregate(connection: Any, samples: ClassSamples) -> ClassSamples:
    duckdb = import_duckdb()
    if not samples.large:
        try:
            connection.execute(f"create temp table {WINDOWS} as {statements.windows(samples)}")
            return samples
        except (duckdb.ConversionException, duckdb.OutOfRangeException):
            samples = attrs.evolve(samples, large=True)
    connection.execute(f"create temp table {WINDOWS} as {statements.windows(samples)}")
    return samples


def _correct(connection: Any, samples: ClassSamples) -> None:
    """Walk the counters again, in the order of arrival, where it is not that of the times."""
    ((back,),) = connection.execute(f"select count(*) from {WINDOWS} where {statements.went_back(samples)}").fetchall()
    if back:
        connection.execute(f"create temp table {_CORRECTIONS} as {statements.corrections(samples, WINDOWS)}")
        connection.execute(statements.correction_update(samples, WINDOWS, _CORRECTIONS))


_NEXT = "qmf_next"


@attrs.define
class ClassRows:
    """Makes rows, and holds a temporary table of what is last known until it is dropped.

    Attributes:
        continued: counters outlive restarts of their agents.
        carried: `table` where something is known; None before.
    """

    connection: Any
    continued: bool
    table: str
    carried: str | None = None

    def make(self, source: ClassSource, seconds: int, table: str, spans: Sequence[Span] = (), where: str = "") -> bool:
        """Make or replace a table of the rows of some samples, in windows of so many seconds; False for no samples.

        `spans` are the days of the samples, of another zone than UTC, `where` is a condition for the samples, as `s`.
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
        """Remember the last samples of some rows, and of what was known before, but for those that are older."""
        self.connection.execute(f"create or replace temp table {_NEXT} as {carry(rows, self.carried, oldest_ns)}")
        self.connection.execute(f"drop table if exists {self.table}")
        self.connection.execute(f"alter table {_NEXT} rename to {self.table}")
        self.carried = self.table

    def drop(self) -> None:
        """Forget what is known."""
        self.connection.execute(f"drop table if exists {self.table}")
        self.carried = None


def make_sizes(
    connection: Any, base: str, sizes: Sequence[str], zone: Zone, spans: Sequence[Span]
) -> Iterator[tuple[str, str]]:
    """Make a table of the rows of each size of windows from those of `base_seconds`; yields a size, and its table."""
    made: dict[int, str] = {base_seconds(sizes, zone): base}
    for size in sorted(sizes, key=window_seconds):
        seconds = window_seconds(size)
        if seconds not in made:
            finer = next(made[known] for known in reversed(made) if seconds % known == 0)
            made[seconds] = f"{base}_{size}"
            connection.execute(f"create temp table {made[seconds]} as {coarser(finer, seconds, spans)}")
        yield size, made[seconds]
