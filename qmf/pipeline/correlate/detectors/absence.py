"""Absence of what was there before, or must be. Time without a recorder doesn't count: then the wait begins again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qmf.pipeline.correlate.detectors.base import (
    BEGIN,
    GONE,
    GOODBYE,
    NEVER,
    Detector,
    DetectorContext,
    Evidence,
    Signal,
    evidence_of,
)
from qmf.pipeline.correlate.rules import AbsenceRule, Per
from qmf.views.times import duration_text


class AbsenceDetector(Detector):
    """Detects that no more rows of a subject arrive."""

    def __init__(self, rule: AbsenceRule, key: str, context: DetectorContext) -> None:
        super().__init__(rule, key)
        self._of = rule
        self._context = context
        self._seen: int | None = None
        self._last: Evidence | None = None
        self._origin: list[str | None] = [None, None]

    def feed(self, signal: Signal) -> None:
        if signal.role == GONE:
            self._on_goodbye(signal.at, "the object was deleted")
            return
        if signal.role == BEGIN:
            if self._seen is None:
                self._seen, self._origin = signal.at, [signal.agent, None]
                self.due = signal.at + self._of.duration
            return
        self._seen = signal.at
        self._last = evidence_of(signal)
        agent = None if self._of.per is Per.RULE else signal.agent
        self._origin = [agent, signal.object if self._of.per is Per.OBJECT else None]
        if self._open is not None:
            self._clear_alert(signal.at, "heard again", [self._last])
        self.due = signal.at + self._of.duration

    def advance(self, now: int) -> None:
        if self._seen is None:
            self.due = NEVER
            return
        if self._open is None:
            self.due = self._after(self._of.duration)
            if self.due >= now:
                # While nobody records it isn't known when the wait ends: it is seen again at any later time.
                self.due = now if self.due == NEVER else self.due
                return
            agent, object_ = self._origin
            evidence = [] if self._last is None else [self._last]
            self._raise_alert(self.due, self._seen, evidence, origin=(agent, object_))
        self.due = NEVER if self._of.forget is None else self._after(self._of.forget)
        if self.due == NEVER and self._of.forget is not None:
            self.due = now
        elif self.due < now:
            assert self._of.forget is not None
            self._clear_alert(self.due, f"given up after {duration_text(self._of.forget)}", [])
            self._seen, self._last, self.due = None, None, NEVER

    def goodbye(self, agent: str, at: int) -> None:
        if agent == self._origin[0]:
            self._on_goodbye(at, GOODBYE)

    def _on_goodbye(self, at: int, reason: str) -> None:
        """The subject went away on purpose."""
        if not self._of.goodbye:
            if self._open is not None:
                self._clear_alert(at, reason, [])
            self._seen = None
            self.due = NEVER

    def _after(self, wait: int) -> int:
        """The time at which the subject has been silent for so long while it was recorded."""
        assert self._seen is not None
        due = self._seen + wait
        for begin, end in self._context.outages:
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
