"""The availability of agents: when they were up, down, or not recorded. Pure.

The rules are those of `qmf.pipeline.audit.availability`, which computes the same for a whole lake. All times are by the
recorders' clocks. Within a run of a recorder, rows are ordered by their arrival. Each run gives points for each agent::

    added, restarted, heartbeat                up
    removed: goodbye                           down
    removed: silent                            down, since the last row: that long before the removal
    disconnected, after the last row of a run  unknown
    start of the run, connected again          down; unknown where the agent answers within `SETTLE_NS`

Then the runs are merged: up where it is up in any run, else down where it is down in any run, else unknown.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

import attrs

UP: Final = "up"
DOWN: Final = "down"
UNKNOWN: Final = "unknown"

CONNECTED, DISCONNECTED = "connected again", "disconnected"

_SECOND = 10**9

#: Nanoseconds that agents have to answer when a recorder connects.
SETTLE_NS = 10 * _SECOND

#: Silent intervals after which the console removes an agent, and the nanoseconds that it waits at least
#: (`qmf.console.aio.agents`).
_MISSED, _PATIENCE_NS = 3, 10 * _SECOND

_ABSENT = "absent"
_FIRST, _LAST = -1, (1 << 63) - 1


@attrs.frozen
class Sign:
    """A row that shows something about an agent or, without an agent, about the connection of a recorder.

    Attributes:
        run, seq: of the row.
        time: of its arrival.
        agent, epoch: of the agent; None where unknown.
        change: ``added``, ``restarted``, ``removed``, ``heartbeat``, `CONNECTED` or `DISCONNECTED`.
        reason: of a removal.
        interval: seconds between the heartbeats of the agent.
    """

    run: str
    seq: int
    time: int
    agent: str | None
    epoch: int | None
    change: str
    reason: str | None = None
    interval: float = 0.0


@attrs.frozen
class Interval:
    """A state of an agent, from one time to another; `cause` is that of its beginning."""

    agent: str
    state: str
    epoch: int | None
    cause: str
    start_ns: int
    end_ns: int


@attrs.frozen
class _Point:
    seq: int
    at: int
    state: str
    cause: str
    epoch: int | None = None
    back: int = 0


def availability(runs: Mapping[str, tuple[int, int]], signs: Iterable[Sign]) -> list[Interval]:
    """The intervals of each agent, without gaps from its first row to the end of the last run; sorted.

    Args:
        runs: first and last row of each run.
        signs: rows about agents and connections; of heartbeats, the first and the last of each epoch in a run suffice.
    """
    by_agent: dict[str, dict[str, list[_Point]]] = defaultdict(lambda: defaultdict(list))
    connections: dict[str, list[_Point]] = defaultdict(list)
    for sign in signs:
        if sign.agent is not None:
            by_agent[sign.agent][sign.run].append(_point(sign))
        elif sign.change == DISCONNECTED:
            connections[sign.run].append(_Point(sign.seq, sign.time, UNKNOWN, DISCONNECTED))
        else:
            connections[sign.run].append(_Point(sign.seq, sign.time, _ABSENT, _ABSENT))
    found: list[Interval] = []
    for agent, own in sorted(by_agent.items()):
        since = min(point.at for points in own.values() for point in points)
        parts: list[tuple[Interval, bool]] = []
        for run, (first, last) in runs.items():
            if last >= since:
                limits = [_Point(_FIRST, first, _ABSENT, _ABSENT), _Point(_LAST, last + 1, UNKNOWN, "not recorded")]
                parts += _intervals(agent, since, [*own.get(run, ()), *connections.get(run, ()), *limits])
        found += _merged(agent, parts)
    return found


def recorded_times(runs: Mapping[str, tuple[int, int]], signs: Iterable[Sign]) -> list[tuple[int, int]]:
    """When a recorder was connected: intervals that don't overlap, in order."""
    breaks: dict[str, list[Sign]] = defaultdict(list)
    for sign in signs:
        if sign.agent is None:
            breaks[sign.run].append(sign)
    parts: list[tuple[int, int]] = []
    for run, (first, last) in runs.items():
        begin: int | None = first
        for sign in sorted(breaks[run], key=lambda item: item.seq):
            if sign.change == DISCONNECTED and begin is not None:
                parts.append((begin, max(begin, sign.time)))
                begin = None
            elif sign.change == CONNECTED and begin is None:
                begin = sign.time
        if begin is not None:
            parts.append((begin, max(begin, last)))
    found: list[tuple[int, int]] = []
    for begin_ns, end_ns in sorted(parts):
        if found and begin_ns <= found[-1][1]:
            found[-1] = (found[-1][0], max(found[-1][1], end_ns))
        else:
            found.append((begin_ns, end_ns))
    return found


def _point(sign: Sign) -> _Point:
    if sign.change != "removed":
        return _Point(sign.seq, sign.time, UP, sign.change, sign.epoch)
    if sign.reason == DISCONNECTED:
        return _Point(sign.seq, sign.time, UNKNOWN, DISCONNECTED)
    patience = max(_PATIENCE_NS, int(sign.interval * _MISSED * _SECOND))
    back = patience if sign.reason == "silent" else 0
    return _Point(sign.seq, sign.time, DOWN, sign.reason or "removed", back=back)


def _intervals(agent: str, since: int, points: Sequence[_Point]) -> list[tuple[Interval, bool]]:
    """What one run knows of an agent: intervals, and whether each begins with a restart; without unknown ones."""
    # Where a row gives several points, the agent's own counts.
    ordered = sorted(points, key=lambda point: (point.seq, point.state == _ABSENT))
    times: list[int] = []
    latest = 0
    for number, point in enumerate(ordered):
        before, latest = latest, max(latest, point.at)
        # Silence began after the last row, which is not earlier than the point before.
        times.append(max(latest - point.back, before if number else 0))
    epochs = _filled([point.epoch for point in ordered])
    found: list[tuple[Interval, bool]] = []
    for number, (point, after) in enumerate(pairwise(ordered)):
        start, end = times[number], times[number + 1]
        state = point.state
        if state == _ABSENT:
            state = UNKNOWN if end - start <= SETTLE_NS and after.state != DOWN else DOWN
        start = max(start, since)
        if end > start and state != UNKNOWN:
            # Agents of libqmf2 always send the same epoch: the restart that the console saw is decisive.
            again = point.cause == "restarted" and number > 0 and epochs[number] == epochs[number - 1]
            epoch = epochs[number] if state == UP else None
            found.append((Interval(agent, state, epoch, point.cause, start, end), again))
    return found


def _filled(values: Sequence[int | None]) -> list[int | None]:
    """Each value; where it is unknown, the last known one, else the next."""
    found: list[int | None] = []
    last: int | None = next((value for value in values if value is not None), None)
    for value in values:
        last = value if value is not None else last
        found.append(last)
    return found


def _merged(agent: str, parts: Sequence[tuple[Interval, bool]]) -> list[Interval]:
    """Intervals of several runs, which may overlap, as adjacent ones."""
    starts: dict[int, list[tuple[Interval, bool]]] = defaultdict(list)
    ends: dict[int, list[Interval]] = defaultdict(list)
    for part in parts:
        starts[part[0].start_ns].append(part)
        ends[part[0].end_ns].append(part[0])
    found: list[Interval] = []
    open_now = {UP: 0, DOWN: 0}
    epoch: int | None = None
    times = sorted({*starts, *ends})
    for time in times:
        for item in ends.get(time, ()):
            open_now[item.state] -= 1
        began = starts.get(time, [])
        for item, _ in began:
            open_now[item.state] += 1
        state = UP if open_now[UP] else DOWN if open_now[DOWN] else UNKNOWN
        known = max((item.epoch for item, _ in began if item.epoch is not None), default=epoch)
        again = any(again for _, again in began) or (epoch is not None and known != epoch)
        epoch = known
        last = found[-1] if found else None
        if last is not None and last.state == state and not (state == UP and again):
            continue
        if last is not None:
            found[-1] = attrs.evolve(last, end_ns=time)
        cause = max(
            (item.cause for item, _ in began if item.state == state), default="heartbeat" if state == UP else _ABSENT
        )
        cause = "not recorded" if state == UNKNOWN else cause
        found.append(Interval(agent, state, epoch if state == UP else None, cause, time, time))
    # The last one is the unknown interval after the last run; it has no end.
    return [item for item in found if item.end_ns > item.start_ns]
