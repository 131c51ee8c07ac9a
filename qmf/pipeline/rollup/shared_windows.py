"""The SQL of windows that one task has made of samples, and another one joins with those before; see `statements`.

They have the same columns whatever is known of the samples. What a member has of its own, where some of the samples
lack it, is null elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from qmf.pipeline.rollup.members import NumberMember
from qmf.pipeline.rollup.statements import ClassSamples
from qmf.schema import Style

_TIMES = (
    *("samples", "first_ns", "last_ns", "first_epoch", "last_epoch", "first_created", "last_created"),
    *("deleted", "held_ns"),
)
_NUMBERS = ("first", "last", "low", "high", "total")
_EXACT = "decimal(38, 0)"


def window_columns(members: Sequence[NumberMember]) -> dict[str, str]:
    """The columns, with their types in SQL."""
    times = {name: "boolean" if name == "deleted" else "bigint" for name in _TIMES}
    found = {"_agent": "varchar", "_object": "varchar", "_window": "bigint", **times}
    for number, member in enumerate(members):
        found |= {f"{name}{number}": _EXACT if member.whole else "double" for name in _NUMBERS}
        found[f"weight{number}"] = _EXACT
        if member.style is Style.COUNT:
            found |= {f"delta{number}": _EXACT, f"resets{number}": "bigint"}
        elif member.gauge:
            found[f"area{number}"] = "double"
        found |= {f"{name}{number}": type for name, type in times.items()}
    return found


def shared_windows(samples: ClassSamples, table: str) -> str:
    """The windows of a table of `statements.windows`, as a query."""
    lacking = {
        f"{name}{number}" for name in _TIMES for number in range(len(samples.members)) if number not in samples.sparse
    }
    columns = ", ".join(
        f"cast({'null' if name in lacking else name} as {type}) as {name}"
        for name, type in window_columns(samples.members).items()
    )
    objects = f"(select distinct _series, _agent, _object from {samples.keys})"
    return f"select {columns} from {table} join {objects} using (_series)"


def sparse_members(members: Sequence[NumberMember], table: str) -> str:
    """A query of one row: whether some windows of a table have columns of their own for a member, for each member."""
    return f"select {', '.join(f'count(samples{number}) > 0' for number in range(len(members)))} from {table}"


def shared_keys(table: str) -> str:
    """A number for each object that has windows in a table."""
    return f"select row_number() over () as _series, * from (select distinct _agent, _object from {table})"


def joined_windows(samples: ClassSamples, table: str) -> str:
    """The windows of a table as `statements.windows` has them, with the objects that `samples.keys` numbers."""
    changes: dict[str, str] = {}
    for number, member in enumerate(samples.members):
        if number in samples.sparse:
            own = f"samples{number} is null"
            changes |= {f"{name}{number}": f"case when {own} then {name} else {name}{number} end" for name in _TIMES}
        if member.whole:
            changes |= {f"{name}{number}": f"cast({name}{number} as hugeint)" for name in _NUMBERS}
    replaced = ", ".join(f"{value} as {name}" for name, value in changes.items())
    columns = f"shared.* exclude (_agent, _object){f' replace ({replaced})' if replaced else ''}"
    return (
        f"select _series, {columns} from {table} as shared join {samples.keys} as keys on "
        "shared._object = keys._object and shared._agent is not distinct from keys._agent"
    )
