"""The history of properties: one row per object, property and value, with the interval in which the value was valid.

These are slowly changing dimensions of type 2: a row changes only when it is closed, and the row without an end is the
current value. Values are ordered by their arrival. Their times are the agent's, unless its clock can't be right: a time
after the arrival, or before that of the previous value, is replaced by the time of arrival. So the intervals of one
property neither overlap nor run backwards, whatever the clocks do.
"""

from __future__ import annotations

from qmf.pipeline.audit.schemas import LIFE_KEY, TABLES, conform

CHANGED = "changed"

_LIFE = ", ".join(LIFE_KEY)

#: Messages in the order of arrival, with times that don't run backwards.
_ORDERED = f"""
arrived as (
    select *, max(received_ns) over (partition by {_LIFE}, run order by seq rows unbounded preceding) as arrival
    from {{properties}}),
claims as (select *, least(time_ns, arrival) as claimed from arrived),
compared as (
    select *, max(claimed) over (partition by {_LIFE} order by arrival, run, seq
        rows between unbounded preceding and 1 preceding) as before
    from claims),
ordered as (
    select {_LIFE}, "values", row_number() over sofar as place,
        max(case when before > claimed then arrival else claimed end) over sofar as time_ns
    from compared
    window sofar as (partition by {_LIFE} order by arrival, run, seq rows unbounded preceding))"""

#: The values that differ from those before them.
_CHANGES = f"""
entries as (select {_LIFE}, place, time_ns, unnest(map_entries("values")) as entry from ordered),
valued as (
    select {_LIFE}, place, time_ns, entry.key as property, entry.value as value,
        lag(entry.value) over own as previous, row_number() over own = 1 as is_first
    from entries window own as (partition by {_LIFE}, entry.key order by place)),
changes as (
    select *, lead(time_ns) over (partition by {_LIFE}, property order by place) as next_ns
    from valued where is_first or value is distinct from previous)"""


def history(properties: str, lifetimes: str) -> str:
    """The history of each property, as SQL: `TABLES["history"]`; `ended_by` is "changed", or the end of the lifetime.

    Properties are parts, merged, and lifetimes the table; both are a part of ``from``.
    """
    rows = (
        f"(with {_ORDERED.format(properties=properties)}, {_CHANGES} "
        "select changes.*, time_ns as valid_from_ns, "
        "coalesce(next_ns, case when ended_ns is not null then greatest(ended_ns, time_ns) end) as valid_to_ns, "
        f"case when next_ns is not null then '{CHANGED}' else ends.ended_by end as ended_by "
        f"from changes left join (select {_LIFE}, ended_ns, ended_by from {lifetimes}) as ends using ({_LIFE}))"
    )
    return conform(rows, TABLES["history"])
