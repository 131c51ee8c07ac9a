"""Heartbeats as intervals: a row for each ten minutes of an agent's heartbeats, and one as soon as one is missed.

Readers need to know when an agent was there and when it was silent, not each of its heartbeats. So an interval has its
first and last heartbeat and their number, and ends where one is missed. An agent's first heartbeat is written at once;
while its heartbeats go on, a row says until when the next one comes; a row without that ends the interval. With each
batch comes a row of no agent, with the number of all heartbeats since the one before: the recorder was there.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from qmf.console.aio.agents import DEFAULT_INTERVAL
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.lake.heartbeats import LONGEST_NS
from qmf.pipeline.record.buffers import Cells

_SECOND = 10**9

#: Adds a row: the time of the last heartbeat, agent and epoch (None for the row of all agents), and the row's cells.
AddRow = Callable[[int, str | None, int | None, Cells], None]


@attrs.define
class _Interval:
    """Heartbeats of an agent that are in no row yet, and when the last row was written."""

    epoch: int | None
    seconds: float
    limit_ns: int
    first_ns: int
    last_ns: int
    received_ns: int
    count: int = 1
    written_ns: int = 0

    def cells(self, now_ns: int, *, goes_on: bool) -> Cells:
        until = now_ns + LONGEST_NS + self.limit_ns if goes_on else None
        return (self.seconds, self.first_ns, self.count, max(0, now_ns - self.received_ns), until)


class HeartbeatIntervals:
    """The intervals of all agents. Belongs to one thread."""

    def __init__(self, add: AddRow, clock: Callable[[], int]) -> None:
        """Begin without agents; `clock` is nanoseconds since 1970."""
        self._add, self._clock = add, clock
        self._agents: dict[str, _Interval] = {}
        self._count = self._first_ns = 0
        self._looked_ns = clock()

    def age(self) -> float:
        """Seconds since missed heartbeats were looked for; 0 while no agent is there."""
        return max(0, self._clock() - self._looked_ns) / _SECOND if self._agents or self._count else 0.0

    def on_heartbeat(self, agent: str, epoch: int | None, seconds: float, time_ns: int) -> None:
        """A heartbeat of an agent arrived, by its clock at a time; another one comes every so many seconds."""
        now = self._clock()
        if not self._count:
            self._first_ns = now
        self._count += 1
        known = self._agents.get(agent)
        if known is None or known.epoch != epoch or not 0 <= now - known.received_ns <= known.limit_ns:
            if known is not None:
                self._write(agent, known, now, goes_on=False)
            known = self._agents[agent] = _Interval(epoch, seconds, missed_after_ns(seconds), time_ns, time_ns, now)
            self._write(agent, known, now, goes_on=True)
            return
        if not known.count or time_ns < known.last_ns or time_ns // NS_PER_DAY != known.first_ns // NS_PER_DAY:
            # A row belongs to one day, and the times in it don't go back.
            if known.count:
                self._write(agent, known, now, goes_on=True)
            known.first_ns = time_ns
        known.last_ns, known.received_ns, known.count = time_ns, now, known.count + 1
        if seconds != known.seconds:
            known.seconds, known.limit_ns = seconds, missed_after_ns(seconds)
        if now - known.written_ns >= LONGEST_NS:
            self._write(agent, known, now, goes_on=True)

    def end(self, agent: str) -> None:
        known = self._agents.pop(agent, None)
        if known is not None:
            self._write(agent, known, self._clock(), goes_on=False)

    def close(self) -> None:
        """The recorder ends: write all that is in no row."""
        for agent in list(self._agents):
            self.end(agent)
        self.write()

    def write(self) -> None:
        """End the intervals of agents of which a heartbeat is missed, and write the row of all agents."""
        now = self._looked_ns = self._clock()
        for agent in [name for name, known in self._agents.items() if now - known.received_ns > known.limit_ns]:
            self.end(agent)
        if self._count:
            self._add(now, None, None, (None, self._first_ns, self._count, 0, None))
            self._count = 0

    def _write(self, agent: str, known: _Interval, now_ns: int, *, goes_on: bool) -> None:
        self._add(known.last_ns, agent, known.epoch, known.cells(now_ns, goes_on=goes_on))
        known.count, known.written_ns, known.first_ns = 0, now_ns, known.last_ns


def missed_after_ns(seconds: float) -> int:
    """How long after a heartbeat the next one is missed: half an interval late, and two seconds at least."""
    interval = seconds or DEFAULT_INTERVAL
    return int(max(1.5 * interval, interval + 2) * _SECOND)
