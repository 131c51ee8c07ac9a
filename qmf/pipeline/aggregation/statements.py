"""The SQL of roll-ups, for DuckDB.

`keys` numbers the objects, and the runs of recorders, that samples have. `windows` aggregates the samples of one class
to a row per object and window, with numbered columns for each member: ``first3`` is the first value of member 3. These
rows are complete in themselves: they say nothing about the time before the first sample of the window. The module
`rows` joins each with the window before, or with what was last known from earlier samples (``carried``), and makes of
it a row per member, with the columns of the table.

Samples count in the order of their times. Where that contradicts the order in which one run of a recorder received
them, the clock of the agent was set back (``back``), and counters are walked again in the order of arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import attrs

from qmf.pipeline.aggregation.members import NumberMember
from qmf.pipeline.duckdb_queries import quoted
from qmf.schema import Style

#: Bits of the number of a row in its run; the number of the run is above them.
_SEQ_BITS = 40
_BY_TIME = "_ts_ns, _arrival"
_BY_ARRIVAL = "_arrival"
_GROUP = "_series, _window"


@attrs.frozen
class ClassSamples:
    """The samples of one class.

    Attributes:
        source: what to read from, as SQL; it has the columns of samples.
        members: the numbers of the class.
        seconds: of a window.
        continued: counters outlive restarts of their agents.
        keys: the table that `keys` made.
        sparse: numbers of the members that some samples lack.
        large: some whole number needs more than 64 bits.
        steady: the samples of an object have one epoch, and none of them is its end.
    """

    source: str
    members: Sequence[NumberMember]
    seconds: int
    continued: bool
    keys: str
    sparse: Collection[int] = ()
    large: bool = False
    steady: bool = False

    def column(self, name: str) -> str:
        """The name of a column in the statements: names of classes may be any, and differ by their case only."""
        return f"_c{self.columns.index(name)}"

    @property
    def columns(self) -> list[str]:
        """The columns of the members, each once."""
        return list(dict.fromkeys(column for member in self.members for column in member.columns))

    @property
    def clocks(self) -> list[str]:
        """The suffixes of columns that say that a clock was set back: none for all counters that each sample has."""
        return list(dict.fromkeys(self.suffix(number) for number in self.counters))

    def suffix(self, number: int) -> str:
        """The suffix of the columns about samples of a member: none where each sample has it."""
        return str(number) if number in self.sparse else ""

    @property
    def counters(self) -> list[int]:
        """The numbers of the members that are counters."""
        return [number for number, member in enumerate(self.members) if member.style is Style.COUNT]

    def is_present(self, number: int, column: Callable[[str], str] | None = None) -> str:
        """The condition for samples that have a member."""
        column = column or self.column
        member = self.members[number]
        present = f"{column(member.value)} is not null"
        # A mean of no samples has no meaning.
        return f"{present} and {column(member.count)} > 0" if member.count else present


def keys(source: str) -> str:
    """A number for each object and for each run, in the order of their names."""
    return (
        "select *, cast(dense_rank() over (order by _agent, _object) as integer) as _series, "
        f"dense_rank() over (order by _run) << {_SEQ_BITS} as _first_arrival "
        "from (select _agent, _object, _run, min(_epoch) as low_epoch, max(_epoch) as high_epoch, "
        "bool_or(_epoch is null or coalesce(_delete_ns, 0) <> 0) as changes "
        f"from {source} where _statistics group by _agent, _object, _run)"
    )


def steady(keys_table: str) -> str:
    """Whether the samples of each object have one epoch, and none of them is its end."""
    return (
        "select bool_and(is_steady) from ("
        "select min(low_epoch) = max(high_epoch) and not bool_or(changes) as is_steady "
        f"from {keys_table} group by _series)"
    )


def windows(samples: ClassSamples) -> str:
    """A row per object and window."""
    columns = [_GROUP, *_ends(samples), *(f"bool_or(_back{at}) as back{at}" for at in samples.clocks)]
    for number in range(len(samples.members)):
        columns += _aggregates(samples, number)
    return f"with {_steps(samples, _BY_TIME)} select {', '.join(columns)} from step group by {_GROUP}"


def missing(samples: ClassSamples, table: str) -> str:
    """Whether some samples lack a member, for each member: of a table of `windows` for which none was sparse."""
    lacks = [f"bool_or(present{number} < samples)" for number in range(len(samples.members))]
    return f"select {', '.join(lacks)} from {table}"


def corrections(samples: ClassSamples, table: str) -> str:
    """The growth of counters in the windows of a table of `windows` in which the clock of an agent was set back."""
    columns = [_GROUP]
    for number in samples.counters:
        columns += _growth(samples, number)
    chosen = f"(select {_GROUP} from {table} where {went_back(samples)})"
    return (
        f"with {_steps(samples, _BY_ARRIVAL)} select {', '.join(columns)} from step "
        f"where ({_GROUP}) in {chosen} group by {_GROUP}"
    )


def went_back(samples: ClassSamples) -> str:
    """The condition for windows of a table of `windows` in which a clock was set back."""
    return " or ".join(f"back{at}" for at in samples.clocks)


def corrected(samples: ClassSamples, table: str, corrections_table: str) -> str:
    """The update of a table of `windows` by one of `corrections`."""
    changes = ", ".join(
        f"{field}{number} = case when t.back{samples.suffix(number)} then c.{field}{number} else t.{field}{number} end"
        for number in samples.counters
        for field in ("delta", "resets")
    )
    same = "t._series = c._series and t._window = c._window"
    return f"update {table} as t set {changes} from {corrections_table} as c where {same}"


def _steps(samples: ClassSamples, order: str) -> str:
    """Common table expressions: the samples with their windows, each with the next one of the same window."""
    nanoseconds = samples.seconds * 10**9
    # The remainder of a negative number is negative: times before 1970 belong to the window before.
    window = f"(_ts_ns - ((_ts_ns % {nanoseconds}) + {nanoseconds}) % {nanoseconds}) // {nanoseconds}"
    values = [f"{_number(samples, name)} as {samples.column(name)}" for name in samples.columns]
    read = [
        *("_series", f"{window} as _window", "_ts_ns", "_first_arrival + _seq as _arrival", "_epoch"),
        *(() if samples.steady else ("coalesce(_delete_ns, 0) <> 0 as _deleted",)),
        *values,
    ]
    after = [
        "lag(_ts_ns) over p is null as _is_first",
        "lead(_ts_ns) over p as _ts_a",
        *(() if samples.steady else ("lead(_epoch) over p as _epoch_a",)),
    ]
    if samples.sparse:
        after.append("row_number() over p as _n")
    if "" in samples.clocks:
        after.append("lead(_arrival) over p as _arrival_a")
    step = [
        "_ts_a is null as _is_last",
        f"case when {_holds(samples, '_epoch_a', '_deleted')} then _ts_a - _ts_ns end as _held",
    ]
    if "" in samples.clocks:
        step.append(f"{_is_back('_arrival_a')} as _back")
    for number, member in enumerate(samples.members):
        value = samples.column(member.value)
        if number in samples.sparse:
            # The next sample is the next one that has the member.
            packed = f"{{'v': {value}, 'e': _epoch, 't': _ts_ns, 'a': _arrival}}"
            present = samples.is_present(number)
            after.append(f"lead(case when {present} then {packed} end ignore nulls) over p as _after{number}")
            later = f"_after{number}"
            holds = _holds(samples, f"{later}.e", "_deleted")
            step += [
                f"coalesce({present} and {_is_back(f'{later}.a')}, false) as _back{number}",
                f"case when {present} and {holds} then {later}.t - _ts_ns end as _held{number}",
            ]
        elif member.style is Style.COUNT:
            after.append(f"lead({value}) over p as _after{number}")
    source = (
        f"{samples.source} as samples join {samples.keys} as keys on samples._object = keys._object "
        "and samples._agent is not distinct from keys._agent and samples._run = keys._run"
    )
    return (
        f"sample as (select {', '.join(read)} from {source} where _statistics), "
        f"numbered as (select *, {', '.join(after)} from sample window p as (partition by {_GROUP} order by {order})), "
        f"step as (select *, {', '.join(step)} from numbered)"
    )


def _is_back(arrival: str) -> str:
    """The condition for samples after which one of the same run follows that arrived before."""
    return f"coalesce({arrival} < _arrival and {arrival} >> {_SEQ_BITS} = _arrival >> {_SEQ_BITS}, false)"


def _holds(samples: ClassSamples, epoch: str, deleted: str) -> str:
    """The condition for samples whose value holds until the next one: neither the object nor the agent ended."""
    if samples.steady:
        return "true"
    return f"not {deleted}" if samples.continued else f"not {deleted} and coalesce({epoch} = _epoch, true)"


def _aggregates(samples: ClassSamples, number: int) -> list[str]:
    """The columns of a member."""
    member, at = samples.members[number], samples.suffix(number)
    sparse = number in samples.sparse
    only = f" filter ({samples.is_present(number)})" if sparse else ""
    value, low, high = (samples.column(name) for name in (member.value, member.low, member.high))
    weight = samples.column(member.count) if member.count else None
    columns = [
        f"{f'arg_min({value}, _n){only}' if sparse else f'max({value}) filter (_is_first)'} as first{number}",
        f"{f'arg_max({value}, _n){only}' if sparse else f'max({value}) filter (_is_last)'} as last{number}",
        f"min({low}){only} as low{number}",
        f"max({high}){only} as high{number}",
        f"sum({f'{value} * {weight}' if weight else value}){only} as total{number}",
        f"{f'sum({weight})' if weight else 'count(*)'}{only} as weight{number}",
        f"{f'count(*) filter ({samples.is_present(number)})' if weight else f'count({value})'} as present{number}",
    ]
    if sparse:
        columns += _sparse_ends(only, at)
    if member.style is Style.COUNT:
        columns += _growth(samples, number)
    elif member.gauge:
        columns.append(f"coalesce(sum({value} * (_held{at} / 1e9)), 0) as area{number}")
    return columns


def _ends(samples: ClassSamples) -> list[str]:
    """Number, times and epochs of samples."""
    ends = ["max(_epoch) as first_epoch", "max(_epoch) as last_epoch", "false as deleted"]
    if not samples.steady:
        ends = [
            "max(_epoch) filter (_is_first) as first_epoch",
            "max(_epoch) filter (_is_last) as last_epoch",
            "bool_or(_deleted) filter (_is_last) as deleted",
        ]
    return [
        "count(*) as samples",
        "min(_ts_ns) as first_ns",
        "max(_ts_ns) as last_ns",
        *ends,
        "coalesce(sum(_held), 0) as held_ns",
    ]


def _sparse_ends(only: str, at: str) -> list[str]:
    """The same of a member that some samples lack. Epochs may be null, so they are packed: null values are skipped."""
    return [
        f"count(*){only} as samples{at}",
        f"min(_ts_ns){only} as first_ns{at}",
        f"max(_ts_ns){only} as last_ns{at}",
        f"(arg_min({{'e': _epoch}}, _n){only}).e as first_epoch{at}",
        f"(arg_max({{'e': _epoch}}, _n){only}).e as last_epoch{at}",
        f"arg_max(_deleted, _n){only} as deleted{at}",
        f"coalesce(sum(_held{at}), 0) as held_ns{at}",
    ]


def _growth(samples: ClassSamples, number: int) -> list[str]:
    """The growth of a counter between the samples of a window, and how often it began again from zero."""
    value = samples.column(samples.members[number].value)
    sparse = number in samples.sparse
    after, epoch = (f"_after{number}.v", f"_after{number}.e") if sparse else (f"_after{number}", "_epoch_a")
    reset = f"{after} < {value}"
    if not samples.continued and not samples.steady:
        reset = f"({reset} or coalesce(_epoch <> {epoch}, false))"
    missing_one = f"{value} is null or {after} is null"
    step = f"case when {missing_one} then 0 when {reset} then {after} else {after} - {value} end"
    return [f"sum({step}) as delta{number}", f"count(*) filter (not ({missing_one}) and {reset}) as resets{number}"]


def _number(samples: ClassSamples, name: str) -> str:
    whole = next(member.whole or name == member.count for member in samples.members if name in member.columns)
    type = "double" if not whole else "hugeint" if samples.large else "bigint"
    return f"cast({quoted(name)} as {type})"
