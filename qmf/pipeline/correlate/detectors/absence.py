"""Absence of what was there before, or must be. Time without a recorder doesn't count: then the wait begins again.

A row of heartbeats that is open says that no row comes as long as none is missed: until then the subject is there,
unless another row ends this, or its recorder ended.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from typing import Any

from qmf.pipeline.correlate.detectors.base import (
    BEGIN,
    GONE,
    GOODBYE,
    NEVER,
    OPEN,
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

    _stored = {"seen": "_seen", "last": "_last", "whose": "_origin", "promised": "_promised"}  # noqa: RUF012

    def __init__(self, rule: AbsenceRule, key: str, context: DetectorContext) -> None:
        super().__init__(rule, key)
        self._of = rule
        self._context = context
        self._seen: int | None = None
        self._last: Evidence | None = None
        self._origin: list[str | None] = [None, None]
        #: The open rows of heartbeats, by agent and run: their time, and until when no other one need come.
        self._promised: dict[str, tuple[int, int]] = {}
        #: The latest of these ends; 0 for none.
        self._promised_until = 0

    def feed(self, signal: Signal) -> None:
        if signal.role == GONE:
            self._on_goodbye(signal.at, "the object was deleted")
            return
        if signal.role == BEGIN:
            if self._seen is None:
                self._seen, self._origin = signal.at, [signal.agent, None]
                self.due = signal.at + self._of.duration
            return
        heard = self._time_heard(signal)
        self._seen = max(heard, self._seen or heard)
        self._last = evidence_of(signal._replace(value=None))
        agent = None if self._of.per is Per.RULE else signal.agent
        self._origin = [agent, signal.object if self._of.per is Per.OBJECT else None]
        if self._open is not None and heard > self._open.at_ns:
            self._clear_alert(signal.at, "heard again", [self._last])
        self.due = self._due_without_outages()

    def _time_heard(self, signal: Signal) -> int:
        """When the subject was there last, as a row says."""
        source = f"{signal.agent}\n{signal.run}"
        if signal.role == OPEN:
            self._promise(source, signal.at, signal.at + int(signal.value or 0))
            return signal.at
        ended = self._promised.pop(source, None)
        if ended is not None and ended[1] == self._promised_until:
            self._promised_until = max((until for _at, until in self._promised.values()), default=0)
        # The end of an interval comes after its last heartbeat.
        return signal.at + int(signal.value or 0)

    def _promise(self, source: str, at: int, until: int) -> None:
        """Note an open row, as long as a recorder was there."""
        outages = self._context.outages
        number = bisect_left(outages, (at, 0))
        if number < len(outages):
            until = min(until, outages[number][0])
        until = min(until, self._context.ended.get(source.rpartition("\n")[2], until))
        self._promised[source] = (at, until)
        self._promised_until = max(self._promised_until, until)

    def on_ends_known(self) -> None:
        if self._promised:
            before, self._promised, self._promised_until = self._promised, {}, 0
            for source, (at, until) in before.items():
                self._promise(source, at, until)
            self.due = min(self.due, self._due_without_outages())

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
            self._raise_alert(self.due, self._known_until(), evidence, origin=(agent, object_))
        self.due = NEVER if self._of.forget is None else self._after(self._of.forget)
        if self.due == NEVER and self._of.forget is not None:
            self.due = now
        elif self.due < now:
            assert self._of.forget is not None
            self._clear_alert(self.due, f"given up after {duration_text(self._of.forget)}", [])
            self._last = None
            self._forget()

    def goodbye(self, agent: str, at: int) -> None:
        if agent == self._origin[0]:
            self._on_goodbye(at, GOODBYE)

    def _on_goodbye(self, at: int, reason: str) -> None:
        """The subject went away on purpose."""
        if not self._of.goodbye:
            if self._open is not None:
                self._clear_alert(at, reason, [])
            self._forget()

    def _forget(self) -> None:
        self._seen, self._promised, self._promised_until, self.due = None, {}, 0, NEVER

    def _known_until(self) -> int:
        """Until when the subject is known to be there."""
        return max(self._seen or 0, self._promised_until)

    def _due_without_outages(self) -> int:
        wait = self._of.duration if self._open is None else self._of.forget
        return NEVER if wait is None else self._known_until() + wait

    def _after(self, wait: int) -> int:
        """The time at which the subject has been silent for so long while it was recorded."""
        seen = self._known_until()
        due = seen + wait
        for begin, end in self._context.outages:
            if begin >= due:
                break
            if end > seen:
                due = NEVER if end == NEVER else max(due, end + wait)
        return due

    def _state(self, now: int) -> dict[str, Any]:
        return {} if self._seen is None else super()._state(now)

    def _restore(self, state: Mapping[str, Any]) -> None:
        super()._restore(state)
        for source, (at, until) in self._promised.items():
            self._promise(source, at, until)
        if self._seen is not None:
            self.due = self._due_without_outages()
