"""What was recorded in a period, row by row, in the order in which the recorder received it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

import attrs

from qmf.pipeline.history.classes import CellReader, key_of
from qmf.pipeline.history.files import LakeFiles
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion, MemberKind
from qmf.pipeline.lake.days import NS_PER_DAY, day
from qmf.schema import ClassKey

Order = tuple[int, str, int]
"""Time of arrival, run, and number of a row."""


@attrs.frozen
class ReplayedObject:
    """A publication of one object: the values that were published, by wire name, and its place."""

    order: Order
    agent: str
    epoch: int
    name: str
    key: ClassKey
    values: Mapping[str, object]
    updated: int
    created: int
    deleted: int


@attrs.frozen
class ReplayedEvent:
    """An event, and its place as of `ReplayedObject`."""

    order: Order
    agent: str
    key: ClassKey
    time: int
    severity: int
    values: Mapping[str, object]


@attrs.frozen
class ReplayedAgent:
    """An agent that was found, restarted, or gone, maybe with a goodbye; its place is as of `ReplayedObject`."""

    order: Order
    agent: str
    epoch: int
    interval: float
    present: bool
    goodbye: bool = False


ReplayRow = ReplayedObject | ReplayedEvent | ReplayedAgent


def replay_rows(files: LakeFiles, versions: list[ClassVersion], first: int, last: int) -> Iterator[ReplayRow]:
    """All rows of a period of arrival, the first time excluded, in order; objects and events of some classes."""
    parts: list[Iterator[ReplayRow]] = [_agents(files, first, last)]
    for version in versions:
        part = _events if version.event else _objects
        parts.append(part(files, version, first, last))
    return heapq.merge(*parts, key=lambda row: row.order)


_ORDER = "_received_ns, _run, _seq"
_WHERE = "where _received_ns > ? and _received_ns <= ?"


def _agents(files: LakeFiles, first: int, last: int) -> Iterator[ReplayRow]:
    sql = f"select {_ORDER}, _agent, _epoch, change, reason, interval from {{files}} {_WHERE} order by {_ORDER}"
    source = files.select(RowKind.AGENTS, first=day(first), last=day(last))
    for *order, agent, epoch, change, reason, interval in files.each(sql, source, (first, last)):
        if reason != "disconnected":  # that was the recorder, not the agent
            place = (order[0], order[1], order[2])
            present = change != "removed"
            yield ReplayedAgent(place, agent, epoch or 0, interval or 0.0, present, goodbye=reason == "goodbye")


def _objects(files: LakeFiles, version: ClassVersion, first: int, last: int) -> Iterator[ReplayRow]:
    properties = CellReader([item for item in version.columns if item.kind is not MemberKind.STATISTIC])
    statistics = CellReader([item for item in version.columns if item.kind is MemberKind.STATISTIC])
    own = "_agent, _object, _object_epoch, _ts_ns, _create_ns, _delete_ns, _properties, _statistics"
    sql = f"select {_ORDER}, {own}{properties.sql}{statistics.sql} from {{files}} {_WHERE} order by {_ORDER}"
    key, count = key_of(version), len(properties.columns)
    # An object that was asked for has the time of its last change, which may be long before.
    source = files.select(RowKind.OBJECTS, version, last=day(last + NS_PER_DAY))
    for time, run, seq, *row in files.each(sql, source, (first, last)):
        agent, name, epoch, updated, created, deleted, has_properties, has_statistics, *cells = row
        values: dict[str, object] = {}
        if has_properties:
            values |= properties.values(cells[:count], agent)
        if has_statistics:
            values |= statistics.values(cells[count:], agent)
        yield ReplayedObject(
            (time, run, seq), agent, epoch or 0, name, key, values, updated, created or 0, deleted or 0
        )


def _events(files: LakeFiles, version: ClassVersion, first: int, last: int) -> Iterator[ReplayRow]:
    rows = CellReader.of(version)
    key = key_of(version)
    sql = f"select {_ORDER}, _agent, _ts_ns, _severity{rows.sql} from {{files}} {_WHERE} order by {_ORDER}"
    source = files.select(RowKind.EVENTS, version, day(first - NS_PER_DAY), day(last + NS_PER_DAY))
    for time, run, seq, agent, raised, severity, *cells in files.each(sql, source, (first, last)):
        yield ReplayedEvent((time, run, seq), agent, key, raised, severity, rows.values(cells, agent or ""))
