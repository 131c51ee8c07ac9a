"""Events one after the other. Of several beginnings the newest counts: it leaves most time for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qmf.pipeline.correlate.detectors.base import NEVER, Detector, Evidence, Signal, evidence_of
from qmf.pipeline.correlate.rules import SequenceRule


class SequenceDetector(Detector):
    """A signal's role has a bit for each step that the event matches."""

    def __init__(self, rule: SequenceRule, key: str) -> None:
        super().__init__(rule, key)
        self._of = rule
        #: For each step but the last: the events up to it, or none.
        self._begun: list[list[Evidence]] = [[] for _ in rule.steps[1:]]
        self._until = NEVER

    def feed(self, signal: Signal) -> None:
        if not self._is_new(signal):
            return
        # From the end, so that one event isn't used for two steps of one sequence.
        for step in reversed(range(len(self._of.steps))):
            if not signal.role >> step & 1:
                continue
            before = self._begun[step - 1] if step else []
            if step and (not before or signal.at - before[0][0] > self._of.within):
                continue
            events = [*before, evidence_of(signal)]
            if step == len(self._of.steps) - 1:
                self._complete(signal, events)
                return
            self._begun[step] = events

    def _complete(self, signal: Signal, events: list[Evidence]) -> None:
        self._begun = [[] for _ in self._begun]
        if self._open is None:
            self._raise_alert(signal.at, events[0][0], events, origin=(signal.agent, signal.object), count=len(events))
        self._until = self.due = signal.at + self._of.clear_after

    def advance(self, now: int) -> None:
        if self._open is not None and self._until < now:
            self._clear_alert(self._until, "it didn't happen again", [])
            self._until = self.due = NEVER

    def _state(self, now: int) -> dict[str, Any]:
        begun = [events if events and now - events[0][0] <= self._of.within else [] for events in self._begun]
        state: dict[str, Any] = {"begun": begun} if any(begun) else {}
        if self._open is not None:
            state["until"] = self._until
        return state

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._begun = state.get("begun", self._begun)
        self._until = self.due = state.get("until", NEVER)
