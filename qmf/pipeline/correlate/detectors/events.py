"""Events: a number of them within a time, one after the other, or with the state of the object that they are about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qmf.pipeline.correlate.detectors.base import GONE, NEVER, Detector, Evidence, Signal, evidence_of
from qmf.pipeline.correlate.rules import CountRule, JoinRule, SequenceRule

#: Roles of a join: the event; the object in the rule's state; the object in another state.
EVENT, MATCHING, OTHER = 0, 1, 2


class CountDetector(Detector):
    """Keeps the newest events, as many as the rule counts, in a window that slides with them: the oldest decides."""

    _stored = {"events": "_events"}  # noqa: RUF012

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
                    signal.at, oldest, self._events, origin=(signal.agent, signal.object), count=len(self._events)
                )
            self.due = oldest + self._of.within

    def advance(self, now: int) -> None:
        if self._open is not None and self.due < now:
            self._clear_alert(self.due, f"fewer than {self._of.at_least}", [])
        self.due = NEVER if self._open is None else self.due

    def _state(self, now: int) -> dict[str, Any]:
        return {"events": [item for item in self._events if now - item[0] <= self._of.within]}

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        if self._open is not None and self._events:
            self.due = self._events[0][0] + self._of.within


class SequenceDetector(Detector):
    """A signal's role has a bit for each step that the event matches.

    Of several beginnings the newest counts: it leaves most time for the rest.
    """

    _stored = {"begun": "_begun", "until": "due"}  # noqa: RUF012

    def __init__(self, rule: SequenceRule, key: str) -> None:
        super().__init__(rule, key)
        self._of = rule
        #: For each step but the last: the events up to it, or none.
        self._begun: list[list[Evidence]] = [[] for _ in rule.steps[1:]]

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
        self.due = signal.at + self._of.clear_after

    def advance(self, now: int) -> None:
        if self._open is not None and self.due < now:
            self._clear_alert(self.due, "it didn't happen again", [])
            self.due = NEVER

    def _state(self, now: int) -> dict[str, Any]:
        begun = [events if events and now - events[0][0] <= self._of.within else [] for events in self._begun]
        return {"begun": begun if any(begun) else None, "until": None if self._open is None else self.due}


class JoinDetector(Detector):
    """Keeps the last state of the object, and the last event that is not joined yet; either may come first."""

    _stored = {"matching": "_matching", "waiting": "_waiting", "whose": "_origin"}  # noqa: RUF012

    def __init__(self, rule: JoinRule, key: str) -> None:
        super().__init__(rule, key)
        self._of = rule
        self._matching: Evidence | None = None
        self._waiting: Evidence | None = None
        self._origin: list[str | None] = [None, None]

    def feed(self, signal: Signal) -> None:
        if signal.role == EVENT:
            if not self._is_new(signal) or self._open is not None:
                return
            self._waiting = evidence_of(signal)
            self._origin = [signal.agent, signal.object]
        elif signal.role == MATCHING:
            self._matching = evidence_of(signal)
            self._origin = [signal.agent, signal.object]
        else:
            self._matching = None
            if self._open is not None:
                gone = signal.role == GONE
                reason = "the object was deleted" if gone else "the object is in another state"
                self._clear_alert(signal.at, reason, [] if gone else [evidence_of(signal)])
        self._try(signal)

    def goodbye(self, agent: str, at: int) -> None:
        super().goodbye(agent, at)
        if agent == self._origin[0]:
            self._matching = None

    def _try(self, signal: Signal) -> None:
        event, state = self._waiting, self._matching
        if event is None or state is None or self._open is not None:
            return
        if abs(event[0] - state[0]) <= self._of.within:
            self._waiting = None
            agent, object_ = self._origin
            # The event last: where both have a field of one name, its value is used.
            self._raise_alert(signal.at, event[0], [state, event], origin=(agent, object_))

    def advance(self, now: int) -> None:
        """There are no deadlines."""

    def _state(self, now: int) -> dict[str, Any]:
        kept = {"matching": self._matching, "waiting": self._waiting}
        state: dict[str, Any] = {
            name: item for name, item in kept.items() if item is not None and now - item[0] <= self._of.within
        }
        return state | ({"whose": self._origin} if state else {})
