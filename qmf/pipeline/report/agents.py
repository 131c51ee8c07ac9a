"""The rows of agents in a report, from the intervals of their availability. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qmf.pipeline.audit.availability import DOWN, UNKNOWN, UP
from qmf.pipeline.report.model import AvailabilityInterval, ReportedAgent
from qmf.pipeline.report.presence import Interval
from qmf.pipeline.report.time_range import NS, TimeRange


def intervals(found: Sequence[Interval], time_range: TimeRange) -> tuple[AvailabilityInterval, ...]:
    """The intervals that overlap a range, cut to it, by agent and time."""
    cuts = ((item, time_range.clip(item.start_ns, item.end_ns)) for item in found)
    return tuple(
        AvailabilityInterval(
            agent=item.agent, state=item.state, epoch=item.epoch, cause=item.cause, start_ns=cut[0], end_ns=cut[1]
        )
        for item, cut in sorted(cuts, key=lambda pair: (pair[0].agent, pair[0].start_ns))
        if cut is not None
    )


def agent_rows(
    shown: Sequence[AvailabilityInterval], beats: Mapping[str, int], known_until_ns: int
) -> tuple[ReportedAgent, ...]:
    """A row for each agent.

    Args:
        shown: the intervals of the range, by agent and time.
        beats: time of the last heartbeat of each agent.
        known_until_ns: the last row of the recording in the range.
    """
    lengths: dict[str, dict[str, float]] = {}
    restarts: dict[str, int] = {}
    epochs: dict[str, int | None] = {}
    last: dict[str, AvailabilityInterval] = {}
    for item in shown:
        own = lengths.setdefault(item.agent, {UP: 0.0, DOWN: 0.0, UNKNOWN: 0.0})
        own[item.state] += (item.end_ns - item.start_ns) / NS
        last[item.agent] = item
        if item.state == UP:
            restarted = item.cause == "restarted" or epochs.get(item.agent, item.epoch) != item.epoch
            restarts[item.agent] = restarts.get(item.agent, 0) + restarted
            epochs[item.agent] = item.epoch
    return tuple(
        ReportedAgent(
            agent=name,
            up=own[UP],
            down=own[DOWN],
            unknown=own[UNKNOWN],
            restarts=restarts.get(name, 0),
            state=last[name].state,
            known_until_ns=_known_until(last[name], beats.get(name), known_until_ns),
        )
        for name, own in sorted(lengths.items())
    )


def _known_until(last: AvailabilityInterval, beat: int | None, known_until_ns: int) -> int:
    """Until when the last state of an agent is known: its heartbeat says that it is up, a recorder that it is not."""
    if last.state == UP:
        return min(known_until_ns, beat) if beat is not None and beat > last.start_ns else last.start_ns
    return last.start_ns if last.state == UNKNOWN else min(known_until_ns, last.end_ns)
