"""What was recorded in a period, row by row, in the order in which the recorder received it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping

import attrs

from qmf.pipeline.history.database import Database
from qmf.pipeline.history.files import LakeFiles
from qmf.pipeline.history.rows import CellReader
from qmf.pipeline.history.schemas import key_of
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion, MemberKind
from qmf.pipeline.lake.days import NS_PER_DAY, day
from qmf.schema import ClassKey

#: The agents' clocks may differ from the recorder's by a day where files are chosen.

Order = tuple[int, str, int]
"""Time of arrival, run, and number of a row."""


@attrs.frozen
class ReplayedObject:
    """A publication of one object.

    Attributes:
        order: its place; the first part is the time of its arrival.
        agent, epoch, name, key: of the object.
        values: those that were published, by wire name.
        updated, created, deleted: times.
    """

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
    """An event.

    Attributes:
        order: as of `ReplayedObject`.
        agent: that raised it.
        key: its class.
        time, severity, values: of the event.
    """

    order: Order
    agent: str
    key: ClassKey
    time: int
    severity: int
    values: Mapping[str, object]


@attrs.frozen
class ReplayedAgent:
    """An agent that was found, restarted, or gone.

    Attributes:
        order: as of `ReplayedObject`.
        agent, epoch, interval: of the agent.
        present: False if it is gone.
        goodbye: it announced its end.
    """

    order: Order
    agent: str
    epoch: int
    interval: float
    present: bool
    goodbye: bool = False


ReplayRow = ReplayedObject | ReplayedEvent | ReplayedAgent


def replay_rows(
    files: LakeFiles, database: Database, versions: list[ClassVersion], first: int, last: int
) -> Iterator[ReplayRow]:
    """All rows of a period, in order.

    Args:
        files, database: the lake.
        versions: the classes whose objects and events are wanted.
        first, last: times of arrival, the first excluded.
    """
    parts: list[Iterator[ReplayRow]] = [_agents(files, database, first, last)]
    for version in versions:
        part = _events if version.event else _objects
        parts.append(part(files, database, version, first, last))
    return heapq.merge(*parts, key=lambda row: row.order)


_ORDER = "_received_ns, _run, _seq"
_WHERE = "where _received_ns > ? and _received_ns <= ?"


def _agents(files: LakeFiles, database: Database, first: int, last: int) -> Iterator[ReplayRow]:
    sql = f"select {_ORDER}, _agent, _epoch, change, reason, interval from {{files}} {_WHERE} order by {_ORDER}"
    source = files.select(RowKind.AGENTS, first=day(first), last=day(last))
    for *order, agent, epoch, change, reason, interval in database.each(sql, source, (first, last)):
        if reason != "disconnected":  # that was the recorder, not the agent
            place = (order[0], order[1], order[2])
            present = change != "removed"
            yield ReplayedAgent(place, agent, epoch or 0, interval or 0.0, present, goodbye=reason == "goodbye")


def _objects(files: LakeFiles, database: Database, version: ClassVersion, first: int, last: int) -> Iterator[ReplayRow]:
    properties = CellReader([item for item in version.columns if item.kind is not MemberKind.STATISTIC])
    statistics = CellReader([item for item in version.columns if item.kind is MemberKind.STATISTIC])
    own = "_agent, _object, _object_epoch, _ts_ns, _create_ns, _delete_ns, _properties, _statistics"
    sql = f"select {_ORDER}, {own}{properties.sql}{statistics.sql} from {{files}} {_WHERE} order by {_ORDER}"
    key, count = key_of(version), len(properties.columns)
    # An object that was asked for has the time of its last change, which may be long before.
    source = files.select(RowKind.OBJECTS, version, last=day(last + NS_PER_DAY))
    for (
        time,
        run,
        seq,
        agent,
        name,
        epoch,
        updated,
        created,
        deleted,
        has_properties,
        has_statistics,
        *cells,
    ) in database.each(sql, source, (first, last)):
        values: dict[str, object] = {}
        if has_properties:
            values |= properties.values(cells[:count], agent)
        if has_statistics:
            values |= statistics.values(cells[count:], agent)
        yield ReplayedObject(
            (time, run, seq), agent, epoch or 0, name, key, values, updated, created or 0, deleted or 0
        )


def _events(files: LakeFiles, database: Database, version: ClassVersion, first: int, last: int) -> Iterator[ReplayRow]:
    rows = CellReader.of(version)
    key = key_of(version)
    sql = f"select {_ORDER}, _agent, _ts_ns, _severity{rows.sql} from {{files}} {_WHERE} order by {_ORDER}"
    source = files.select(RowKind.EVENTS, version, day(first - NS_PER_DAY), day(last + NS_PER_DAY))
    for time, run, seq, agent, raised, severity, *cells in database.each(sql, source, (first, last)):
        yield ReplayedEvent((time, run, seq), agent, key, raised, severity, rows.values(cells, agent or ""))
