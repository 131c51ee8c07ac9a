"""Values that are far from the usual ones, by median and MAD per hour of the day.

What is usual at an hour of the day is the median of the values at that hour of all days; the spread is the median of
the distances from it (MAD), times 1.4826, which is the standard deviation of a normal distribution. Neither is moved
by the anomalies themselves. With fewer than `MIN_DAYS` days, the values of the whole time are used, whatever the hour.

A single value far away is common where values have heavy tails, so an anomaly has at least `MIN_WINDOWS` windows in
succession on the same side, and what happens again and again is none. How often this is wrong is measured by
``bench/report_anomalies.py``.
"""

from __future__ import annotations

from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import quote_name

#: Days with values at an hour of the day, from which on an hour is compared with the same hour of other days.
MIN_DAYS = 5

#: Windows in succession at least, and their distance from the median in spreads.
MIN_WINDOWS, LIMIT = 3, 5.0

#: Values of a series at least.
MIN_VALUES = 30

#: Standard deviations of a normal distribution per MAD, and per mean distance.
_PER_MAD, _PER_MEAN = 1.4826, 1.2533

#: What happens again and again is usual: so many times before, and in the time that is searched, at most.
MAX_BEFORE, MAX_INSIDE = 1, 4

#: By which part the mean distance counts, at an hour of the day and where the whole time is usual: where values have
#: few steps, heavy tails or two levels, the MAD is too small.
_TAILS, _LEVELS = 0.5, 1.0

#: A distance of this part of the median is never unusual.
_LEVEL = 0.1


@attrs.frozen
class FoundAnomaly:
    """An anomaly: the columns that name its series, and `qmf.pipeline.report.model.Anomaly`'s values."""

    key: tuple[Any, ...]
    start: float
    end: float
    value: float
    usual: float
    spread: float
    days: int


def find_anomalies(
    connection: Any, values: str, key: tuple[str, ...], *, first: float, last: float, since: float, step: int
) -> list[FoundAnomaly]:
    """The anomalies from `first` to `last`, the largest first; what is usual is said by the values from `since` on.

    Values are a table with the columns of `key`, which name a series, `t` and `value`. Times, and `step`, a window's
    length, are in seconds.
    """
    names = ", ".join(quote_name(name) for name in key)
    sql = f"""
        with known as (
            select {names}, t, value, floor(t / 3600) % 24 as hour, floor(t / 86400) as day from {values}
            where t >= {since!r} and t < {last!r}
        ), hours as (
            select {names}, hour, median(value) as middle, count(distinct day) as days from known group by all
        ), wholes as (
            select {names}, median(value) as middle, count(*) as number from known group by all
        ), usual as (
            select k.*, h.days >= {MIN_DAYS} as by_hour, h.days as days,
                case when h.days >= {MIN_DAYS} then h.middle else w.middle end as middle
            from known as k join hours as h using ({names}, hour) join wholes as w using ({names})
            where w.number >= {MIN_VALUES}
        ), spreads as (
            select {names}, case when by_hour then hour else -1 end as slot, median(abs(value - middle)) as mad,
                avg(abs(value - middle)) as mean
            from usual group by all
        ), scored as (
            select u.*, greatest({_PER_MAD} * s.mad,
                    case when u.by_hour then {_TAILS} else {_LEVELS} end * {_PER_MEAN} * s.mean,
                    abs(u.middle) * {_LEVEL / LIMIT}) as spread
            from usual as u join spreads as s
                on {" and ".join(f"u.{quote_name(name)} is not distinct from s.{quote_name(name)}" for name in key)}
                and s.slot = case when u.by_hour then u.hour else -1 end
        ), flagged as (
            select *, sign(value - middle) as side, abs(value - middle) / spread as score,
                floor(t / {step}) - row_number() over (partition by {names}, sign(value - middle) order by t) as island
            from scored where spread > 0 and abs(value - middle) > {LIMIT} * spread
        ), islands as (
            select {names}, side, min(t) as begins, max(t) + {step} as ends, arg_max(value, score) as value,
                arg_max(middle, score) as middle, arg_max(spread, score) as spread,
                max(case when by_hour then days else 0 end) as days, max(score) as score
            from flagged group by {names}, side, island having count(*) >= {MIN_WINDOWS}
        ), counted as (
            select *, count(*) filter (ends <= {first!r}) over own as before,
                count(*) filter (ends > {first!r}) over own as inside
            from islands window own as (partition by {names}, side)
        )
        select {names}, greatest(begins, {first!r}), ends, value, middle, spread, days
        from counted where ends > {first!r} and before <= {MAX_BEFORE} and inside <= {MAX_INSIDE}
        order by score desc, {names}, begins
    """
    width = len(key)
    return [FoundAnomaly(tuple(row[:width]), *row[width : width + 6]) for row in connection.execute(sql).fetchall()]


def days_compared(connection: Any, values: str, *, since: float, last: float) -> int:
    ((days,),) = connection.execute(
        f"select count(distinct floor(t / 86400)) from {values} where t >= {since!r} and t < {last!r}"
    ).fetchall()
    return int(days)
