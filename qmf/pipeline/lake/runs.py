"""Recorders that recorded the same agents at the same time: whose rows count.

Two recorders of one bus write each sample twice, under two runs. Read together, sums are twice too large, and a counter
seems to jump back and forth. So for each agent and time the rows of one run count, those of the others are left out:

- a run has an agent from its first to its last heartbeat, with an end where heartbeats are missing for a while; the
  last row of heartbeats is extended as far as the run went on;
- where several runs have an agent, the one counts that has had it for the longest; when it ends, the next one follows;
- runs that follow each other, as after a restart, leave each other's rows alone.

Times are `_ts_ns`, by the agent's clock: all recorders of a sample have the same.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import text
from qmf.pipeline.errors import import_extra
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.heartbeats import LONGEST_NS, agents_since, joined_spans, shared_spans, spans_of_file
from qmf.pipeline.lake.table_files import TableFile

#: An agent without a heartbeat for so long, or for three of its intervals, is one that the recorder does not have.
SILENCE_NS = 60 * 10**9

#: Conditions for rows that are left out which are written as such.
_FEW = 50


@attrs.frozen
class RunPresence:
    """From its first to its last heartbeat a run had an agent; other rows are farther away by `silence_ns` at most."""

    run: str
    agent: str
    first_ns: int
    last_ns: int
    silence_ns: int = SILENCE_NS


@attrs.frozen(order=True)
class LeftOut:
    """Rows, from a `_ts_ns` until before another, that don't count, since those of another run do."""

    agent: str
    run: str
    first_ns: int
    end_ns: int
    counted: str


class RecordedRuns:
    """The runs of a lake. Belongs to one thread at a time; what it read is kept until the lake changes."""

    def __init__(self, lake: DeltaLake) -> None:
        self._lake = lake
        self._known: tuple[int, tuple[LeftOut, ...]] = (-1, ())
        #: The files whose spans are known, which never change, and these.
        self._spans_of: frozenset[str] = frozenset()
        self._spans: list[Any] = []

    def left_out_rows(self) -> tuple[LeftOut, ...]:
        """The rows to leave out, by agent, run and time; mostly there are none, and then nothing was read."""
        version = self._lake.kind_table(RowKind.HEARTBEATS).version()
        if version is None:
            return ()
        if version != self._known[0]:
            self._known = (version, find_left_out(self.presences()))
        return self._known[1]

    def decided_until(self, now_ns: int) -> int | None:
        """The time of arrival up to which it is known whose rows count; None for all, as where one run records.

        Heartbeats that decide about a row may come later than it. Runs that are silent for long before `now_ns` have
        ended.
        """
        table = self._lake.kind_table(RowKind.HEARTBEATS)
        if table.version() is None:
            return None
        spans: dict[str, tuple[int, int]] = {}
        for file in table.snapshot().files:
            if file.run is not None and file.first_received_ns is not None and file.last_received_ns is not None:
                first, last = spans.get(file.run, (file.first_received_ns, file.last_received_ns))
                spans[file.run] = (min(first, file.first_received_ns), max(last, file.last_received_ns))
        oldest = max(max((last for _, last in spans.values()), default=0), now_ns - SILENCE_NS) - SILENCE_NS
        live = [span for span in spans.values() if span[1] >= oldest]
        together = [
            one[1] for one in live if any(one is not two and one[0] <= two[1] and two[0] <= one[1] for two in live)
        ]
        return min(together) - SILENCE_NS if together else None

    def presences(self) -> list[RunPresence]:
        """When runs had the agents that several had, on days on which several runs recorded at the same time."""
        table = self._lake.kind_table(RowKind.HEARTBEATS)
        if table.version() is None:
            return []
        files = table.snapshot().files
        shared = _shared_days(files)
        wanted = {file.path: file for file in files if file.date in shared}
        if not wanted:
            return []
        if not self._spans_of <= set(wanted):
            # Files were combined.
            self._spans_of, self._spans = frozenset(), []
        new = [spans_of_file(table, file, SILENCE_NS) for path, file in wanted.items() if path not in self._spans_of]
        if new:
            # A step of a stream costs what its new files cost, and a row for each agent.
            self._spans, self._spans_of = [joined_spans([*self._spans, *new])], frozenset(wanted)
        return [RunPresence(*span) for span in shared_spans(self._spans[0])]


def agents_of_others(lake: DeltaLake, run: str, since_ns: int) -> dict[str, set[str]]:
    """The agents that other runs than one have recorded lately, by run, as far as heartbeats arrived since a time."""
    table = lake.kind_table(RowKind.HEARTBEATS)
    if table.version() is None:
        return {}
    # An agent's last row may be old.
    oldest = since_ns - 2 * LONGEST_NS
    files = [file for file in table.snapshot().files if (file.last_received_ns or 0) >= oldest and file.run != run]
    if not files:
        return {}
    found: dict[str, set[str]] = defaultdict(set)
    for other, agent in agents_since(table, files, run, since_ns):
        found[other].add(agent)
    return dict(found)


def find_left_out(presences: Iterable[RunPresence]) -> tuple[LeftOut, ...]:
    """The rows to leave out, by the presences of any agents and runs. Pure."""
    agents: dict[str, list[RunPresence]] = defaultdict(list)
    for item in presences:
        agents[item.agent].append(item)
    found: list[LeftOut] = []
    for items in agents.values():
        clusters = _clusters(items)
        before = None
        for cluster, after in zip(clusters, [*clusters[1:], None], strict=True):
            found += _in_cluster(cluster, before, None if after is None else after[0].first_ns)
            before = max(item.last_ns for item in cluster) + 1
    return tuple(sorted(found))


def counted_condition(rows: Sequence[LeftOut]) -> str:
    """A condition in SQL that leaves rows out, for DuckDB and Spark; empty where there are none."""
    if len(rows) > _FEW:
        # A join, where a list of conditions would be compared with each row.
        values = ", ".join(f"({text(row.agent)}, {text(row.run)}, {row.first_ns}, {row.end_ns})" for row in rows)
        return (
            f"(_agent IS NULL OR NOT EXISTS (SELECT 1 FROM (VALUES {values}) AS left_out "
            "(agent, run, first_ns, end_ns) "
            "WHERE left_out.run = _run AND left_out.agent = _agent "
            "AND _ts_ns >= left_out.first_ns AND _ts_ns < left_out.end_ns))"
        )
    parts = [
        f"(_run = {text(row.run)} AND _agent = {text(row.agent)}"
        f" AND _ts_ns >= {row.first_ns} AND _ts_ns < {row.end_ns})"
        for row in rows
    ]
    # Rows without an agent belong to no one else.
    return f"(_agent IS NULL OR NOT ({' OR '.join(parts)}))" if parts else ""


def _shared_days(files: Iterable[TableFile]) -> set[str]:
    """The days on which several runs recorded at the same time, as far as the files' figures tell."""
    spans: dict[str, dict[str | None, tuple[int, int]]] = defaultdict(dict)
    for file in files:
        if file.date is None or file.first_ns is None or file.last_ns is None:
            continue
        first, last = spans[file.date].get(file.run, (file.first_ns, file.last_ns))
        spans[file.date][file.run] = (min(first, file.first_ns), max(last, file.last_ns))
    found = set()
    for date, runs in spans.items():
        ordered = sorted(runs.values())
        if None in runs or any(one[1] >= two[0] for one, two in itertools.pairwise(ordered)):
            found.add(date)
    return found


def _clusters(items: Iterable[RunPresence]) -> list[list[RunPresence]]:
    found: list[list[RunPresence]] = []
    end = 0
    for item in sorted(items, key=lambda item: (item.first_ns, item.run)):
        if found and item.first_ns <= end:
            found[-1].append(item)
        else:
            found.append([item])
            end = item.last_ns
        end = max(end, item.last_ns)
    return found


def _in_cluster(cluster: Sequence[RunPresence], before: int | None, after: int | None) -> list[LeftOut]:
    """The rows to leave out of presences that overlap, in order, between what was before and what follows."""
    if len({item.run for item in cluster}) < 2:
        return []
    silence = max(item.silence_ns for item in cluster)
    agent = cluster[0].agent
    found: list[LeftOut] = []
    start = cluster[0].first_ns - silence
    start = start if before is None else max(start, before)
    end = max(item.last_ns for item in cluster)
    waiting = list(cluster)
    while waiting:
        # The one that has had the agent for the longest, of those that go on beyond `start`.
        owner = waiting[0]
        until = owner.last_ns + 1 if owner.last_ns < end else end + silence
        until = until if after is None else min(until, after)
        others = sorted({item.run for item in cluster} - {owner.run})
        found += [LeftOut(agent, run, start, until, owner.run) for run in others]
        start = until
        waiting = [item for item in waiting if item.last_ns > owner.last_ns]
    return found


#: Between the names of an agent and of a run; in neither of them.
_SEPARATOR = "\0"


class CountedRows:
    """Tells rows that count from those that are left out, by one look-up for each row."""

    #: The columns that decide.
    columns = ("_run", "_agent", "_ts_ns")

    def __init__(self, left_out: Sequence[LeftOut]) -> None:
        """Prepare for rows that are left out."""
        pa = import_pyarrow()
        times: list[dict[str, tuple[int, int]]] = []
        for row in left_out:
            key = f"{row.agent}{_SEPARATOR}{row.run}"
            layer = next((layer for layer in times if key not in layer), None)
            if layer is None:
                times.append(layer := {})
            layer[key] = (row.first_ns, row.end_ns)
        #: Keys of agents in runs, each once, and their first times and ends, as Arrow arrays.
        self._layers = [
            (pa.array(layer, pa.string()), *(pa.array(ends, pa.int64()) for ends in zip(*layer.values(), strict=True)))
            for layer in times
        ]

    def of(self, rows: Any) -> Any:
        """The rows of a table or a record batch that count; it has `columns`."""
        if not self._layers or not rows.num_rows:
            return rows
        compute = import_extra("pyarrow.compute")
        time = rows["_ts_ns"]
        # Rows without an agent belong to no one else.
        key = compute.binary_join_element_wise(rows["_agent"], rows["_run"], _SEPARATOR)
        left = None
        for keys, firsts, ends in self._layers:
            place = compute.index_in(key, value_set=keys)
            inside = compute.and_(
                compute.greater_equal(time, compute.take(firsts, place)),
                compute.less(time, compute.take(ends, place)),
            )
            inside = compute.fill_null(inside, False)
            left = inside if left is None else compute.or_(left, inside)
        return rows.filter(compute.invert(left))
