"""Which agents were present at a time, as far as the recorders knew.

Each run of a recorder begins without agents and notes every one that it finds; from then on it knows the objects of
that agent, since it asks for them. So the state of an agent's objects follows from the rows of one run after the one in
which the agent was found, or found again. Several recorders may write to one lake at the same time.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

import attrs

from qmf.pipeline.history.files import Row

#: Nanoseconds around a time in which heartbeats show which runs were active.
NEARBY = 600 * 10**9
#: The reason of a gap's end: agents that are still there are found again.
AGAIN = "connected again"

#: A run without any heartbeat for so long had ended.
SILENT = 60 * 10**9


@attrs.frozen
class Presence:
    """An agent that was present, by the rows of a run after that with which it was found, `since`, at a time.

    `cut` is when the recorder's connection was lost; 0 while it stands.
    """

    run: str
    since: int
    time: int
    agent: str
    epoch: int
    interval: float
    cut: int = 0


@attrs.frozen
class Presences:
    """What was present at a time: agents by name; and why values may be older than that, since when."""

    agents: dict[str, Presence]
    gap: str = ""
    gap_since: int = 0


def presences(
    at: int, changes: Iterable[Row], beats: Mapping[str, tuple[int, int, int]], earlier: int = 0
) -> Presences:
    """The agents that were present at a time.

    Args:
        changes: all rows about agents up to that time: run, number, time of arrival, agent, epoch, change (``added``,
            ``restarted``, ``removed``, or `AGAIN` of no agent), reason of a removal, and interval.
        beats: by run: times of its first heartbeat nearby, of its last one up to `at`, and of its last one nearby.
        earlier: time of the last heartbeat before `at` if none is nearby; 0 if there is none at all.
    """
    by_run = _agents_by_run(changes)
    runs = [run for run in {*by_run, *beats} if start_of_run(run) <= at]
    if not runs:
        return Presences({})
    latest = max(runs)
    current = [run for run in sorted(runs) if run == latest or _is_parallel(run, latest, at, beats)]
    agents: dict[str, Presence] = {}
    for run in current:
        agents.update(by_run.get(run, {}))
    cut = min((item.cut for item in agents.values() if item.cut), default=0)
    if cut:
        return Presences(agents, "the recorder had no connection", cut)
    until = max((beats[run][1] for run in current if run in beats), default=earlier)
    if until and at - until > SILENT:
        return Presences(agents, "nothing was recorded", until)
    return Presences(agents)


def _agents_by_run(changes: Iterable[Row]) -> dict[str, dict[str, Presence]]:
    by_run: dict[str, dict[str, Presence]] = defaultdict(dict)
    for run, seq, time, agent, epoch, change, reason, interval in sorted(changes, key=lambda row: row[:2]):
        present = by_run[run]
        if change == AGAIN:
            by_run[run] = {name: item for name, item in present.items() if not item.cut}
        elif change != "removed":
            present[agent] = Presence(run, seq, time, agent, epoch or 0, interval or 0.0)
        elif reason == "disconnected" and agent in present:
            # It was the recorder that was cut off: what it knew last is the best that is known.
            present[agent] = attrs.evolve(present[agent], cut=time)
        else:
            present.pop(agent, None)
    return by_run


def start_of_run(run: str) -> int:
    return int(run.partition("_")[0])


def _is_parallel(run: str, latest: str, at: int, beats: Mapping[str, tuple[int, int, int]]) -> bool:
    """True for a run of another recorder that was active, too: it recorded after the latest one began."""
    if run not in beats:
        return False
    _, before, after = beats[run]
    return after > start_of_run(latest) and at - before <= SILENT
