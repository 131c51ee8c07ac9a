"""The objects of a class version as they were at a time.

An agent publishes what changed, so the state is put together from two rows of each object: the last one with
properties, and the last one with statistics, published or in the answer to a recorder. Rows with properties are few
and lie anywhere between the time when the agent was found and the time asked for. Those with statistics are nearly all
rows, and mostly lie just before that time: the search begins there, and goes further back only for the objects that it
did not find.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property

import attrs

from qmf.console.aio.objects.class_fields import ClassFields
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.pipeline.duckdb_queries import quote_name
from qmf.pipeline.history.classes import CellReader, key_of
from qmf.pipeline.history.files import LakeFiles, Row
from qmf.pipeline.history.presence import Presence
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion, MemberKind
from qmf.pipeline.lake.days import day
from qmf.protocol import ObjectData, ObjectId
from qmf.schema import ClassSchema

#: How far back statistics are searched, step by step, in nanoseconds; then everything.
_STEPS = (600 * 10**9, 3600 * 10**9, 86_400 * 10**9, 7 * 86_400 * 10**9)
#: Beyond so many objects, a query is not restricted to those that are missing.
_MOST_NAMED = 1000

_COMMON = ("_agent", "_object", "_object_epoch", "_ts_ns", "_create_ns", "_delete_ns")

ObjectName = tuple[str, str]
"""Agent and name of an object."""


@attrs.frozen
class RecordedState:
    """Objects that existed at a time, without a client, and how many others the recorder saw being destroyed."""

    objects: tuple[RemoteObject, ...]
    destroyed: int = 0


@attrs.frozen(kw_only=True)
class StateQuery:
    """What is read: the states at a time of the objects of one class version, or of one, whose agents were present."""

    files: LakeFiles
    version: ClassVersion
    schema: ClassSchema
    at: int
    agents: Mapping[str, Presence]
    only: ObjectName | None = None

    @cached_property
    def _properties(self) -> CellReader:
        return CellReader([item for item in self.version.columns if item.kind is not MemberKind.STATISTIC])

    @cached_property
    def _statistics(self) -> CellReader:
        return CellReader([item for item in self.version.columns if item.kind is MemberKind.STATISTIC])

    def read(self) -> RecordedState:
        """The objects that existed, in the order of their agents and names."""
        if not self.agents:
            return RecordedState(())
        described = self._last(self._properties, ("_properties", "_delete_ns > 0"))
        gone = {name for name, row in described.items() if 0 < row[5] <= self.at}
        measured = self._last_statistics([name for name in described if name not in gone])
        found: list[RemoteObject] = []
        fields = ClassFields(self.schema)
        for name in sorted({*described, *measured}):
            rows = [row for row in (described.get(name), measured.get(name)) if row is not None]
            if name not in gone and _is_of(self.agents[name[0]], rows):
                found.append(self._object(fields, name, described.get(name), measured.get(name)))
        return RecordedState(tuple(found), len(gone))

    def _object(
        self, fields: ClassFields, name: ObjectName, described: Row | None, measured: Row | None
    ) -> RemoteObject:
        agent, own = name
        rows = [row for row in (described, measured) if row is not None]
        values: dict[str, object] = {}
        if described is not None:
            values |= self._properties.values(described[len(_COMMON) :], agent)
        if measured is not None:
            values |= self._statistics.values(measured[len(_COMMON) :], agent)
        object_id = ObjectId(own, agent, max(row[2] or 0 for row in rows))
        data = ObjectData(
            values=values,
            object_id=object_id,
            class_key=key_of(self.version),
            update_ts=max(row[3] for row in rows),
            create_ts=max(row[4] or 0 for row in rows),
        )
        return RemoteObject(data, object_id, agent, fields, None)

    def _last_statistics(self, existing: Sequence[ObjectName]) -> dict[ObjectName, Row]:
        if not self._statistics.columns:
            return {}
        # An answer has statistics that are no sample.
        values = " or ".join(f"{quote_name(item.name)} is not null" for item in self._statistics.columns)
        which = ("_statistics", f"_properties and not _statistics and ({values})")
        found: dict[ObjectName, Row] = {}
        until = self.at
        for step in (*_STEPS, None):
            since = None if step is None else self.at - step
            missing = [name for name in existing if name not in found]
            named = [name[1] for name in missing] if found or existing else []
            rows = self._last(self._statistics, which, since, until, named)
            found = {**rows, **found}
            # Objects of which only statistics are known are found in the first step, or if there are no others.
            if since is None or (found and all(name in found for name in existing)):
                break
            until = since - 1
        return found

    def _last(
        self,
        rows: CellReader,
        which: Sequence[str],
        since: int | None = None,
        until: int | None = None,
        named: Collection[str] = (),
    ) -> dict[ObjectName, Row]:
        """The last row of each object among those of a kind, from and up to a time."""
        until = self.at if until is None else until
        agents = [item for item in self.agents.values() if self.only is None or item.agent == self.only[0]]
        runs = sorted({item.run for item in agents})
        last_day, first_day = day(until), "" if since is None else day(since)
        source = self.files.select(RowKind.OBJECTS, self.version, first_day, last_day, runs, self.only)
        if not source or not agents:
            return {}
        where, parameters = self._conditions(since, until, named)
        columns = f"{', '.join(_COMMON)}{rows.sql}, _run, _seq"
        # One part for each condition: row groups without such rows are skipped by their statistics, which takes a
        # condition on one column.
        parts = [f"select {columns} from {{files}} where {' and '.join([one, *where])}" for one in which]
        sql = (
            f"select * from ({' union all '.join(parts)}) "
            "qualify row_number() over (partition by _agent, _object, _run order by _seq desc) = 1"
        )
        parameters *= len(parts)
        found: dict[ObjectName, Row] = {}
        for row in self.files.query(sql, source, parameters):
            # Rows from before the agent was found are about an earlier presence.
            agent = self.agents.get(row[0])
            if agent is not None and row[-2] == agent.run and row[-1] > agent.since:
                found[row[0], row[1]] = row
        return found

    def _conditions(self, since: int | None, until: int, named: Collection[str]) -> tuple[list[str], list[object]]:
        """Conditions of rows, and their parameters: from and up to a time, of the object asked for or of some."""
        where = ["_ts_ns <= ?"]
        parameters: list[object] = [until]
        if since is not None:
            where.append("_ts_ns >= ?")
            parameters.append(since)
        if self.only is not None:
            where += ["_agent = ?", "_object = ?"]
            parameters += self.only
        elif named and len(named) <= _MOST_NAMED and since != self.at - _STEPS[0]:
            where.append(f"_object in ({', '.join('?' * len(named))})")
            parameters += named
        return where, parameters


def _is_of(agent: Presence, rows: Sequence[Row]) -> bool:
    """True unless the object ended with an earlier start of its agent."""
    epoch = max(row[2] or 0 for row in rows)
    return not epoch or not agent.epoch or epoch == agent.epoch
