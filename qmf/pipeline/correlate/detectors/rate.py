"""The speed of a value's change.

Counters that go down, or whose agent has another epoch, continue from zero, as in rollups. Other values start again
with another epoch: earlier samples belong to an earlier run of the agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qmf.pipeline.correlate.rules import SECOND, RateRule


class RateMeter:
    """Makes the change per second from the samples of one object, over the rule's time or since the sample before."""

    def __init__(self, rule: RateRule) -> None:
        self._of = rule
        #: Times, and growth since the oldest of them; one is at or before the start of the rule's time.
        self._window: list[list[float]] = []
        self._value: float | None = None
        self._epoch: int | None = None

    def add(self, at: int, value: float, epoch: int | None) -> float | None:
        """The change per second after another sample; None where it isn't known."""
        stale = self._of.limits.stale
        if self._window and stale is not None and at - self._window[-1][0] > stale:
            self.forget()
        growth = self._growth(value, epoch)
        self._value = value
        self._epoch = epoch if epoch is not None else self._epoch
        if growth is None:
            self._window = [[at, 0.0]]
            return None
        total = self._window[-1][1] + growth
        if at == self._window[-1][0]:
            # Recorded twice, or two samples of one time: a division by zero.
            self._window[-1][1] = total
            return None
        self._window.append([at, total])
        if self._of.over == 0:
            self._window = self._window[-2:]
            (begin, before), _ = self._window
            return (total - before) * SECOND / (at - begin)
        return self._over(at, total)

    def forget(self) -> None:
        """Begin again."""
        self._window, self._value, self._epoch = [], None, None

    def state(self, now: int) -> dict[str, Any]:
        """The state for JSON; empty where the samples are too old to be of use."""
        stale = self._of.limits.stale
        if not self._window or (stale is not None and now - self._window[-1][0] > stale):
            return {}
        return {"window": self._window, "value": self._value, "epoch": self._epoch}

    def restore(self, state: Mapping[str, Any]) -> None:
        """The reverse."""
        self._window = state.get("window", [])
        self._value, self._epoch = state.get("value"), state.get("epoch")

    def _over(self, at: int, total: float) -> float | None:
        """The change over exactly the rule's time: samples don't arrive at its start, but before and after."""
        start = at - self._of.over
        while len(self._window) > 2 and self._window[1][0] <= start:
            self._window.pop(0)
        (first, low), (second, high) = self._window[:2]
        if first > start:
            return None  # the samples don't cover the rule's time yet
        before = low + (high - low) * (start - first) / (second - first)
        return (total - before) * SECOND / self._of.over

    def _growth(self, value: float, epoch: int | None) -> float | None:
        """Growth since the sample before; None where there is no comparable one."""
        if self._value is None:
            return None
        restarted = epoch is not None and self._epoch is not None and epoch != self._epoch and not self._of.continued
        if self._of.counter:
            return value if restarted or value < self._value else value - self._value
        return None if restarted else value - self._value
