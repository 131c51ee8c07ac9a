"""Which agents were present at a time, as far as the recorders knew.

Each run of a recorder begins without agents and notes every one that it finds; from then on it knows the objects of
that agent, since it asks for them. So the state of an agent's objects follows from the rows of one run after the one in
which the agent was found, or found again. Several recorders may write to one lake at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

#: Nanoseconds around a time in which heartbeats show which runs were active.
NEARBY = 600 * 10**9
#: The reason of a gap's end: agents that are still there are found again.
AGAIN = "connected again"

#: A run without any heartbeat for so long had ended.
SILENT = 60 * 10**9


@attrs.frozen
class RecordedAgentChange:
    """A row about an agent.

    Attributes:
        run, seq: of the row.
        time: when it was received, by the recorder's clock.
        agent, epoch: of the agent.
        change: ``added``, ``removed`` or ``restarted``; `AGAIN` of no agent: the recorder is connected again.
        reason: why it was removed.
        interval: seconds between its heartbeats.
    """

    run: str
    seq: int
    time: int
    agent: str
    epoch: int
    change: str
    reason: str | None
    interval: float


@attrs.frozen
class Presence:
    """An agent that was present.

    Attributes:
        run: whose rows tell its state.
        since: number of the row with which it was found; later rows are about this presence.
        time: when that was.
        agent, epoch, interval: of the agent.
        cut: when the recorder's connection was lost; 0 while it stands.
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
    """What was present at a time: agents by name.

    Attributes:
        gap: why values may be older than the time, or empty.
        gap_since: since when.
    """

    agents: dict[str, Presence]
    gap: str = ""
    gap_since: int = 0


def presences(
    at: int, changes: Iterable[RecordedAgentChange], beats: dict[str, tuple[int, int, int]], earlier: int = 0
) -> Presences:
    """The agents that were present.

    Args:
        at: the time.
        changes: all rows about agents up to that time, in order.
        beats: by run: times of its first heartbeat nearby, of its last one up to `at`, and of its last one nearby.
        earlier: time of the last heartbeat before `at` if none is nearby; 0 if there is none at all.
    """
    by_run: dict[str, dict[str, Presence]] = {}
    for item in changes:
        _apply(by_run.setdefault(item.run, {}), item)
    runs = [run for run in {*by_run, *beats} if start_of_run(run) <= at]
    if not runs:
        return Presences({})
    current = _active_runs(runs, at, beats)
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


def _active_runs(runs: Iterable[str], at: int, beats: dict[str, tuple[int, int, int]]) -> list[str]:
    """The latest of some runs, and those of other recorders that were active as well, in order."""
    latest = max(runs)
    return [run for run in sorted(runs) if run == latest or _is_parallel(run, latest, at, beats)]


def start_of_run(run: str) -> int:
    """When a run began."""
    return int(run.partition("_")[0])


def _is_parallel(run: str, latest: str, at: int, beats: dict[str, tuple[int, int, int]]) -> bool:
    """True for a run of another recorder that was active, too: it recorded after the latest one began."""
    if run not in beats:
        return False
    _, before, after = beats[run]
    return after > start_of_run(latest) and at - before <= SILENT


def _apply(present: dict[str, Presence], item: RecordedAgentChange) -> None:
    if item.change == AGAIN:
        for name in [name for name, agent in present.items() if agent.cut]:
            del present[name]
    elif item.change != "removed":
        present[item.agent] = Presence(item.run, item.seq, item.time, item.agent, item.epoch, item.interval)
    elif item.reason == "disconnected" and item.agent in present:
        # It was the recorder that was cut off: what it knew last is the best that is known.
        present[item.agent] = attrs.evolve(present[item.agent], cut=item.time)
    else:
        present.pop(item.agent, None)
