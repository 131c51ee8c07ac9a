"""The values of all members over time, by the kernel of roll-ups: one table that charts, movers and anomalies query.

A value per window: of a gauge its mean, of a counter its growth per second.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import attrs

from qmf.pipeline.audit.schemas import arrow_schema, empty
from qmf.pipeline.duckdb_queries import quote_name, text
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.report.audited import own_object
from qmf.pipeline.report.source import ReportSource, StoredRollups
from qmf.pipeline.report.time_range import NS, TimeRange
from qmf.pipeline.rollup.class_rollup import ClassRollup
from qmf.pipeline.rollup.columns import ROLLUP_COLUMNS, coarser
from qmf.pipeline.rollup.members import window_seconds
from qmf.pipeline.rollup.source import ClassSource, class_sources
from qmf.pipeline.rollup.windows import roll_up
from qmf.pipeline.runners.runner import duckdb_batches
from qmf.schema import TYPES, ClassSchema, Style
from qmf.views.counters import is_counter

#: The table of values.
VALUES = "report_values"

#: The columns that name a series.
KEY = ("package", "class", "agent", "object", "member")

#: The table of the samples of one class, and how many rows are read into it at most: others are rolled up day by day.
_SAMPLES, _MOST_LOADED = "report_samples", 2_000_000

#: The roll-ups of a day.
_ROLLED = "report_rolled"

#: So long before a range, samples are read: gauges hold their values, counters grow since then.
_BEFORE_NS = 900 * NS

#: A time that never falls in so many steps is one that only grows.
_CLOCK_STEPS = 10

_COLUMNS = {
    **dict.fromkeys((*KEY, "unit"), "varchar"),
    "counter": "boolean",
    "place": "integer",
    **dict.fromkeys(("t", "before", "value"), "double"),
}


@attrs.frozen(kw_only=True)
class SeriesOptions:
    """What to read: windows of a `size` in some ranges, of the classes that are named, or of all.

    `continued` counters outlive restarts of their agents; `own` are connections whose objects are left out, or None.
    """

    classes: tuple[str, ...]
    continued: bool
    size: str
    ranges: tuple[TimeRange, ...]
    own: Sequence[str] | None
    rollups: str | None = None


def make_values(source: ReportSource, options: SeriesOptions) -> tuple[int, int]:
    """Make the table `VALUES`: the series, and start (`t`, in seconds) and value of windows.

    Of counters it has also `before`, the time of the sample from which the growth was counted. Days of classes whose
    samples are all rolled up are taken from the table of roll-ups; returns the number of days of classes that were
    read, and of those of them. `LakeError` for a class that is not there.
    """
    source.run(f"create temp table {VALUES} as {empty(_COLUMNS)}")
    days = 0
    with source.errors():
        tasks: list[_ClassTask] = []
        stored: dict[str, list[_ClassTask]] = {}
        rolled = StoredRollups.find(source.lake, options.rollups, options.size, continued=options.continued)
        for own in class_sources(source.lake, options.classes):
            chosen = _restrict(options, own)
            if not own.members or not chosen.days:
                continue
            days += len(chosen.days)
            task = _ClassTask(options, chosen, tuple(_counters(source, own)))
            known = frozenset() if rolled is None else rolled.days_of(own) & set(chosen.days)
            for day in known:
                stored.setdefault(day, []).append(attrs.evolve(task, samples=attrs.evolve(chosen, days={})))
            left = {day: files for day, files in chosen.days.items() if day not in known}
            if left:
                tasks.append(attrs.evolve(task, samples=attrs.evolve(chosen, days=left)))
        days_stored = [
            _DayTask(rolled.table, rolled.size, rolled.files[day], tuple(stored[day]))
            for day in sorted(stored)
            if rolled is not None
        ]
        if tasks or days_stored:
            both: list[_ClassTask | _DayTask] = [*tasks, *days_stored]
            made = source.table_of_rows(
                source.runner.map(both, lambda own, task: task.values(own), arrow_schema(_COLUMNS))
            )
            source.connection.execute(f"insert into {VALUES} from {made}")
    _drop_clocks(source)
    return days, sum(len(item.classes) for item in days_stored)


@attrs.frozen
class _ClassTask:
    """The samples of a class to make values of, and the members that only grow."""

    options: SeriesOptions
    samples: ClassSource
    counters: tuple[str, ...]

    def values(self, connection: Any) -> Iterator[Any]:
        options, samples = self.options, self.samples
        if samples.samples(None, None) > _MOST_LOADED:
            rollup = ClassRollup(connection, samples, (options.size,), options.continued)
            for made in rollup.rows(sorted(samples.days)):
                connection.register(_ROLLED, made.table)
                yield from duckdb_batches(connection, _rollup_query(_ROLLED, self))
            return
        # Planning costs more than the rows: all days at once, from a table, since the kernel reads them several times.
        rows = samples.sql(connection, sorted(samples.days))
        connection.execute(f"create or replace temp table {_SAMPLES} as select * from {rows}")
        with roll_up(
            connection,
            _SAMPLES,
            samples.members,
            package=samples.package,
            name=samples.name,
            seconds=window_seconds(options.size),
            continued=options.continued,
        ) as found:
            if found is not None:
                yield from duckdb_batches(connection, _rollup_query(f"({found})", self))


@attrs.frozen
class _DayTask:
    """The roll-ups of a day to take values of some classes from."""

    table: LakeTable
    size: str
    files: Sequence[TableFile]
    classes: tuple[_ClassTask, ...]

    def values(self, connection: Any) -> Iterator[Any]:
        names = ", ".join(quote_name(name) for name in ROLLUP_COLUMNS)
        connection.register("report_rollups", self.table.dataset(self.files))
        of_classes = " or ".join(f"({_of_class(task)})" for task in self.classes)
        connection.execute(
            f"create or replace temp table {_ROLLED} as select {names} from report_rollups where {of_classes}"
        )
        connection.unregister("report_rollups")
        for task in self.classes:
            seconds = window_seconds(task.options.size)
            rows = f"(select * from {_ROLLED} where {_of_class(task)})"
            if window_seconds(self.size) != seconds:
                rows = f"({coarser(rows, seconds)})"
            yield from duckdb_batches(connection, _rollup_query(rows, task))


def _of_class(task: _ClassTask) -> str:
    samples, own = task.samples, task.options.own
    condition = None if own is None else own_object(samples.package, samples.name, own, "object")
    left_out = f" and not coalesce({condition}, false)" if condition else ""
    return f"package = {text(samples.package)} and class = {text(samples.name)}{left_out}"


def _restrict(options: SeriesOptions, samples: ClassSource) -> ClassSource:
    """Only the rows of the ranges, and the files that may have such."""
    times = [(item.first_ns - _BEFORE_NS, item.last_ns) for item in options.ranges]
    days = {
        day: [
            (table, file)
            for table, file in files
            if any((file.last_ns or last) >= first and (file.first_ns or 0) < last for first, last in times)
        ]
        for day, files in samples.days.items()
    }
    where = " or ".join(f"(_ts_ns >= {first} and _ts_ns < {last})" for first, last in times)
    own = None if options.own is None else own_object(samples.package, samples.name, options.own)
    where = f"({where}) and not coalesce({own}, false)" if own else f"({where})"
    return attrs.evolve(samples, days={day: files for day, files in days.items() if files}, where=where)


def _durations(samples: ClassSource) -> list[str]:
    """The members that are durations, whether their unit says so or not."""
    columns = (column for version in samples.versions for column in version.columns)
    return list(dict.fromkeys(column.member for column in columns if TYPES[column.type].base == "deltaTime"))


def _counters(source: ReportSource, samples: ClassSource) -> list[str]:
    """The members that only grow: those of the counting types, and those that are known by their names."""
    found: dict[str, bool] = {member.name: member.style is Style.COUNT for member in samples.members}
    for item in source.classes:
        schema = item.schema
        if isinstance(schema, ClassSchema) and item.version in samples.versions:
            for statistic in schema.statistics:
                if statistic.name in found:
                    found[statistic.name] = is_counter(samples.package, statistic)
    return [name for name, counts in found.items() if counts]


def _rollup_query(table: str, task: _ClassTask) -> str:
    samples, counters, options = task.samples, task.counters, task.options
    members, durations = samples.members, _durations(samples)
    count = text(Style.COUNT.value)
    names = ", ".join(text(name) for name in counters) or "''"
    times_of = ", ".join(text(name) for name in durations) or "''"
    start = "epoch(window_start)"
    span = "(last_ns - coalesce(before_ns, first_ns)) / 1e9"
    # Other agents than ours have counters whose type doesn't say so; their growth is that of a gauge.
    grown = (
        f"case when {span} > 0 and last >= coalesce(before, first) then (last - coalesce(before, first)) / ({span}) end"
    )
    value = f"case when member not in ({names}) then mean when style = {count} then rate else {grown} end"
    places = " ".join(f"when {text(member.name)} then {number}" for number, member in enumerate(members))
    step = window_seconds(options.size)
    times = " or ".join(
        f"({start} >= {item.first_window(step)} and {start} < {item.last_ns / NS!r})" for item in options.ranges
    )
    return (
        f"select * from (select package, class, agent, object, member, "
        f"case when unit is null and member in ({times_of}) then 'nanosecond' else unit end as unit, "
        f"member in ({names}) as counter, case member {places} end as place, {start} as t, "
        f"coalesce(before_ns, first_ns) / 1e9 as before, {value} as value from {table} where {times}) "
        "where value is not null and not isnan(value)"
    )


def _drop_clocks(source: ReportSource) -> None:
    """Leave out times that only grow, such as how long a program has run: their values say nothing."""
    source.run(
        f"""
        delete from {VALUES} as v using (
            select package, class, member from (
                select *, value - lag(value) over (partition by {", ".join(KEY)} order by t) as step,
                    abs(value) * 1e-6 as noise
                from {VALUES} where not counter and unit in ('nanosecond', 'microsecond', 'millisecond', 'second')
            ) group by all
            having min(step + noise) >= 0 and max(step - noise) > 0 and count(step) >= {_CLOCK_STEPS}
        ) as clocks where v.package = clocks.package and v.class = clocks.class and v.member = clocks.member
        """
    )
