"""An event and the state of the object that it is about, whichever arrives first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from qmf.pipeline.correlate.detectors.base import GONE, Detector, Evidence, Signal, evidence_of
from qmf.pipeline.correlate.rules import JoinRule

#: Roles: the event; the object in the rule's state; the object in another state.
EVENT, MATCHING, OTHER = 0, 1, 2


class JoinDetector(Detector):
    """Keeps the last state of the object, and the last event that is not joined yet."""

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

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._matching, self._waiting = state.get("matching"), state.get("waiting")
        self._origin = state.get("whose", [None, None])
