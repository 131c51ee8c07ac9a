"""The lifetimes of objects, and how they ended; and the history of their properties.

An agent publishes when an object was created and destroyed, but nothing about its objects when the agent itself ends:
then they end with it, by the recorder's clock. The end is the first of:

- destroyed: published by the agent;
- replaced: another object has the name now;
- agent restarted, agent ended, agent lost: the agent's `availability` after the last row of the object. Objects whose
  ids have no epoch outlive restarts: they only end or get lost with their agent.

An object without an end existed at the end of the recording.

The history has one row per object, property and value, with the interval in which the value was valid. These are slowly
changing dimensions of type 2: a row changes only when it is closed, and the row without an end is the current value.
Values are ordered by their arrival. Their times are the agent's, unless its clock can't be right: a time after the
arrival, or before that of the previous value, is replaced by the time of arrival. So the intervals of one property
neither overlap nor run backwards, whatever the clocks do.
"""

from __future__ import annotations

from qmf.pipeline.audit.availability import DOWN, UP
from qmf.pipeline.audit.schemas import LIFE_KEY, TABLES, conform

DESTROYED, REPLACED = "destroyed", "replaced"
RESTARTED, ENDED, LOST = "agent restarted", "agent ended", "agent lost"

#: Nanoseconds in which messages that an agent sent before its goodbye may still arrive
#: (`qmf.console.aio.agents.GOODBYE_PERIOD`).
GOODBYE_PERIOD_NS = 10 * 10**9

#: When objects of an agent ended with it: agent, until (latest row that such an object can have), ended_at, reason.
_ENDS = f"""
known_states as (
    select *, last_value(case when state = '{UP}' then epoch end ignore nulls) over (
        partition by agent order by start_ns rows between unbounded preceding and 1 preceding) as before
    from {{availability}}),
all_ends as (
    select agent, start_ns as ended_at,
        case when state = '{DOWN}' and cause = 'goodbye' then '{ENDED}' when state = '{DOWN}' then '{LOST}'
            when state = '{UP}' and (cause = 'restarted' or epoch <> before) then '{RESTARTED}' end as reason,
        case when cause = 'goodbye' then least(start_ns + {GOODBYE_PERIOD_NS}, end_ns) else start_ns end as until
    from known_states),
ends as (from all_ends where reason is not null)"""

#: Each lifetime with the first end of its agent that is later than its last row, or null. A sort per agent instead of a
#: join of all lifetimes with all ends: backwards in time; at the same time a lifetime comes first, so that only later
#: ends apply, and the earlier of two ends comes last.
_WITH_ENDS = """
lifetimes as (
    -- Where an agent doesn't publish when objects are created, the first row of the next one is used.
    select *, case when created_ns > 0 then created_ns else first_ns end as began from {objects}),
named as (
    select *, lead(began) over (partition by package, class, agent, object order by received_ns, created_ns, epoch)
        as next
    from lifetimes),
both_kinds as (
    select *, received_ns as place, null::bigint as end_at, null::varchar as end_by, true as is_life from named
    union all by name
    select agent, until as place, ended_at as end_at, reason as end_by, false as is_life from ends),
ended as (
    select * replace (last_value(end_at ignore nulls) over back as end_at,
        last_value(end_by ignore nulls) over back as end_by)
    from both_kinds
    window back as (partition by agent order by place desc, is_life desc, end_at desc rows unbounded preceding)),
candidates as (
    select * exclude (end_at), case when next is not null then greatest(next, last_ns) end as next_at,
        case when end_by <> '{restarted}' or transient then end_at end as agent_at
    from ended where is_life)"""


def lifetimes(objects: str, availability: str) -> str:
    """The lifetime of each object, as SQL: `TABLES["lives"]`.

    Objects are parts, merged, and availability is the table; both are a part of ``from``.
    """
    ends, with_ends = _ENDS.format(availability=availability), _WITH_ENDS.format(objects=objects, restarted=RESTARTED)
    by_agent = "agent_at is not null and (next_at is null or agent_at <= next_at)"
    rows = (
        f"(with {ends}, {with_ends} select *, first_ns as first_seen_ns, last_ns as last_seen_ns, "
        f"case when deleted_ns is not null then deleted_ns when {by_agent} then agent_at else next_at end as ended_ns, "
        f"case when deleted_ns is not null then '{DESTROYED}' when {by_agent} then end_by "
        f"when next_at is not null then '{REPLACED}' end as ended_by from candidates)"
    )
    return conform(rows, TABLES["lives"])


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
