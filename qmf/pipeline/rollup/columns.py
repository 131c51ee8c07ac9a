"""The table of roll-ups: its columns, and what makes rows of one window from rows of smaller ones. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

from qmf.pipeline.duckdb_queries import quote_name
from qmf.pipeline.rollup.zones import Span, WindowGrid

#: The member that a row describes.
KEY = ("package", "class", "agent", "object", "member", "style", "unit")

_EXACT = "decimal(38, 0)"

#: The columns of the table, with their types in SQL, in order.
ROLLUP_COLUMNS: Mapping[str, str] = MappingProxyType(
    {
        "window_start": "timestamptz",
        "window_end": "timestamptz",
        **dict.fromkeys(KEY, "varchar"),
        "samples": "bigint",
        "first_ns": "bigint",
        "last_ns": "bigint",
        "before_ns": "bigint",
        "first_epoch": "bigint",
        "last_epoch": "bigint",
        "last_created_ns": "bigint",
        "first_exact": _EXACT,
        "last_exact": _EXACT,
        "low_exact": _EXACT,
        "high_exact": _EXACT,
        "delta_exact": _EXACT,
        "resets": "bigint",
        "weight": _EXACT,
        "total_exact": _EXACT,
        "total": "double",
        "first": "double",
        "last": "double",
        "low": "double",
        "high": "double",
        "before": "double",
        "area": "double",
        "held_ns": "bigint",
        "deleted": "boolean",
        "mean": "double",
        "sample_mean": "double",
        "delta": "double",
        "rate": "double",
    }
)


def derived_columns(values: Mapping[str, str], start_ns: str, end_ns: str) -> dict[str, str]:
    """The columns `delta`, `rate`, `sample_mean` and `mean`, which follow from others of the same row; all as SQL."""
    first, last, before = (f"({values[name]})" for name in ("first_ns", "last_ns", "before_ns"))
    span = f"(({last} - coalesce({before}, {first})) / 1e9)"
    delta = f"cast({values['delta_exact']} as double)"
    weight, total = f"cast({values['weight']} as double)", f"({values['total']})"
    plain = f"case when {weight} > 0 then {total} / {weight} end"
    # The value before holds from the start of the window to the first sample, the last one to the end of the window.
    head = f"case when {values['before']} is null then 0 else {first} - {start_ns} end"
    tail = f"case when {values['deleted']} then 0 else {end_ns} - {last} end"
    area = f"({values['area']} + {value_seconds(values['before'], head)} + {value_seconds(values['last'], tail)})"
    time = f"({values['held_ns']} + ({head}) + ({tail}))"
    timed = f"case when {time} > 0 then {area} / ({time} / 1e9) end"
    return {
        "delta": delta,
        "rate": f"case when {span} > 0 then {delta} / {span} end",
        "sample_mean": plain,
        "mean": f"case when {values['area']} is null then {plain} else coalesce({timed}, {plain}) end",
    }


def value_seconds(value: str, nanoseconds: str) -> str:
    """A value times the seconds that it held, as SQL: 0 for no time, also of an infinite value."""
    return f"case when ({nanoseconds}) > 0 then {value} * (({nanoseconds}) / 1e9) else 0 end"


def coarser(rows: str, seconds: int, spans: Sequence[Span] = ()) -> str:
    """Rows of larger windows: the same, exactly so for whole numbers, as from the samples.

    Args:
        rows: rows of one size, as SQL: a table or a query in parentheses.
        seconds: of the new windows, a multiple of the old ones.
        spans: the days in which the rows are, of another zone than UTC.
    """
    grid = WindowGrid(seconds, spans)
    start = f"({grid.start('first_ns')} * {10**9})"
    # Values that may be null are packed: null arguments are skipped.
    firsts = ("first_ns", "first_epoch", "first_exact", "first", "before_ns", "before")
    lasts = ("last_ns", "last_epoch", "last_created_ns", "last_exact", "last", "deleted")
    pack = {
        "_first": f"arg_min({pack_columns(firsts)}, window_start)",
        "_last": f"arg_max({pack_columns(lasts)}, window_start)",
    }
    # A row whose sample before lies in the same larger window: its value was held until the first sample.
    gap = "case when before is not null and before_ns >= _start then first_ns - before_ns else 0 end"
    sums = {
        "samples": "sum(samples)",
        "low_exact": "min(low_exact)",
        "high_exact": "max(high_exact)",
        "delta_exact": "sum(delta_exact)",
        "resets": "sum(resets)",
        "weight": "sum(weight)",
        "total_exact": "sum(total_exact)",
        "total": "coalesce(cast(sum(total_exact) as double), sum(total))",
        "low": "min(low)",
        "high": "max(high)",
        "area": f"sum(area + {value_seconds('before', gap)})",
        "held_ns": f"sum(held_ns + ({gap}))",
    }
    key = ", ".join(quote_name(name) for name in KEY)
    columns = ", ".join(f"{value} as {quote_name(name)}" for name, value in {**pack, **sums}.items())
    finer = f"(select *, {start} as _start from {rows})"
    grouped = f"select {key}, _start, {columns} from {finer} as finer group by {key}, _start"
    end = f"({grid.end(f'(_start // {10**9})')} * {10**9})"
    values = {
        "window_start": "make_timestamptz(_start // 1000)",
        "window_end": f"make_timestamptz({end} // 1000)",
        **{name: quote_name(name) for name in (*KEY, *sums)},
        **{name: f"_first.{quote_name(name)}" for name in firsts},
        **{name: f"_last.{quote_name(name)}" for name in lasts},
    }
    return f"select {selection({**values, **derived_columns(values, '_start', end)})} from ({grouped}) as larger"


def pack_columns(names: Iterable[str]) -> str:
    """Columns as one value, as SQL."""
    return "{" + ", ".join(f"'{name}': {quote_name(name)}" for name in names) + "}"


def selection(values: Mapping[str, str]) -> str:
    """All columns of the table in their order and types, from their values as SQL."""
    return ", ".join(f"cast({values[name]} as {type}) as {quote_name(name)}" for name, type in ROLLUP_COLUMNS.items())
