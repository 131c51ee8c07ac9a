"""The availability of agents: when they were up, down, or not recorded.

All times are by the recorders' clocks, since the agents share no other clock. Within a run of a recorder, rows are
ordered by their arrival, so that a step of the clock doesn't reorder them. First, each run gives a list of points for
each agent, which determine the agent's state::

    added, restarted, heartbeat                up
    removed: goodbye                           down
    removed: silent                            down, since the last row: that long before the removal
    disconnected, after the last row of a run  unknown
    start of the run, connected again          down; unknown where the agent answers within `SETTLE_S`

Then the runs are merged: up where it is up in any run, else down where it is down in any run, else unknown. An agent
has no state before its first row.
"""

from __future__ import annotations

from qmf.pipeline.audit.parts import CONNECTED, DISCONNECTED
from qmf.pipeline.audit.schemas import TABLES, conform

UP, DOWN, UNKNOWN = "up", "down", "unknown"

#: Seconds that agents have to answer when a recorder connects.
SETTLE_S = 10

#: Silent intervals after which the console removes an agent, and the seconds that it waits at least
#: (`qmf.console.aio.agents`). Older lakes were recorded with the same rule.
MISSED_HEARTBEATS, SHORTEST_TIMEOUT_S = 3, 10

_SECOND = 10**9
_FIRST, _LAST = -1, (1 << 63) - 1

#: The points of each run for each agent: agent, run, seq, moment, state, cause, epoch, back.
_POINTS = f"""
changed as (
    select agent, run, seq, received_ns as moment, change = 'removed' as removed, reason, change,
        case when change <> 'removed' then epoch end as epoch, "interval"
    from {{changes}} where agent is not null),
own as (
    select agent, run, seq, moment,
        case when removed and reason = '{DISCONNECTED}' then '{UNKNOWN}' when removed then '{DOWN}' else '{UP}' end
            as state,
        case when removed then reason else change end as cause, epoch,
        case when removed and reason = 'silent'
            then cast(greatest({SHORTEST_TIMEOUT_S}, coalesce("interval", 0) * {MISSED_HEARTBEATS}) * {_SECOND}
                as bigint) else 0 end as back
    from changed
    union all select agent, run, first_seq, first_ns, '{UP}', 'heartbeat', epoch, 0 from {{signs}}
    union all select agent, run, last_seq, last_ns, '{UP}', 'heartbeat', epoch, 0 from {{signs}}),
first as (select agent, min(moment) as since from own group by agent),
seen as (select agent, since, run, first_ns, last_ns from first join {{runs}} on last_ns >= since),
connections as (
    select run, seq, received_ns as moment, change = '{DISCONNECTED}' as lost from {{changes}}
    where agent is null and change in ('{DISCONNECTED}', '{CONNECTED}')),
points as (
    from own
    union all select agent, run, {_FIRST}, first_ns, 'absent', 'absent', null, 0 from seen
    union all select agent, run, {_LAST}, last_ns + 1, '{UNKNOWN}', 'not recorded', null, 0 from seen
    union all
    select agent, run, seq, moment, if(lost, '{UNKNOWN}', 'absent'), if(lost, '{DISCONNECTED}', 'absent'), null, 0
        from connections join seen using (run))"""

#: The intervals between points, without unknown ones: agent, state, cause, again, start, end, epoch.
_INTERVALS = f"""
ordered as (
    select *, max(moment) over sofar as latest,
        -- An agent may be known before its epoch.
        coalesce(last_value(epoch ignore nulls) over sofar, first_value(epoch ignore nulls) over coming) as known
    from points
    window sofar as (partition by agent, run order by seq, state, moment rows unbounded preceding),
        coming as (partition by agent, run order by seq, state, moment
            rows between current row and unbounded following)),
placed as (
    -- Silence began after the last row, which is not earlier than the point before.
    select * exclude (moment),
        greatest(latest - back, lag(latest, 1, 0) over (partition by agent, run order by seq, state, moment)) as start
    from ordered),
steps as (
    select agent, state, cause, known,
        -- Agents of libqmf2 always send the same epoch: the restart that the console saw is decisive.
        cause = 'restarted' and known = lag(known) over own as again,
        start, lead(start) over own as "end", lead(state) over own as next
    from placed window own as (partition by agent, run order by seq, state, latest)),
settled as (
    select * exclude (state, start), greatest(start, since) as start,
        case when state <> 'absent' then state
            when "end" - start <= {SETTLE_S * _SECOND} and next <> '{DOWN}' then '{UNKNOWN}' else '{DOWN}' end as state
    from steps join first using (agent)),
intervals as (
    select agent, state, cause, again, start, "end", case when state = '{UP}' then known end as epoch
    from settled where "end" > start and state <> '{UNKNOWN}')"""

#: Intervals that may overlap, merged to adjacent ones that don't: `TABLES["availability"]`, times as nanoseconds.
_MERGED = f"""
edges as (
    select agent, start as moment, if(state = '{UP}', 1, 0) as ups, if(state = '{DOWN}', 1, 0) as downs, state, cause,
        epoch, again
    from intervals
    union all
    select agent, "end", -if(state = '{UP}', 1, 0), -if(state = '{DOWN}', 1, 0), null, null, null, false
    from intervals),
counted as (
    select agent, moment, sum(ups) as ups, sum(downs) as downs, max(cause) filter (state = '{UP}') as up_cause,
        max(cause) filter (state = '{DOWN}') as down_cause, max(epoch) as epoch, bool_or(again) as again
    from edges group by agent, moment),
states as (
    select agent, moment, again, up_cause, down_cause, last_value(epoch ignore nulls) over sofar as epoch,
        case when sum(ups) over sofar > 0 then '{UP}' when sum(downs) over sofar > 0 then '{DOWN}'
            else '{UNKNOWN}' end as state
    from counted window sofar as (partition by agent order by moment rows unbounded preceding)),
marked as (
    select *, coalesce(lag(state) over own <> state, true)
        or coalesce(state = '{UP}' and (again or epoch <> lag(epoch) over own), false) as is_new
    from states window own as (partition by agent order by moment)),
kept as (
    select agent, state, case when state = '{UP}' then epoch end as epoch,
        case state when '{UP}' then coalesce(up_cause, 'heartbeat') when '{DOWN}' then coalesce(down_cause, 'absent')
            else 'not recorded' end as cause,
        moment as start_ns, lead(moment) over own as end_ns, lead(moment, 2) over own is null as ongoing
    from marked where is_new window own as (partition by agent order by moment))"""


def availability(runs: str, signs: str, changes: str) -> str:
    """The intervals of each agent, without gaps from its first row to the last row of the last run, as SQL.

    Args:
        runs, signs, changes: parts, merged; each a part of ``from``.

    Returns:
        `TABLES["availability"]`. A restart of an agent begins another interval. The last one is `ongoing`: its
        end is that of the recording.
    """
    points = _POINTS.format(runs=runs, signs=signs, changes=changes)
    # The last one is the unknown interval after the last run; it has no end.
    rows = f"(with {points}, {_INTERVALS}, {_MERGED} select * from kept where end_ns is not null)"
    return conform(rows, TABLES["availability"])
