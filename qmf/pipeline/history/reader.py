"""The reader of a lake: what programs use."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from qmf._closable import Closable
from qmf.console.aio.agents import Agent, info_from_name
from qmf.console.aio.objects.remote_event import RemoteEvent
from qmf.errors import NotFoundError
from qmf.pipeline.history.classes import AnySchema, CellReader, any_values, key_of, schema_of
from qmf.pipeline.history.files import LakeFiles
from qmf.pipeline.history.presence import AGAIN, NEARBY, Presences, presences
from qmf.pipeline.history.replay_rows import ReplayRow, replay_rows
from qmf.pipeline.history.series import RecordedSeries, SeriesQuery
from qmf.pipeline.history.states import ObjectName, RecordedState, StateQuery
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.days import day
from qmf.pipeline.lake.heartbeats import LONGEST_NS, last_heard, latest_rows
from qmf.schema import ClassKey, ClassSchema, EventSchema, Kind

#: Nanoseconds of a recording that are read at once.
_REPLAY_STEP = 600 * 10**9


class LakeReader(Closable):
    """Reads a lake in this process, while recorders may write to it. Belongs to one thread.

    Methods raise `LakeError` if files cannot be read, and `MissingExtraError` if a library is not installed.
    """

    def __init__(self, lake: str | Path) -> None:
        """Open a lake by its path or URL; nothing is read yet. `LakeError` if there is none."""
        self._files = LakeFiles(str(lake))
        self._versions: dict[ClassKey, tuple[ClassVersion, str]] = {}
        self._schemas: dict[ClassKey, AnySchema] = {}
        #: What commands ask for several times, until something is committed.
        self._edges: dict[str, int] = {}
        self._presences: dict[int, Presences] = {}

    @property
    def url(self) -> str:
        return self._files.lake.url

    def close(self) -> None:
        """Free what it holds. A second call does nothing."""
        self._files.close()

    def refresh(self) -> None:
        """See what was committed since."""
        if self._files.refresh():
            self._edges.clear()
            self._presences.clear()
            for item in self._files.classes:
                self._versions.setdefault(key_of(item.version), (item.version, item.xml))

    # -- classes

    def classes(self) -> list[ClassKey]:
        """Every version of every class of objects and events, sorted."""
        return sorted(self._versions)

    def schema(self, key: ClassKey) -> AnySchema:
        """A class; `NotFoundError` if the lake does not have it."""
        found = self._schemas.get(key)
        if found is None:
            version, xml = self._version(key)
            found = self._schemas[key] = schema_of(version, xml)
        return found

    def _version(self, key: ClassKey) -> tuple[ClassVersion, str]:
        try:
            return self._versions[key]
        except KeyError:
            raise NotFoundError("class", f"{key.package}:{key.name}", [item.name for item in self._versions]) from None

    # -- the state at a time

    def end(self) -> int:
        """Time of the last row about an agent or a heartbeat; 0 for a lake without any."""
        return self._edge("max")

    def begin(self) -> int:
        """Time of the first row about an agent or a heartbeat; 0 for a lake without any."""
        return self._edge("min")

    def _edge(self, which: str) -> int:
        if which in self._edges:
            return self._edges[which]
        found: list[int] = []
        for kind in (RowKind.AGENTS, RowKind.HEARTBEATS):
            days = self._files.days(kind)
            if days:
                edge = max(days) if which == "max" else min(days)
                sql = f"select {which}(_received_ns) from {{files}}"
                found += [row[0] for row in self._files.query(sql, self._files.select(kind, first=edge, last=edge))]
        edge_ns = self._edges[which] = (max if which == "max" else min)(found, default=0)
        return edge_ns

    def presences(self, at: int) -> Presences:
        known = self._presences.get(at)
        if known is None:
            # Only the last few: a search in a period asks for many times.
            while len(self._presences) > 8:
                self._presences.pop(next(iter(self._presences)))
            known = self._presences[at] = self._read_presences(at)
        return known

    def _read_presences(self, at: int) -> Presences:
        last = day(at)
        sql = (
            "select _run, _seq, _received_ns, _agent, _epoch, change, reason, interval from {files} "
            "where _received_ns <= ?"
        )
        rows = self._files.query(sql, self._files.select(RowKind.AGENTS, last=last), [at])
        again = (
            "select _run, _seq, _received_ns, '', 0, reason, '', 0 from {files} where reason = ? and _received_ns <= ?"
        )
        rows += self._files.query(again, self._files.select(RowKind.GAPS, last=last), [AGAIN, at])
        sql = (
            "select _run, min(_received_ns), max(_received_ns) filter (_received_ns <= ?), max(_received_ns) "
            "from {files} where _received_ns between ? and ? group by _run"
        )
        source = self._files.select(RowKind.HEARTBEATS, first=day(at - NEARBY), last=day(at + NEARBY))
        beats = {
            run: (first, before or first, after)
            for run, first, before, after in self._files.query(sql, source, (at, at - NEARBY, at + NEARBY))
        }
        return presences(at, rows, beats, 0 if beats else self._last_beat(at))

    def _last_beat(self, at: int) -> int:
        last = day(at)
        for date in reversed([date for date in self._files.days(RowKind.HEARTBEATS) if date <= last]):
            sql = "select max(_received_ns) from {files} where _received_ns <= ?"
            for (found,) in self._files.query(sql, self._files.select(RowKind.HEARTBEATS, first=date, last=date), [at]):
                if found is not None:
                    return int(found)
        return 0

    def agents(self, at: int) -> list[Agent]:
        """The agents that were present, by name, with the times of their last heartbeats."""
        since = at - NEARBY - LONGEST_NS
        rows = "(from {files} where _received_ns between ? and ?)"
        ends = "(select _run as run, max(_received_ns) as until_ns from heard group by all)"
        sql = f"with heard as materialized {rows} {last_heard('(' + latest_rows('heard') + ')', ends)}"
        source = self._files.select(RowKind.HEARTBEATS, first=day(since), last=day(at))
        seen: dict[str, int] = dict(self._files.query(sql, source, (since, at)))
        found = self.presences(at).agents
        return [
            Agent(
                attrs.evolve(
                    info_from_name(name),
                    epoch=item.epoch,
                    heartbeat_interval=item.interval,
                    timestamp=seen.get(name, 0),
                )
            )
            for name, item in sorted(found.items())
        ]

    def state(
        self, key: ClassKey, at: int, present: Presences | None = None, only: ObjectName | None = None
    ) -> RecordedState:
        """The objects of a class version as they were at a time, all or the one with an agent and a name.

        `present` is what `presences` returned for that time, if it is known. `NotFoundError` for an unknown class.
        """
        version, _ = self._version(key)
        agents = (present or self.presences(at)).agents
        schema = self.schema(key)
        assert isinstance(schema, ClassSchema)
        return StateQuery(files=self._files, version=version, schema=schema, at=at, agents=agents, only=only).read()

    # -- values and events over time

    def series(
        self, keys: Sequence[ClassKey], object: ObjectName, members: Sequence[str], first: int, last: int
    ) -> RecordedSeries:
        """The values of properties and statistics of an object of some class versions between times, both included."""
        versions = [self._version(key)[0] for key in keys]
        return SeriesQuery(self._files, *object, first, last).read(versions, members)

    def events(self, first: int, last: int, keys: Sequence[ClassKey] | None = None) -> Iterator[RemoteEvent]:
        """Events of some classes between times, both included, in order; None for all, also unknown ones."""
        chosen = [key for key in self.classes() if key.kind is Kind.EVENT] if keys is None else keys
        parts = [self._events_of(key, first, last) for key in chosen]
        if keys is None:
            parts.append(self._untyped_events(first, last))
        return heapq.merge(*parts, key=lambda item: item.timestamp)

    def _events_of(self, key: ClassKey, first: int, last: int) -> Iterator[RemoteEvent]:
        version, _ = self._version(key)
        rows = CellReader.of(version)
        schema = self.schema(key)
        assert isinstance(schema, EventSchema)
        source = self._files.select(RowKind.EVENTS, version, day(first), day(last))
        sql = (
            f"select _ts_ns, _severity, _agent{rows.sql} from {{files}} where _ts_ns between ? and ? "
            "order by _ts_ns, _run, _seq"
        )
        for time, severity, agent, *cells in self._files.each(sql, source, (first, last)):
            yield _event(agent, key, schema, time, severity, rows.values(cells, agent or ""))

    def _untyped_events(self, first: int, last: int) -> Iterator[RemoteEvent]:
        source = self._files.select(RowKind.UNTYPED, first=day(first), last=day(last))
        sql = (
            'select _ts_ns, severity, _agent, package, class, "values" from {files} '
            "where event and _ts_ns between ? and ? order by _ts_ns, _run, _seq"
        )
        for time, severity, agent, package, name, values in self._files.each(sql, source, (first, last)):
            key = ClassKey(package or "", name, Kind.EVENT) if name else None
            yield _event(agent, key, None, time, 7 if severity is None else severity, any_values(values))

    def replay(self, first: int, last: int) -> Iterator[ReplayRow]:
        """What the recorder received, in that order, after one time of its clock and up to another one."""
        versions = [version for _, (version, _) in sorted(self._versions.items())]
        for begin in range(first, last, _REPLAY_STEP):
            end = min(last, begin + _REPLAY_STEP)
            yield from replay_rows(self._files, versions, begin, end)


def _event(
    agent: str | None,
    key: ClassKey | None,
    schema: EventSchema | None,
    time: int,
    severity: int,
    values: Mapping[str, object],
) -> RemoteEvent:
    return RemoteEvent(
        agent=Agent(info_from_name(agent or "")),
        class_key=key,
        schema=schema,
        timestamp=time,
        severity=severity,
        arguments=values,
    )
