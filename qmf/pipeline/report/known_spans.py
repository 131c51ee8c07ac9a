"""Values between and after samples, as far as they are known. Pure.

Agents publish what changed: without a new sample a gauge has its value, and a counter doesn't grow, as long as the
agent is there and its object exists.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs

from qmf.pipeline.audit.availability import UP
from qmf.pipeline.report.model import AvailabilityInterval
from qmf.pipeline.report.time_range import NS, TimeRange

Points = Sequence[tuple[float, float]]


@attrs.frozen
class KnownSpans:
    """What is known besides samples, in seconds: when agents were up, and until when, and the ends of objects.

    Objects are named by class, agent and object.
    """

    time_range: TimeRange
    up: Mapping[str, Sequence[tuple[float, float]]]
    known_until: Mapping[str, float]
    ended: Mapping[tuple[str, str, str], float] = attrs.field(factory=dict)

    @classmethod
    def of(
        cls,
        time_range: TimeRange,
        presence: Sequence[AvailabilityInterval],
        known_until: Mapping[str, int],
        ended: Mapping[tuple[str, str, str], float],
    ) -> KnownSpans:
        """From the intervals of agents, and until when they are known."""
        up: dict[str, list[tuple[float, float]]] = {}
        for item in presence:
            if item.state == UP:
                up.setdefault(item.agent, []).append((item.start_ns / NS, item.end_ns / NS))
        return cls(time_range, up, {agent: time / NS for agent, time in known_until.items()}, ended)

    def gauge(self, key: tuple[str, str, str], points: Points) -> list[tuple[float, float]]:
        """A gauge's values in each window in which it is known; `key` is class, agent and object."""
        step = self.time_range.step
        found: list[tuple[float, float]] = []
        for number, (t, value) in enumerate(points):
            found.append((t, value))
            following = points[number + 1][0] if number + 1 < len(points) else None
            until = self._until(key, t, following)
            found += [(start, value) for start in _windows(t + step, until, step)]
        return found

    def counter(
        self, key: tuple[str, str, str], points: Sequence[tuple[float, float, float]]
    ) -> list[tuple[float, float]]:
        """A counter's rates in each window in which they are known, also where growth became known later only.

        Points are the start of a window, the time of the sample from which the growth counts, and growth per second.
        """
        step = self.time_range.step
        found: list[tuple[float, float]] = []
        last = float(self.time_range.first_window(step) - step)
        longest = 2.0 * step
        for t, before, value in points:
            begin = max(last + step, before // step * step)
            found += [(start, value) for start in _windows(begin, t, step)]
            found.append((t, value))
            longest = max(longest, t - max(before, last)) if found else longest
            last = t
        until = self._until(key, last, None) if points else 0.0
        # Not yet where the next sample may still be on its way.
        if until - last > longest + step:
            found += [(start, 0.0) for start in _windows(last + step, until, step)]
        return found

    def _until(self, key: tuple[str, str, str], t: float, following: float | None) -> float:
        """Until when a value of a window is known without another sample."""
        agent = key[1]
        end = next((end for start, end in self.up.get(agent, ()) if start < t + self.time_range.step and t < end), None)
        if end is None:
            return t
        if following is not None:
            # Not across an end of the agent: what it had then is not known.
            return following if following < end else min(end, following)
        return min(end, self.known_until.get(agent, end), self.ended.get(key, end))


def _windows(first: float, until: float, step: int) -> list[float]:
    return [first + step * number for number in range(max(0, math.ceil((until - first) / step)))]
