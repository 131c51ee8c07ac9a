"""The SQL of roll-ups, for DuckDB.

Two steps. `windows` aggregates the samples of one class to a row per object and window, with numbered columns for each
member: ``first3`` is the first value of member 3. `members` makes of it a row per member, with the columns of the table
of roll-ups.

Samples count in the order of their times. Where that contradicts the order in which one run of a recorder received
them, the clock of the agent was set back (``back``), and counters are walked again in the order of arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import attrs

from qmf.pipeline.aggregation.members import NumberMember
from qmf.pipeline.duckdb_queries import quoted, text
from qmf.schema import Style

_BY_TIME = "_ts_ns, _run, _seq"
_BY_ARRIVAL = "_run, _seq"
_GROUP = "_agent, _object, _window"


@attrs.frozen
class ClassSamples:
    """The samples of one class.

    Attributes:
        source: what to read from, as SQL; it has the columns of samples.
        members: the numbers of the class.
        sparse: numbers of the members that some samples lack.
        seconds: of a window.
        continued: counters outlive restarts of their agents.
    """

    source: str
    members: Sequence[NumberMember]
    sparse: Collection[int]
    seconds: int
    continued: bool

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


def presence(source: str, members: Sequence[NumberMember]) -> str:
    """How many samples there are, and how many have each member."""
    counts = [f"count(*) filter ({_is_present(member, quoted)})" for member in members]
    return f"select {', '.join(['count(*)', *counts])} from {source} where _statistics"


def windows(samples: ClassSamples) -> str:
    """A row per object and window."""
    columns = [_GROUP, *_ends(), *(f"bool_or(_back{at}) as back{at}" for at in samples.clocks)]
    for number, member in enumerate(samples.members):
        columns += _aggregates(samples, number, member)
    return f"with {_steps(samples, _BY_TIME)} select {', '.join(columns)} from step group by {_GROUP}"


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
    same = "t._agent is not distinct from c._agent and t._object = c._object and t._window = c._window"
    return f"update {table} as t set {changes} from {corrections_table} as c where {same}"


def members(samples: ClassSamples, package: str, name: str, table: str) -> str:
    """A row per member of each row in a table of `windows`, in the order of time, object and member."""
    rows = " union all ".join(
        _member(samples, package, name, number, member, table) for number, member in enumerate(samples.members)
    )
    return f"{rows} order by window_start, agent, object, member"


def _member(samples: ClassSamples, package: str, name: str, number: int, member: NumberMember, table: str) -> str:
    at = samples.suffix(number)

    def exact(field: str) -> str:
        return f"cast({field}{number} as decimal(38, 0))" if member.whole else "cast(null as decimal(38, 0))"

    counter = member.style is Style.COUNT
    start = f"_window * {samples.seconds}"
    span = f"((last_ns{at} - first_ns{at}) / 1e9)"
    weight, total = f"weight{number}", f"cast(total{number} as double)"
    delta = f"cast(delta{number} as double)" if counter else "cast(null as double)"
    values = {
        "window_start": f"make_timestamptz({start} * 1000000)",
        "window_end": f"make_timestamptz(({start} + {samples.seconds}) * 1000000)",
        "package": text(package),
        "class": text(name),
        "agent": "_agent",
        "object": "_object",
        "member": text(member.name),
        "style": text(member.style.value),
        "unit": "cast(null as varchar)" if member.unit is None else text(member.unit),
        "samples": f"samples{at}",
        "first_ns": f"first_ns{at}",
        "last_ns": f"last_ns{at}",
        "first_epoch": f"first_epoch{at}",
        "last_epoch": f"last_epoch{at}",
        "first_exact": exact("first"),
        "last_exact": exact("last"),
        "low_exact": exact("low"),
        "high_exact": exact("high"),
        "delta_exact": f"cast(delta{number} as decimal(38, 0))" if counter else "cast(null as decimal(38, 0))",
        "resets": f"cast(resets{number} as bigint)" if counter else "cast(null as bigint)",
        "weight": f"cast({weight} as decimal(38, 0))",
        "total_exact": exact("total"),
        "total": total,
        "first": f"cast(first{number} as double)",
        "last": f"cast(last{number} as double)",
        "low": f"cast(low{number} as double)",
        "high": f"cast(high{number} as double)",
        "mean": f"case when {weight} > 0 then {total} / cast({weight} as double) end",
        "delta": delta,
        "rate": f"case when {span} > 0 then {delta} / {span} end",
    }
    columns = ", ".join(f"{value} as {quoted(key)}" for key, value in values.items())
    return f"select {columns} from {table} where samples{at} > 0"


def _steps(samples: ClassSamples, order: str) -> str:
    """Common table expressions: the samples, numbered in an order, each counter with the one before it."""
    nanoseconds = samples.seconds * 10**9
    # The remainder of a negative number is negative: times before 1970 belong to the window before.
    window = f"(_ts_ns - ((_ts_ns % {nanoseconds}) + {nanoseconds}) % {nanoseconds}) // {nanoseconds}"
    values = [f"{_number(samples, name)} as {samples.column(name)}" for name in samples.columns]
    read = ", ".join([f"{window} as _window", _BY_TIME, "_agent, _object, _epoch", *values])
    before = ["lag(_run) over p as _run_s", "lag(_seq) over p as _seq_s", "lag(_epoch) over p as _epoch_s"]
    back = ["coalesce(_run = _run_s and _seq < _seq_s, false) as _back"]
    for number in samples.counters:
        value = samples.column(samples.members[number].value)
        if number not in samples.sparse:
            before.append(f"lag({value}) over p as _before{number}")
            continue
        # The sample before is the one before that has the member.
        packed = f"case when {value} is not null then {{'v': {value}, 'e': _epoch, 'r': _run, 's': _seq}} end"
        before.append(f"lag({packed} ignore nulls) over p as _before{number}")
        earlier = f"_run = _before{number}.r and _seq < _before{number}.s"
        back.append(f"coalesce({value} is not null and {earlier}, false) as _back{number}")
    numbers = ", ".join(["row_number() over p as _n", "lead(_seq) over p is null as _is_last", *before])
    return (
        f"sample as (select {read} from {samples.source} where _statistics), "
        f"numbered as (select *, {numbers} from sample "
        f"window p as (partition by {_GROUP} order by {order})), "
        f"step as (select *, {', '.join(back)} from numbered)"
    )


def _aggregates(samples: ClassSamples, number: int, member: NumberMember) -> list[str]:
    """The columns of a member."""
    sparse = number in samples.sparse
    only = f" filter ({_is_present(member, samples.column)})" if sparse else ""
    value, low, high = (samples.column(name) for name in (member.value, member.low, member.high))
    weight = samples.column(member.count) if member.count else None
    columns = [
        f"{_first(value, only)} as first{number}",
        f"{_last(value, only)} as last{number}",
        f"min({low}){only} as low{number}",
        f"max({high}){only} as high{number}",
        f"sum({f'{value} * {weight}' if weight else value}){only} as total{number}",
        f"{f'sum({weight})' if weight else 'count(*)'}{only} as weight{number}",
    ]
    if sparse:
        columns += _ends(only, samples.suffix(number))
    if member.style is Style.COUNT:
        columns += _growth(samples, number)
    return columns


def _first(value: str, only: str) -> str:
    return f"arg_min({value}, _n){only}" if only else f"max({value}) filter (_n = 1)"


def _last(value: str, only: str) -> str:
    return f"arg_max({value}, _n){only}" if only else f"max({value}) filter (_is_last)"


def _ends(only: str = "", suffix: str = "") -> list[str]:
    """Number, times and epochs of samples. Epochs may be null, so they are packed: null arguments are skipped."""
    return [
        f"count(*){only} as samples{suffix}",
        f"min(_ts_ns){only} as first_ns{suffix}",
        f"max(_ts_ns){only} as last_ns{suffix}",
        f"(arg_min({{'e': _epoch}}, _n){only}).e as first_epoch{suffix}",
        f"(arg_max({{'e': _epoch}}, _n){only}).e as last_epoch{suffix}",
    ]


def _growth(samples: ClassSamples, number: int) -> list[str]:
    """The growth of a counter, and how often it began again from zero."""
    value = samples.column(samples.members[number].value)
    sparse = number in samples.sparse
    before, epoch = (f"_before{number}.v", f"_before{number}.e") if sparse else (f"_before{number}", "_epoch_s")
    reset = f"{value} < {before}"
    if not samples.continued:
        reset = f"({reset} or coalesce(_epoch <> {epoch}, false))"
    missing = f"{value} is null or {before} is null"
    step = f"case when {missing} then 0 when {reset} then {value} else {value} - {before} end"
    return [f"sum({step}) as delta{number}", f"count(*) filter (not ({missing}) and {reset}) as resets{number}"]


def _is_present(member: NumberMember, column: Callable[[str], str]) -> str:
    present = f"{column(member.value)} is not null"
    # A mean of no samples has no meaning.
    return f"{present} and {column(member.count)} > 0" if member.count else present


def _number(samples: ClassSamples, name: str) -> str:
    whole = next(member.whole or name == member.count for member in samples.members if name in member.columns)
    return f"cast({quoted(name)} as {'hugeint' if whole else 'double'})"
