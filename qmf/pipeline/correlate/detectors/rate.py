"""The speed of a value's change.

Counters that go down, or whose agent has another epoch, continue from zero, as in rollups. Other values start again
with another epoch: earlier samples belong to an earlier run of the agent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qmf.pipeline.correlate.detectors.base import GONE, Signal
from qmf.pipeline.correlate.detectors.limits import LimitDetector
from qmf.pipeline.correlate.rules import SECOND, RateRule


class RateDetector(LimitDetector):
    """The number is the change per second, over the rule's time or since the sample before."""

    def __init__(self, rule: RateRule, key: str) -> None:
        super().__init__(rule, key)
        self._of = rule
        #: Times, and growth since the oldest of them; one is at or before the start of the rule's time.
        self._window: list[list[float]] = []
        self._value: float | None = None
        self._epoch: int | None = None

    def feed(self, signal: Signal) -> None:
        if signal.role == GONE:
            self._forget()
            self._gone(signal.at, "the object was deleted")
            return
        value = signal.value
        if value is None:
            return
        stale = self._limits.stale
        if self._window and stale is not None and signal.at - self._window[-1][0] > stale:
            self._forget()
        growth = self._growth(value, signal.epoch)
        self._value = value
        self._epoch = signal.epoch if signal.epoch is not None else self._epoch
        if growth is None:
            self._window = [[signal.at, 0.0]]
            return
        total = self._window[-1][1] + growth
        if signal.at == self._window[-1][0]:
            # Recorded twice, or two samples of one time: a division by zero.
            self._window[-1][1] = total
            return
        self._window.append([signal.at, total])
        start = signal.at - self._of.over
        while len(self._window) > 2 and self._window[1][0] <= start:
            self._window.pop(0)
        if self._of.over == 0:
            self._window = self._window[-2:]
        at, before = self._window[0]
        if self._of.over and at > start:
            return  # the samples don't cover the rule's time yet
        self._compare(signal, (total - before) * SECOND / (signal.at - at))

    def _growth(self, value: float, epoch: int | None) -> float | None:
        """Growth since the sample before; None where there is no comparable one."""
        if self._value is None:
            return None
        restarted = epoch is not None and self._epoch is not None and epoch != self._epoch and not self._of.continued
        if self._of.counter:
            return value if restarted or value < self._value else value - self._value
        return None if restarted else value - self._value

    def _forget(self) -> None:
        self._window, self._value, self._epoch = [], None, None

    def _state(self, now: int) -> dict[str, Any]:
        state = super()._state(now)
        stale = self._limits.stale
        if self._window and (stale is None or now - self._window[-1][0] <= stale):
            state |= {"window": self._window, "value": self._value, "epoch": self._epoch}
        return state

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        self._window = state.get("window", [])
        self._value, self._epoch = state.get("value"), state.get("epoch")
