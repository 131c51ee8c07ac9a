"""The roll-up of the samples of one class, by DuckDB."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from qmf.pipeline.aggregation import statements
from qmf.pipeline.aggregation.members import NumberMember
from qmf.pipeline.aggregation.statements import ClassSamples

_WINDOWS, _CORRECTIONS = "qmf_windows", "qmf_corrections"


@contextmanager
def rolled_up(
    connection: Any,
    source: str,
    members: Sequence[NumberMember],
    *,
    package: str,
    name: str,
    seconds: int,
    continued: bool,
) -> Iterator[str | None]:
    """Roll up samples of one class.

    Args:
        connection: to DuckDB; two temporary tables are made in it, and dropped at the end of the block.
        source: the samples as SQL, a table or a function.
        members: of the class, at least one.
        package, name: of the class.
        seconds: of a window.
        continued: counters outlive restarts of their agents: only a lower value is a restart.

    Yields:
        SQL that selects a row per object, window and member, with the columns of the table of roll-ups; None for no
        samples.
    """
    ((total, *counts),) = connection.execute(statements.presence(source, members)).fetchall()
    if not total:
        yield None
        return
    sparse = [number for number, count in enumerate(counts) if count < total]
    samples = ClassSamples(source, members, sparse, seconds, continued)
    try:
        connection.execute(f"create temp table {_WINDOWS} as {statements.windows(samples)}")
        if samples.counters:
            _correct(connection, samples)
        yield statements.members(samples, package, name, _WINDOWS)
    finally:
        for table in (_WINDOWS, _CORRECTIONS):
            connection.execute(f"drop table if exists {table}")


def _correct(connection: Any, samples: ClassSamples) -> None:
    """Walk the counters again, in the order of arrival, where the clock of an agent was set back."""
    ((back,),) = connection.execute(f"select count(*) from {_WINDOWS} where {statements.went_back(samples)}").fetchall()
    if back:
        connection.execute(f"create temp table {_CORRECTIONS} as {statements.corrections(samples, _WINDOWS)}")
        connection.execute(statements.corrected(samples, _WINDOWS, _CORRECTIONS))
