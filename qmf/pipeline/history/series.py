"""The values of one object over time, with what happened to it and to its agent meanwhile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from qmf.pipeline.history.classes import CellReader
from qmf.pipeline.history.files import LakeFiles, Row
from qmf.pipeline.history.presence import AGAIN, start_of_run
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion, LakeColumn, MemberKind
from qmf.pipeline.lake.days import day

DELETED = "deleted"

#: What a removal of an agent is called.
_REMOVED = {"goodbye": "agent ended", "silent": "agent lost", "disconnected": "recorder lost its connection"}


@attrs.frozen
class Sample:
    """Values that an object sent at a time, by the agent's clock, by wire name; epoch 0 is an unknown one.

    `begins` is true where nothing is known of the time just before: growth must not be computed across it.
    """

    time: int
    epoch: int
    values: Mapping[str, object]
    begins: bool = False


@attrs.frozen
class Incident:
    """What happened to an object, to its agent, or to the recording; `ends` if the object was not recorded after it."""

    time: int
    what: str
    ends: bool = False


@attrs.frozen
class RecordedSeries:
    """The values of one object over time, and what happened; both in order of time."""

    samples: tuple[Sample, ...]
    incidents: tuple[Incident, ...]


@attrs.frozen
class SeriesQuery:
    """What is read: the values of an object of some agent between two times, both included."""

    files: LakeFiles
    agent: str
    name: str
    first: int
    last: int

    def read(self, versions: Sequence[ClassVersion], members: Sequence[str]) -> RecordedSeries:
        """The values of some properties and statistics, of the versions of the object's class."""
        first, last = self.first, self.last
        rows: list[tuple[Row, dict[str, object]]] = []
        for version in versions:
            columns = [item for item in version.columns if item.member in members]
            if columns:
                rows += self._rows(version, columns)
        # Rows of the same time stay in the order in which they were recorded.
        rows.sort(key=lambda item: item[0][0])
        samples, incidents = _samples(rows, self._incidents(), first, last)
        # What happens to the agent after the end of the object is not about the object.
        gone = max((item.time for item in incidents if item.what == DELETED), default=last)
        known = max(gone, samples[-1].time) if samples else last
        shown = [item for item in incidents if item.time <= known or gone == last]
        return RecordedSeries(tuple(samples), tuple(sorted(shown, key=lambda item: item.time)))

    def _rows(self, version: ClassVersion, columns: Sequence[LakeColumn]) -> list[tuple[Row, dict[str, object]]]:
        reading = CellReader(columns)
        repeated = {item.wire for item in columns if item.kind is not MemberKind.STATISTIC}
        # Every column is read of every row nearby, so only what is needed: the columns of statistics are empty in rows
        # without, but rows without properties repeat them.
        flag = "_properties" if repeated else "false"
        days, own = (day(self.first), day(self.last)), (self.agent, self.name)
        source = self.files.select(RowKind.OBJECTS, version, *days, object=own)
        sql = (
            f"select _ts_ns, _epoch, _create_ns, _delete_ns, {flag}{reading.sql} "
            "from {files} where _agent = ? and _object = ? and _ts_ns between ? and ?"
        )
        found: list[tuple[Row, dict[str, object]]] = []
        for row in self.files.query(sql, source, (*own, self.first, self.last)):
            values = reading.values(row[5:], self.agent)
            if not row[4]:
                values = {wire: value for wire, value in values.items() if wire not in repeated}
            if values or row[3]:
                found.append((row, values))
        return found

    def _incidents(self) -> list[Incident]:
        first, last = day(self.first), day(self.last)
        parameters = (self.agent, self.first, self.last)
        sql = (
            "select _received_ns, change, reason, _run from {files} where _agent = ? and _received_ns between ? and ? "
            "order by _received_ns, _run, _seq"
        )
        found: list[Incident] = []
        runs: set[str] = set()
        rows = self.files.query(sql, self.files.select(RowKind.AGENTS, None, first, last), parameters)
        for time, change, reason, run in rows:
            if change == "restarted":
                found.append(Incident(time, "agent restarted"))
            elif change == "removed":
                found.append(Incident(time, _REMOVED.get(reason, "agent removed"), ends=True))
            elif start_of_run(run) > self.first and run not in runs:
                found.append(Incident(start_of_run(run), "recorder started"))
            else:
                found.append(Incident(time, "agent found"))
            runs.add(run)
        sql = (
            "select _received_ns, reason, count from {files} where (_agent = ? or _agent is null) "
            "and _received_ns between ? and ? order by _received_ns, _run, _seq"
        )
        for time, reason, count in self.files.query(
            sql, self.files.select(RowKind.GAPS, None, first, last), parameters
        ):
            if reason == "missed":
                found.append(Incident(time, f"{count} messages lost"))
            elif reason == AGAIN:
                found.append(Incident(time, "recorder connected again"))
        return found


def _samples(
    rows: Sequence[tuple[Row, dict[str, object]]], incidents: Sequence[Incident], first: int, last: int
) -> tuple[list[Sample], list[Incident]]:
    """The values of an object from its rows, in order; and what happened to its agent, with what its rows say."""
    samples: list[Sample] = []
    found = list(incidents)
    previous: Row | None = None
    breaks = [item.time for item in incidents if item.ends]
    for row, values in rows:
        time, epoch, create, delete = row[:4]
        if delete and delete <= last:
            found.append(Incident(delete, DELETED, ends=True))
            breaks.append(delete)
        elif create and first < create <= time and (previous is None or previous[2] != create):
            found.append(Incident(create, "created"))
        broken = previous is not None and any(previous[0] <= at < time for at in breaks)
        if values:
            samples.append(Sample(time, epoch or 0, values, begins=previous is None or broken))
            previous = row
    return samples, found
