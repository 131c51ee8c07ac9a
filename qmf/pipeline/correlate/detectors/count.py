"""A number of events within a time: a window that slides with the events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qmf.pipeline.correlate.detectors.base import NEVER, Detector, Evidence, Signal, evidence_of
from qmf.pipeline.correlate.rules import CountRule


class CountDetector(Detector):
    """Keeps the newest events, as many as the rule counts: the oldest of them decides."""

    def __init__(self, rule: CountRule, key: str) -> None:
        super().__init__(rule, key)
        self._of = rule
        self._events: list[Evidence] = []

    def feed(self, signal: Signal) -> None:
        if not self._is_new(signal):
            return
        self._events = [*self._events, evidence_of(signal)][-self._of.at_least :]
        if len(self._events) < self._of.at_least:
            return
        oldest = self._events[0][0]
        if signal.at - oldest < self._of.within:
            if self._open is None:
                self._raise_alert(
                    signal.at,
                    oldest,
                    self._events,
                    origin=(signal.agent, signal.object),
                    count=len(self._events),
                )
            self.due = oldest + self._of.within

    def advance(self, now: int) -> None:
        if self._open is not None and self.due < now:
            self._clear_alert(self.due, f"fewer than {self._of.at_least}", [])
        self.due = NEVER if self._open is None else self.due

    def _state(self, now: int) -> dict[str, Any]:
        return {"events": [item for item in self._events if now - item[0] <= self._of.within]}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._events = state.get("events", [])
        if self._open is not None and self._events:
            self.due = self._events[0][0] + self._of.within
