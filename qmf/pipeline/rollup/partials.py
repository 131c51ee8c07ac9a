"""Partial aggregates: rows of `statements.windows` that were made of some of the samples each, and how they are merged.

A partial says nothing about the time before its first sample, so partials of the same object can be merged to windows
of any larger size, exactly: the step and the time between two of them are added where they meet in a window. They must
follow each other in time. The result is again a table as `statements.windows` makes it, from which `rows.rows` makes
the rows of the table of roll-ups.
"""

from __future__ import annotations

from collections.abc import Iterator

from qmf.pipeline.rollup.columns import held, packed
from qmf.pipeline.rollup.statements import ClassSamples, Life
from qmf.schema import Style

#: The order of the partials of an object that begin at the same time.
STEP = "_step"

#: The columns of a partial besides those of its members, with their types in SQL.
ENDS = {
    "samples": "bigint",
    "first_ns": "bigint",
    "last_ns": "bigint",
    "first_epoch": "bigint",
    "last_epoch": "bigint",
    "first_created": "bigint",
    "last_created": "bigint",
    "deleted": "boolean",
    "held_ns": "hugeint",
}


def member_columns(samples: ClassSamples, number: int) -> dict[str, str]:
    """The columns of a partial for one member, with their types in SQL."""
    member = samples.members[number]
    type = "hugeint" if member.whole else "double"
    found = {f"{name}{number}": type for name in ("first", "last", "low", "high", "total")}
    found[f"weight{number}"] = "hugeint"
    if member.style is Style.COUNT:
        found |= {f"delta{number}": type, f"resets{number}": "hugeint"}
    elif member.gauge:
        found[f"area{number}"] = "double"
    return found


def merged(samples: ClassSamples, table: str) -> str:
    """Windows made of partials, as SQL: rows as of `statements.windows`, with `STEP`.

    Args:
        samples: members and size of the larger windows; no member may be sparse.
        table: of partials: the columns `_series`, `STEP`, `ENDS` and `member_columns`. Those of a series follow each
            other in time. A partial without samples repeats the last sample before others.
    """
    linked = ["*", f"{samples.grid.start('first_ns')} as _window", "row_number() over p as _n"]
    linked += [f"lag({name}) over p as _before_{name}" for name in ("last_ns", "last_epoch", "last_created", "deleted")]
    linked += [f"lag(last{number}) over p as _before{number}" for number in range(len(samples.members))]
    meets = f"_before_last_ns >= _window * {10**9}"
    before = Life("_before_last_epoch", "_before_last_created", "_before_deleted")
    is_other = before.ends_before("first_epoch", "first_created", continued=samples.continued)
    step = [
        "*",
        f"coalesce({meets}, false) as _meets",
        f"{is_other} as _is_other",
        f"case when {meets} and not _before_deleted and not {is_other} then first_ns - _before_last_ns else 0 end "
        "as _gap",
    ]
    firsts, lasts = ["first_epoch", "first_created"], ["last_epoch", "last_created", "deleted"]
    for number in range(len(samples.members)):
        firsts.append(f"first{number}")
        lasts.append(f"last{number}")
    grouped = [
        *("_series", "_window", f"max({STEP}) as {STEP}"),
        *("sum(samples) as samples", "min(first_ns) as first_ns", "max(last_ns) as last_ns"),
        "sum(held_ns + _gap) as held_ns",
        # Values that may be null are packed: null arguments are skipped.
        f"arg_min({packed(firsts)}, _n) as _first",
        f"arg_max({packed(lasts)}, _n) as _last",
    ]
    for number in range(len(samples.members)):
        grouped += _sums(samples, number)
    unpacked = [*(f"_first.{name} as {name}" for name in firsts), *(f"_last.{name} as {name}" for name in lasts)]
    return (
        f"with partial as (select {', '.join(linked)} from {table} "
        f"window p as (partition by _series order by first_ns, {STEP})), "
        f"step as (select {', '.join(step)} from partial), "
        f"merged as (select {', '.join(grouped)} from step group by _series, _window) "
        f"select * exclude (_first, _last), {', '.join(unpacked)} from merged"
    )


def _sums(samples: ClassSamples, number: int) -> Iterator[str]:
    """The columns of a member that are added, and its extremes."""
    member = samples.members[number]
    for name, function in (("low", "min"), ("high", "max"), ("total", "sum"), ("weight", "sum")):
        yield f"{function}({name}{number}) as {name}{number}"
    before, first = f"_before{number}", f"first{number}"
    if member.style is Style.COUNT:
        reset = f"({first} < {before} or _is_other)"
        grown = f"case when not _meets then 0 when {reset} then {first} else {first} - {before} end"
        yield f"sum(delta{number} + ({grown})) as delta{number}"
        yield f"sum(resets{number} + case when _meets and {reset} then 1 else 0 end) as resets{number}"
    elif member.gauge:
        yield f"sum(area{number} + {held(before, '_gap')}) as area{number}"
