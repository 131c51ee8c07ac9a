"""The SQL of roll-ups, for DuckDB.

`keys` numbers the objects, and the runs of recorders, that samples have. `windows` aggregates the samples of one class
to a row per object and window, with numbered columns for each member: ``first3`` is the first value of member 3. These
rows are complete in themselves: they say nothing about the time before the first sample of the window. The module
`rows` joins each with the window before, or with what was last known from earlier samples (``carried``), and makes of
it a row per member, with the columns of the table.

Samples count in the order of their times. Where that contradicts the order in which one run of a recorder received
them (``back``), samples were late, or the clock of the agent was set back. Counters are then walked again in the order
of arrival, and the order counts in which a counter began again from zero less often.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import attrs

from qmf.pipeline.duckdb_queries import quote_name
from qmf.pipeline.rollup.columns import value_seconds
from qmf.pipeline.rollup.members import NumberMember
from qmf.pipeline.rollup.zones import WindowGrid
from qmf.schema import Style

#: Bits of the number of a row in its run; the number of the run is above them.
_SEQ_BITS = 40
_BY_TIME = "_ts_ns"
_BY_ARRIVAL = "_arrival"
_GROUP = "_series, _window"
#: What tells two lifetimes of an object apart, without its end.
_LIFE_NAMES = ("epoch", "created")


@attrs.frozen
class ClassSamples:
    """The samples of one class.

    Attributes:
        source: what to read from, as SQL; it has the columns of samples.
        members: the numbers of the class.
        grid: the windows.
        continued: counters outlive restarts of their agents.
        keys: the table that `keys` made.
        sparse: numbers of the members that some samples lack.
        large: some whole number needs more than 64 bits.
        steady: the samples of an object have one epoch and one time of creation, and none of them is its end.
        ties: some samples of an object have the same time; they count in the order of their arrival.
    """

    source: str
    members: Sequence[NumberMember]
    grid: WindowGrid
    continued: bool
    keys: str
    sparse: Collection[int] = ()
    large: bool = False
    steady: bool = False
    ties: bool = False

    def column(self, name: str) -> str:
        """The name of a column in the statements: names of classes may be any, and differ by their case only."""
        return f"_c{self.columns.index(name)}"

    @property
    def columns(self) -> list[str]:
        """The columns of the members, each once."""
        return list(dict.fromkeys(column for member in self.members for column in member.columns))

    @property
    def clocks(self) -> list[str]:
        """The suffixes of columns about the order of arrival: none for all counters that each sample has."""
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
        "min(coalesce(_create_ns, 0)) as low_created, max(coalesce(_create_ns, 0)) as high_created, "
        "bool_or(_epoch is null or coalesce(_delete_ns, 0) <> 0) as changes "
        f"from {source} where _statistics group by _agent, _object, _run)"
    )


def steady(keys_table: str) -> str:
    """Whether the samples of each object have one epoch and one time of creation, and none of them is its end."""
    return (
        "select bool_and(is_steady) from ("
        "select min(low_epoch) = max(high_epoch) and not bool_or(changes) "
        "and min(low_created) = max(high_created) as is_steady "
        f"from {keys_table} group by _series)"
    )


def windows(samples: ClassSamples) -> str:
    """A row per object and window."""
    columns = [_GROUP, *_ends(samples), *(f"bool_or(_back{at}) as back{at}" for at in samples.clocks)]
    # Two keys make the sort a tenth dearer, so that the second one is there where it is needed.
    order = f"{_BY_TIME}, {_BY_ARRIVAL}" if samples.ties else _BY_TIME
    for number in range(len(samples.members)):
        columns += _aggregates(samples, number)
    found = f"with {_steps(samples, order)} select {', '.join(columns)} from step group by {_GROUP}"
    if not samples.steady:
        return found
    life = (
        "select _series, max(high_epoch) as _epoch, nullif(max(high_created), 0) as _created "
        f"from {samples.keys} group by _series"
    )
    ends = ", ".join(f"_{name} as {end}_{name}" for name in _LIFE_NAMES for end in ("first", "last"))
    return f"select own.*, {ends} from ({found}) as own join ({life}) as life using (_series)"


def surprises(samples: ClassSamples, table: str) -> str:
    """What was not supposed when a table of `windows` was made.

    Returns:
        a query of one row: whether some samples of an object have the same time; whether some samples lack a member,
        for each member.
    """
    lacks = [f"bool_or(present{number} < samples)" for number in range(len(samples.members))]
    return f"select {', '.join(['bool_or(ties)', *lacks])} from {table}"


def corrections(samples: ClassSamples, table: str) -> str:
    """The growth of counters, in the order of arrival, in the windows of a table of `windows` where it is another."""
    columns = [_GROUP]
    for number in samples.counters:
        columns += _growth(samples, number)
    chosen = f"(select {_GROUP} from {table} where {went_back(samples)})"
    return (
        f"with {_steps(samples, _BY_ARRIVAL)} select {', '.join(columns)} from step "
        f"where ({_GROUP}) in {chosen} group by {_GROUP}"
    )


def went_back(samples: ClassSamples) -> str:
    """The condition for windows of a table of `windows` whose samples arrived in another order than by their times."""
    return " or ".join(f"back{at}" for at in samples.clocks)


def correction_update(samples: ClassSamples, table: str, corrections_table: str) -> str:
    """The update of a table of `windows` by one of `corrections`."""
    changes = ", ".join(
        f"{field}{number} = case when t.back{samples.suffix(number)} and c.resets{number} < t.resets{number} "
        f"then c.{field}{number} else t.{field}{number} end"
        for number in samples.counters
        for field in ("delta", "resets")
    )
    same = "t._series = c._series and t._window = c._window"
    return f"update {table} as t set {changes} from {corrections_table} as c where {same}"


def _steps(samples: ClassSamples, order: str) -> str:
    """Common table expressions: the samples with their windows, each with the next one of the same window."""
    # The windows of samples are as long in all zones, see `windows.base_seconds`.
    window = WindowGrid(samples.grid.seconds).start("_ts_ns")
    values = [f"{_number(samples, name)} as {samples.column(name)}" for name in samples.columns]
    read = [
        *("_series", f"{window} as _window", "_ts_ns", "_first_arrival + _seq as _arrival"),
        *(() if samples.steady else _OWN_LIFE),
        *values,
    ]
    # One sort of all samples, whose neighbours then are those of the rows, costs half of what windows cost that DuckDB
    # sorts by themselves. Where samples lack members, the next sample that has one may be farther away.
    after = _SORTED if not samples.sparse else _PARTITIONED
    columns = [after.is_first, f"{after.of('_ts_ns')} as _ts_a"]
    if not samples.steady:
        columns.append(f"{after.of(_LIFE)} as _life_a")
    if samples.sparse:
        columns.append("row_number() over p as _n")
    if "" in samples.clocks:
        columns.append(f"{after.of('_arrival')} as _arrival_a")
    step = ["_ts_a is null as _is_last", f"case when {_holds(samples, '_life_a')} then _ts_a - _ts_ns end as _held"]
    if "" in samples.clocks:
        step.append(f"{_is_back('_arrival_a')} as _back")
    for number, member in enumerate(samples.members):
        value = samples.column(member.value)
        if number in samples.sparse:
            # The next sample is the next one that has the member.
            packed = f"{{'v': {value}, 'l': {_LIFE}, 't': _ts_ns, 'a': _arrival}}"
            present = samples.is_present(number)
            columns.append(f"lead(case when {present} then {packed} end ignore nulls) over p as _after{number}")
            later = f"_after{number}"
            holds = _holds(samples, f"{later}.l")
            step += [
                f"coalesce({present} and {_is_back(f'{later}.a')}, false) as _back{number}",
                f"case when {present} and {holds} then {later}.t - _ts_ns end as _held{number}",
            ]
        elif member.style is Style.COUNT:
            columns.append(f"{after.of(value)} as _after{number}")
    source = (
        f"{samples.source} as samples join {samples.keys} as keys on samples._object = keys._object "
        "and samples._agent is not distinct from keys._agent and samples._run = keys._run"
    )
    window = f" window p as (partition by {_GROUP} order by {order})" if samples.sparse else ""
    by = "" if samples.sparse else f" order by {_GROUP}, {order}"
    # Rows beside each other are found by one thread; what is made of them then is not.
    kept = "" if samples.sparse else " materialized"
    return (
        f"sample as (select {', '.join(read)} from {source} where _statistics{by}), "
        f"numbered as{kept} (select *, {', '.join(columns)} from sample{window}), "
        f"step as (select *, {', '.join(step)} from numbered)"
    )


@attrs.frozen
class _Next:
    """The neighbours of samples in their object and window, as SQL.

    Attributes:
        is_first: a column, true for the first sample.
        value: of the next sample, null for the last one; ``{}`` stands for an expression.
    """

    is_first: str
    value: str

    def of(self, expression: str) -> str:
        """An expression of the next sample."""
        return self.value.replace("{}", expression)


#: The neighbours of samples that are sorted by object, window and time, as the rows beside them.
_SORTED = _Next(
    "lag(_series) over () is distinct from _series or lag(_window) over () is distinct from _window as _is_first",
    "case when lead(_series) over () = _series and lead(_window) over () = _window then lead({}) over () end",
)
#: Those of samples in any order.
_PARTITIONED = _Next("lag(_ts_ns) over p is null as _is_first", "lead({}) over p")


def _is_back(arrival: str) -> str:
    """The condition for samples after which one of the same run follows that arrived before."""
    return f"coalesce({arrival} < _arrival and {arrival} >> {_SEQ_BITS} = _arrival >> {_SEQ_BITS}, false)"


#: What tells two lifetimes of an object apart, of one sample.
_LIFE = "{'epoch': _epoch, 'created': _created}"
#: The columns of a sample about it.
_OWN_LIFE = ("_epoch", "nullif(_create_ns, 0) as _created", "coalesce(_delete_ns, 0) <> 0 as _deleted")


@attrs.frozen
class Life:
    """Columns of a sample about the life of its object, as SQL.

    Attributes:
        epoch: of the agent; null where it is not known.
        created: when the object was created; null where it is not known.
        deleted: it is the end of the object.
    """

    epoch: str
    created: str
    deleted: str

    def ends_before(self, epoch: str, created: str, *, continued: bool) -> str:
        """The condition for a next sample, by its epoch and creation, that belongs to another life of the object.

        Args:
            epoch, created: of the next sample, as SQL.
            continued: counters outlive restarts of their agents, but not the object that an agent creates anew.
        """
        ended = f"coalesce({self.created} <> {created}, {self.deleted}, false)"
        if continued:
            return f"({ended} and coalesce({self.epoch} = {epoch}, false))"
        return f"({ended} or coalesce({self.epoch} <> {epoch}, false))"


_SAMPLE = Life("_epoch", "_created", "_deleted")


def _holds(samples: ClassSamples, life: str) -> str:
    """The condition for samples whose value holds until the next one, by its `_LIFE`: nothing ended in between."""
    if samples.steady:
        return "true"
    other = _SAMPLE.ends_before(f"{life}.epoch", f"{life}.created", continued=samples.continued)
    return f"not _deleted and not {other}"


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
        columns.append(f"coalesce(sum({value_seconds(value, f'_held{at}')}), 0) as area{number}")
    return columns


def _ends(samples: ClassSamples) -> list[str]:
    """Number, times and epochs of samples."""
    ends = (
        ["false as deleted"]
        if samples.steady
        else [
            *(f"max(_{name}) filter (_is_{end}) as {end}_{name}" for name in _LIFE_NAMES for end in ("first", "last")),
            "bool_or(_deleted) filter (_is_last) as deleted",
        ]
    )
    return [
        "count(*) as samples",
        "min(_ts_ns) as first_ns",
        "max(_ts_ns) as last_ns",
        "coalesce(bool_or(_ts_a = _ts_ns), false) as ties",
        *ends,
        "coalesce(sum(_held), 0) as held_ns",
    ]


def _sparse_ends(only: str, at: str) -> list[str]:
    """The same of a member that some samples lack. Epochs may be null, so they are packed: null values are skipped."""
    return [
        f"count(*){only} as samples{at}",
        f"min(_ts_ns){only} as first_ns{at}",
        f"max(_ts_ns){only} as last_ns{at}",
        *(f"(arg_min({_LIFE}, _n){only}).{name} as first_{name}{at}" for name in _LIFE_NAMES),
        *(f"(arg_max({_LIFE}, _n){only}).{name} as last_{name}{at}" for name in _LIFE_NAMES),
        f"arg_max(_deleted, _n){only} as deleted{at}",
        f"coalesce(sum(_held{at}), 0) as held_ns{at}",
    ]


def _growth(samples: ClassSamples, number: int) -> list[str]:
    """The growth of a counter between the samples of a window, and how often it began again from zero."""
    value = samples.column(samples.members[number].value)
    sparse = number in samples.sparse
    after, life = (f"_after{number}.v", f"_after{number}.l") if sparse else (f"_after{number}", "_life_a")
    reset = f"{after} < {value}"
    if not samples.steady:
        other = _SAMPLE.ends_before(f"{life}.epoch", f"{life}.created", continued=samples.continued)
        reset = f"({reset} or {other})"
    missing_one = f"{value} is null or {after} is null"
    step = f"case when {missing_one} then 0 when {reset} then {after} else {after} - {value} end"
    return [f"sum({step}) as delta{number}", f"count(*) filter (not ({missing_one}) and {reset}) as resets{number}"]


def _number(samples: ClassSamples, name: str) -> str:
    whole = next(member.whole or name == member.count for member in samples.members if name in member.columns)
    type = "double" if not whole else "hugeint" if samples.large else "bigint"
    value = quote_name(name)
    # DuckDB looks for overflows of decimals of 20 digits one by one, of those of 18 all at once.
    return f"cast({f'cast({value} as decimal(18, 0))' if type == 'bigint' else value} as {type})"
