"""Absence. Time without a recorder doesn't count: the wait begins again when recording does."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qmf.pipeline.correlate.detectors.base import GONE, NEVER, Detector, DetectorContext, Evidence, Signal, evidence_of
from qmf.pipeline.correlate.rules import AbsenceRule
from qmf.pipeline.durations import format_duration


class AbsenceDetector(Detector):
    """Detects that no more rows of a subject arrive."""

    def __init__(self, rule: AbsenceRule, key: str, context: DetectorContext) -> None:
        super().__init__(rule, key)
        self._of = rule
        self._outages = context.outages
        self._seen: int | None = None
        self._last: Evidence | None = None
        self._origin: list[str | None] = [None, None]

    def feed(self, signal: Signal) -> None:
        if signal.role == GONE:
            if not self._of.goodbye:
                if self._open is not None:
                    self._clear_alert(signal.at, "it said goodbye or was deleted", [])
                self._seen = None
                self.due = NEVER
            return
        self._seen = signal.at
        self._last = evidence_of(signal)
        self._origin = [signal.agent, None if self._of.per_agent else signal.object]
        if self._open is not None:
            self._clear_alert(signal.at, "heard again", [self._last])
        self.due = signal.at + self._of.duration

    def advance(self, now: int) -> None:
        if self._seen is None or self._last is None:
            self.due = NEVER
            return
        if self._open is None:
            self.due = self._after(self._of.duration)
            if self.due >= now:
                return
            agent, object_ = self._origin
            self._raise_alert(self.due, self._seen, [self._last], origin=(agent, object_))
        self.due = NEVER if self._of.forget is None else self._after(self._of.forget)
        if self.due < now:
            assert self._of.forget is not None
            self._clear_alert(self.due, f"given up after {format_duration(self._of.forget)}", [])
            self._seen, self._last, self.due = None, None, NEVER

    def _after(self, wait: int) -> int:
        """The time at which the subject has been silent for so long while it was recorded."""
        assert self._seen is not None
        due = self._seen + wait
        for begin, end in self._outages:
            if begin >= due:
                break
            if end > self._seen:
                due = NEVER if end == NEVER else max(due, end + wait)
        return due

    def _state(self, now: int) -> dict[str, Any]:  # noqa: ARG002 - other detectors need it
        if self._seen is None:
            return {}
        return {"seen": self._seen, "last": self._last, "whose": self._origin}

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._seen, self._last = state.get("seen"), state.get("last")
        self._origin = state.get("whose", [None, None])
        if self._seen is not None:
            wait = self._of.duration if self._open is None else self._of.forget
            self.due = NEVER if wait is None else self._seen + wait
