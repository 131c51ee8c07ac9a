"""When agents were heard last, and when runs of recorders had them, from rows of heartbeats, by DuckDB.

An agent's last row may be open: its heartbeats went on without a row for as long as the run of its recorder had rows,
and until the time that the row names.

A span is a time in which the heartbeats of an agent came to a run without a silence. Spans of files are joined to those
of the whole lake, and only agents that several runs had leave DuckDB: the cost per row is that of an aggregate.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from qmf.pipeline.duckdb_queries import connect, duckdb_errors
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.columns import some_columns
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.row_source import RowSource
from qmf.pipeline.lake.table_files import TableFile

#: From one row of an agent's heartbeats to the next, in ns, where none is missed.
LONGEST_NS = 600 * 10**9


def latest_rows(rows: str) -> str:
    """The last row of each agent in each run, also of a part of the rows: agent, run, seq, last_ns, open_until_ns."""
    return (
        "select _agent as agent, _run as run, max(_seq) as seq, "
        "arg_max(_received_ns - coalesce(silent_ns, 0), _seq) as last_ns, "
        "arg_max(coalesce(open_until_ns, 0), _seq) as open_until_ns "
        f"from {rows} where _agent is not null group by all"
    )


def last_heard(latest: str, ends: str) -> str:
    """The time of arrival of each agent's last heartbeat, agent and last_ns, from parts of ``from``.

    These are rows of `latest_rows`, of all parts together, and the last arrival of each run, `until_ns`.
    """
    return (
        "select agent, max(greatest(last_ns, least(open_until_ns, until_ns))) as last_ns from ("
        "select agent, run, arg_max(last_ns, seq) as last_ns, arg_max(open_until_ns, seq) as open_until_ns "
        f"from {latest} group by all) join {ends} using (run) group by agent"
    )


_NAMES = ("_agent", "_run", "_ts_ns", "interval", "first_ns", "open_until_ns", "_seq", "_received_ns")
_COLUMNS = some_columns(RowKind.HEARTBEATS, *_NAMES)

#: Parts as one where there is no silence between them, also where one lies within another.
_JOINED = """
select run, agent, min(first_ns) as first_ns, max(last_ns) as last_ns, max(silence_ns) as silence_ns,
    max(seq) as seq, arg_max(received_ns, seq) as received_ns, arg_max(open_ns, seq) as open_ns
from (
    select *, count(*) filter (before is null or first_ns - before > greatest(silence_ns, silence_before))
        over (partition by agent, run order by first_ns, last_ns rows unbounded preceding) as number
    from (
        select *, max(last_ns) over preceding as before, lag(silence_ns) over in_order as silence_before from {parts}
        window in_order as (partition by agent, run order by first_ns, last_ns),
            preceding as (in_order rows between unbounded preceding and 1 preceding)
    )
)
group by agent, run, number
"""

#: The spans of the agents that several runs had, the last one of each with what is known without a row.
_SHARED = """
with ends as (select run, max(received_ns) as until_ns from spans group by run)
select run, agent, first_ns,
    last_ns + if(seq = max(seq) over (partition by agent, run), greatest(0, least(open_ns, until_ns - received_ns)), 0),
    silence_ns
from spans join ends using (run)
where agent in (select agent from spans where agent is not null group by agent having min(run) <> max(run))
order by agent, run, first_ns
"""


def spans_of_file(table: LakeTable, file: TableFile, silence_ns: int) -> Any:
    """The spans in a file of heartbeats, as an Arrow table, which also tells how each could go on.

    Without a heartbeat for `silence_ns`, and for three of its intervals, a run doesn't have an agent.
    """
    with closing(connect()) as connection, duckdb_errors(table.url):
        rows = RowSource(table, (file,), _COLUMNS).sql(connection)
        # Heartbeats of the same minute, or whatever the silence is, have no silence between them.
        parts = (
            "(select _run as run, _agent as agent, min(coalesce(first_ns, _ts_ns)) as first_ns, "
            "max(_ts_ns) as last_ns, "
            f"greatest({silence_ns}, (3000000000 * coalesce(max(interval), 0))::bigint) as silence_ns, "
            "max(_seq) as seq, arg_max(_received_ns, _seq) as received_ns, "
            "arg_max(coalesce(open_until_ns - _received_ns, 0), _seq) as open_ns "
            f"from {rows} group by _run, _agent, _ts_ns // {silence_ns})"
        )
        return connection.sql(_JOINED.format(parts=parts)).to_arrow_table()


def joined_spans(parts: Sequence[Any]) -> Any:
    """Spans of some files, or of several, as those of all of them: an Arrow table like those of `spans_of_file`."""
    pa = import_pyarrow()
    with closing(connect()) as connection:
        connection.register("parts", pa.concat_tables(parts))
        return connection.sql(_JOINED.format(parts="parts")).to_arrow_table()


def shared_spans(spans: Any) -> list[tuple[str, str, int, int, int]]:
    """Of all `joined_spans` those of agents that several runs had: run, agent, first_ns, last_ns, silence_ns."""
    with closing(connect()) as connection:
        connection.register("spans", spans)
        found: list[tuple[str, str, int, int, int]] = connection.execute(_SHARED).fetchall()
        return found


def agents_since(table: LakeTable, files: Sequence[TableFile], run: str, since_ns: int) -> list[tuple[str, str]]:
    """The agents of other runs than one, as pairs of run and agent, of which heartbeats arrived since a time."""
    with closing(connect()) as connection, duckdb_errors(table.url):
        rows = RowSource(table, tuple(files), _COLUMNS).sql(connection)
        found: list[tuple[str, str]] = connection.execute(
            f"with live as (select _run from {rows} group by _run having max(_received_ns) >= ?) "
            f"select _run, _agent from {rows} join live using (_run) where _run <> ? and _agent is not null "
            "group by _run, _agent having arg_max(coalesce(open_until_ns, _received_ns), _seq) >= ?",
            [since_ns, run, since_ns],
        ).fetchall()
        return found
