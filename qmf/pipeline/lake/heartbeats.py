"""When agents were heard last, from rows of heartbeats, as SQL of DuckDB. Pure.

An agent's last row may be open: its heartbeats went on without a row for as long as the run of its recorder had rows,
and until the time that the row names.
"""

from __future__ import annotations

#: From one row of an agent's heartbeats to the next, in ns, where none is missed.
LONGEST_NS = 600 * 10**9


def latest_rows(rows: str) -> str:
    """The last row of each agent in each run, also of a part of the rows: agent, run, seq, last_ns, open_until_ns.

    Args:
        rows: of heartbeats, as a part of ``from``.
    """
    return (
        "select _agent as agent, _run as run, max(_seq) as seq, "
        "arg_max(_received_ns - coalesce(silent_ns, 0), _seq) as last_ns, "
        "arg_max(coalesce(open_until_ns, 0), _seq) as open_until_ns "
        f"from {rows} where _agent is not null group by all"
    )


def last_heard(latest: str, ends: str) -> str:
    """The time of arrival of each agent's last heartbeat: agent, last_ns.

    Args:
        latest: rows of `latest_rows`, of all parts together.
        ends: the last arrival of each run, `until_ns`; both as parts of ``from``.
    """
    return (
        "select agent, max(greatest(last_ns, least(open_until_ns, until_ns))) as last_ns from ("
        "select agent, run, arg_max(last_ns, seq) as last_ns, arg_max(open_until_ns, seq) as open_until_ns "
        f"from {latest} group by all) join {ends} using (run) group by agent"
    )
