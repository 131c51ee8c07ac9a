"""A value beyond a limit for some time, and back again: for thresholds, and for the second half of rates.

A value is valid until the next one: agents publish changes only, so without a message it is still the same. For other
agents, `stale` limits that time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qmf.pipeline.correlate.detectors.base import GONE, NEVER, Detector, Evidence, Signal, evidence_of
from qmf.pipeline.correlate.rules import Limits, RateRule, ThresholdRule


class LimitDetector(Detector):
    """Compares a number with the limits; subclasses provide the number."""

    def __init__(self, rule: ThresholdRule | RateRule, key: str) -> None:
        super().__init__(rule, key)
        self._limits: Limits = rule.limits
        self._since: int | None = None
        self._last_at = 0
        #: Of the bad time: the first sample, the worst, the last.
        self._kept: list[Evidence] = []
        self._origin: list[str | None] = [None, None]

    def _compare(self, signal: Signal, value: float) -> None:
        """Process the number of a signal."""
        limits = self._limits
        self._last_at = signal.at
        if self._open is not None:
            if limits.is_good(value):
                self._since = None
                self._clear_alert(signal.at, f"back at {value:g}", [evidence_of(signal, value)], value)
                self._kept = []
        elif limits.is_bad(value):
            kept = evidence_of(signal, value)
            if self._since is None:
                self._since = signal.at
                self._kept = [kept, kept, kept]
            else:
                worst = self._kept[1][4]
                is_worst = value > worst if limits.above else value < worst
                self._kept = [self._kept[0], kept if is_worst else self._kept[1], kept]
            self._origin = [signal.agent, signal.object]
            if signal.at - self._since >= limits.duration:
                self._raise_due(signal.at)
        else:
            self._since = None
            self._kept = []
        self._set_due()

    def _gone(self, at: int, reason: str) -> None:
        """The number doesn't exist any more."""
        if self._open is not None:
            self._clear_alert(at, reason, [])
        self._since = None
        self._kept = []
        self._set_due()

    def advance(self, now: int) -> None:
        while self.due < now:
            if self._stale_at() == self.due:
                assert self._limits.stale is not None
                self._gone(self.due, f"no sample for {self._limits.stale / 10**9:g} s")
            else:
                self._raise_due(self.due)
                self._set_due()

    def _raise_due(self, at: int) -> None:
        assert self._since is not None
        samples = {(item[2], item[3]): item for item in self._kept}
        value = self._kept[2][4]
        agent, object_ = self._origin
        self._raise_alert(
            at, self._since, sorted(samples.values(), key=lambda item: item[0]), value=value, origin=(agent, object_)
        )
        self._since = None
        self._kept = []

    def _stale_at(self) -> int:
        stale = self._limits.stale
        waits = self._since is not None or self._open is not None
        return NEVER if stale is None or not waits else self._last_at + stale

    def _set_due(self) -> None:
        fires = NEVER if self._since is None or self._open is not None else self._since + self._limits.duration
        self.due = min(fires, self._stale_at())

    def _state(self, now: int) -> dict[str, Any]:  # noqa: ARG002 - other detectors need it
        state: dict[str, Any] = {}
        if self._since is not None:
            state = {"since": self._since, "kept": self._kept, "whose": self._origin}
        if self._since is not None or self._open is not None:
            state["last"] = self._last_at
        return state

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._since = state.get("since")
        self._kept = state.get("kept", [])
        self._origin = state.get("whose", [None, None])
        self._last_at = state.get("last", 0)
        self._set_due()


class ThresholdDetector(LimitDetector):
    """The number is the value of a sample."""

    def feed(self, signal: Signal) -> None:
        if signal.role == GONE:
            self._gone(signal.at, "the object was deleted")
        elif signal.value is not None:
            self._compare(signal, signal.value)
