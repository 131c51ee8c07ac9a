"""The values of one object over time, with what happened to it and to its agent meanwhile."""

from __future__ import annotations

from collections.abc import Sequence

from qmf.pipeline.history.database import Database, Row
from qmf.pipeline.history.files import LakeFiles
from qmf.pipeline.history.presence import AGAIN, start_of_run
from qmf.pipeline.history.records import Incident, RecordedSeries, Sample
from qmf.pipeline.history.rows import CellReader
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion, LakeColumn, MemberKind
from qmf.pipeline.lake.days import day

DELETED = "deleted"

#: What a removal of an agent is called.
_REMOVED = {
    "goodbye": "agent ended",
    "silent": "agent lost",
    "disconnected": "recorder lost its connection",
}


class SeriesReader:
    """Reads the values of one object."""

    def __init__(self, files: LakeFiles, database: Database) -> None:
        self._files = files
        self._database = database

    def read(
        self,
        versions: Sequence[ClassVersion],
        agent: str,
        name: str,
        members: Sequence[str],
        first: int,
        last: int,
    ) -> RecordedSeries:
        """The values of an object.

        Args:
            versions: of its class.
            agent, name: of the object.
            members: properties and statistics.
            first, last: times, both included.
        """
        rows: list[tuple[Row, dict[str, object]]] = []
        for version in versions:
            columns = [item for item in version.columns if item.member in members]
            if columns:
                rows += self._rows(version, columns, agent, name, first, last)
        # Rows of the same time stay in the order in which they were recorded.
        rows.sort(key=lambda item: item[0][0])
        samples, incidents = _samples(rows, self._incidents(agent, first, last), first, last)
        # What happens to the agent after the end of the object is not about the object.
        gone = max((item.time for item in incidents if item.what == DELETED), default=last)
        known = max(gone, samples[-1].time) if samples else last
        shown = [item for item in incidents if item.time <= known or gone == last]
        return RecordedSeries(tuple(samples), tuple(sorted(shown, key=lambda item: item.time)))

    def _rows(
        self, version: ClassVersion, columns: Sequence[LakeColumn], agent: str, name: str, first: int, last: int
    ) -> list[tuple[Row, dict[str, object]]]:
        reading = CellReader(columns)
        repeated = {item.wire for item in columns if item.kind is not MemberKind.STATISTIC}
        # Every column is read of every row nearby, so only what is needed: the columns of statistics are empty in rows
        # without, but rows without properties repeat them.
        flag = "_properties" if repeated else "false"
        source = self._files.select(RowKind.OBJECTS, version, day(first), day(last), object=(agent, name))
        sql = (
            f"select _ts_ns, _epoch, _create_ns, _delete_ns, {flag}{reading.sql} "
            "from {files} where _object = ? and _agent = ? and _ts_ns between ? and ?"
        )
        found: list[tuple[Row, dict[str, object]]] = []
        for row in self._database.query(sql, source, (name, agent, first, last)):
            values = reading.values(row[5:], agent)
            if not row[4]:
                values = {wire: value for wire, value in values.items() if wire not in repeated}
            if values or row[3]:
                found.append((row, values))
        return found

    def _incidents(self, agent: str, first: int, last: int) -> list[Incident]:
        """What happened to an agent, and to the recording of it."""
        days = day(first), day(last)
        sql = (
            "select _received_ns, change, reason, _run from {files} where _agent = ? and _received_ns between ? and ? "
            "order by _received_ns, _run, _seq"
        )
        found: list[Incident] = []
        runs: set[str] = set()
        for time, change, reason, run in self._database.query(
            sql, self._files.select(RowKind.AGENTS, first=days[0], last=days[1]), (agent, first, last)
        ):
            if change == "restarted":
                found.append(Incident(time, "agent restarted"))
            elif change == "removed":
                found.append(Incident(time, _REMOVED.get(reason, "agent removed"), ends=True))
            elif start_of_run(run) > first and run not in runs:
                found.append(Incident(start_of_run(run), "recorder started"))
            else:
                found.append(Incident(time, "agent found"))
            runs.add(run)
        sql = (
            "select _received_ns, reason, count from {files} where (_agent = ? or _agent is null) "
            "and _received_ns between ? and ? order by _received_ns, _run, _seq"
        )
        for time, reason, count in self._database.query(
            sql, self._files.select(RowKind.GAPS, first=days[0], last=days[1]), (agent, first, last)
        ):
            if reason == "missed":
                found.append(Incident(time, f"{count} messages lost"))
            elif reason == AGAIN:
                found.append(Incident(time, "recorder connected again"))
        return found


def _samples(
    rows: Sequence[tuple[Row, dict[str, object]]], incidents: Sequence[Incident], first: int, last: int
) -> tuple[list[Sample], list[Incident]]:
    """The values of an object, and what happened to its agent, with what its rows say has happened to it.

    Args:
        rows: of the object, in order, with its values.
        incidents: of its agent.
        first, last: times, both included.
    """
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
