"""The SQL that makes rows of the table from windows, see `statements`: each joined with the window before."""

from __future__ import annotations

import attrs

from qmf.pipeline.duckdb_queries import quote_name, text
from qmf.pipeline.rollup.columns import ROLLUP_COLUMNS, derived_columns, pack_columns, selection
from qmf.pipeline.rollup.statements import ClassSamples, Life
from qmf.schema import Style

#: The sample before a window is looked for in so many days before the day of the window.
LOOK_BACK_DAYS = 7

_DAY_NS = 86_400 * 10**9

#: What is kept of the last sample of a member.
CARRIED_COLUMNS = (
    *("agent", "object", "member", "last_ns", "last_epoch", "last_created_ns"),
    *("last_exact", "last", "deleted"),
)


@attrs.frozen
class _Before:
    """The sample before a window, as SQL.

    Attributes:
        known: there is one, and it isn't too old.
        ns, value, life: of it.
    """

    known: str
    ns: str
    value: str
    life: Life


def rows(samples: ClassSamples, package: str, name: str, table: str, carried: str | None) -> str:
    """A row per member of each row in a table of `windows`, in the order of time.

    Args:
        samples: what `table` was made of.
        package, name: of the class.
        table: of `windows`.
        carried: a table with `CARRIED_COLUMNS`: what was last known from samples before those of `table`, each member
            once; None for nothing.
    """
    linked = _link_windows(samples, table, carried)
    each = [
        _member(samples, package, name, number, is_carried=carried is not None)
        for number in range(len(samples.members))
    ]
    # What follows from other columns is stated once for all members: planning it for each would take longer than the
    # rows of a small class.
    start, end = (f"({time} * {10**9})" for time in ("_window", samples.grid.end("_window")))
    known = {column: quote_name(column) for column in ROLLUP_COLUMNS}
    columns = selection({**known, **derived_columns(known, start, end)})
    return (
        f"with linked as ({linked}), known as ({' union all '.join(each)}) "
        f"select {columns} from known order by window_start"
    )


def carry(rows: str, carried: str | None, oldest_ns: int) -> str:
    """What is last known after some rows, with `CARRIED_COLUMNS`.

    Args:
        rows: of the table, as SQL.
        carried: what was known before them: a table, or None for nothing.
        oldest_ns: what is older is left out.
    """
    columns = ", ".join(CARRIED_COLUMNS)
    both = f"select {columns} from {rows}" + (f" union all select {columns} from {carried}" if carried else "")
    return (
        f"select unnest(arg_max({pack_columns(CARRIED_COLUMNS)}, last_ns)) from ({both}) where last_ns >= {oldest_ns} "
        "group by agent, object, member"
    )


#: Columns of a window about its last sample, and their names in the window after.
_ENDS = {
    "last_ns": "before_ns",
    "last_epoch": "before_epoch",
    "last_created": "before_created",
    "deleted": "before_deleted",
}


def _link_windows(samples: ClassSamples, table: str, carried: str | None) -> str:
    """The windows, each with the last sample before it: ``before_ns`` and others, and ``before3`` of member 3."""
    columns = [
        *("windows.*", "_agent", "_object"),
        *(f"lag({name}) over p as {before}" for name, before in _ENDS.items()),
    ]
    for number, member in enumerate(samples.members):
        if number in samples.sparse:
            ends = _packed_ends(f"last_created{number}", str(number), f"last{number}")
            is_there = f"samples{number} > 0"
            columns.append(f"lag(case when {is_there} then {ends} end ignore nulls) over p as before{number}")
        elif member.linked:
            columns.append(f"lag(last{number}) over p as before{number}")
    source = f"{table} as windows join (select distinct _series, _agent, _object from {samples.keys}) using (_series)"
    if carried:
        source += f" left join ({_pivot(samples, carried)}) as known using (_series)"
        columns.append("known.* exclude (_series)")
    return f"select {', '.join(columns)} from {source} window p as (partition by _series order by _window)"


def _packed_ends(created: str, at: str, value: str) -> str:
    """The last sample of a window as one value, as SQL."""
    return f"{{'n': last_ns{at}, 'e': last_epoch{at}, 'c': {created}, 'd': deleted{at}, 'v': {value}}}"


def _pivot(samples: ClassSamples, carried: str) -> str:
    """A row per object of what was last known, a column per member."""
    columns = []
    for number, member in enumerate(samples.members):
        if member.linked:
            value = "last_exact" if member.whole else "last"
            ends = _packed_ends("last_created_ns", "", value)
            columns.append(f"any_value({ends}) filter (member = {text(member.name)}) as carried{number}")
    return (
        f"select _series{''.join(f', {column}' for column in columns)} from {carried} as known "
        f"join (select distinct _series, _agent, _object from {samples.keys}) as keys "
        "on known.object = keys._object and known.agent is not distinct from keys._agent group by _series"
    )


def _before(samples: ClassSamples, number: int, *, is_carried: bool) -> _Before:
    """The sample before, from the window before, else from what was carried."""
    fields = {
        **{"n": "before_ns", "e": "before_epoch", "c": "before_created", "d": "before_deleted"},
        "v": f"before{number}",
    }
    if number in samples.sparse:
        fields = {key: f"before{number}.{key}" for key in fields}
    if is_carried:
        missing = fields["n"]
        fields = {
            key: f"case when {missing} is null then carried{number}.{key} else {value} end"
            for key, value in fields.items()
        }
    oldest = f"{samples.grid.day('_window')} * {10**9} - {LOOK_BACK_DAYS * _DAY_NS}"
    ns, epoch, created, deleted, value = (f"({fields[key]})" for key in "necdv")
    return _Before(f"coalesce({ns} >= {oldest}, false)", ns, value, Life(epoch, created, deleted))


def _member(samples: ClassSamples, package: str, name: str, number: int, *, is_carried: bool) -> str:
    """The rows of one member."""
    member, at = samples.members[number], samples.suffix(number)
    values = {
        "window_start": "make_timestamptz(_window * 1000000)",
        "window_end": f"make_timestamptz({samples.grid.end('_window')} * 1000000)",
        "package": text(package),
        "class": text(name),
        "agent": "_agent",
        "object": "_object",
        "member": text(member.name),
        "style": text(member.style.value),
        "unit": "null" if member.unit is None else text(member.unit),
        **{field: f"{field}{at}" for field in ("samples", "first_ns", "last_ns", "first_epoch", "last_epoch")},
        "last_created_ns": f"last_created{at}",
        **{f"{field}_exact": f"{field}{number}" if member.whole else "null" for field in _NUMBERS},
        **{field: f"cast({field}{number} as double)" for field in _NUMBERS},
        "weight": f"weight{number}",
        "deleted": f"deleted{at}",
        **_neighbours(samples, number, is_carried=is_carried),
    }
    columns = ", ".join(
        f"cast({value} as {ROLLUP_COLUMNS[column]}) as {quote_name(column)}" for column, value in values.items()
    )
    return f"select _window, {columns} from linked where samples{at} > 0"


_NUMBERS = ("first", "last", "low", "high", "total")


def _neighbours(samples: ClassSamples, number: int, *, is_carried: bool) -> dict[str, str]:
    """The columns that depend on the samples beside each other, and on the one before the window."""
    member, at = samples.members[number], samples.suffix(number)
    names = ("before_ns", "before", "delta_exact", "resets", "area", "held_ns")
    nothing = dict.fromkeys(names, "null")
    if not member.linked:
        return nothing
    before = _before(samples, number, is_carried=is_carried)
    known = before.known
    found = {**nothing, "before_ns": f"case when {known} then {before.ns} end"}
    is_other = before.life.ends_before(f"first_epoch{at}", f"first_created{at}", continued=samples.continued)
    if member.style is Style.COUNT:
        reset = f"(first{number} < {before.value} or {is_other})"
        step = f"case when not {known} then 0 when {reset} then first{number} else first{number} - {before.value} end"
        return {
            **found,
            "delta_exact": f"delta{number} + ({step})",
            "resets": f"resets{number} + case when {known} and {reset} then 1 else 0 end",
        }
    holds = f"{known} and not {before.life.deleted} and not {is_other}"
    return {
        **found,
        "before": f"case when {holds} then cast({before.value} as double) end",
        "area": f"area{number}",
        "held_ns": f"held_ns{at}",
    }
