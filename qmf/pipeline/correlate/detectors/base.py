"""What all machines share: signals in, changes out, alerts that are open, and the state as JSON.

Times are nanoseconds since 1970. A deadline that falls on the time of a signal comes after that signal.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import attrs

from qmf.pipeline.correlate.message_templates import iso, render
from qmf.pipeline.correlate.rules import Rule

#: A time that doesn't come.
NEVER = (1 << 63) - 1

#: The role of a signal that says: the object was deleted, or the agent took its leave.
GONE = -1

#: Events that are remembered for telling those that were recorded twice.
_IDENTS = 16


class Signal(NamedTuple):
    """A row of the lake, as far as a rule is concerned.

    Attributes:
        at: when it counts: its own time, or that of its arrival where its own can't be right.
        ts: its own time.
        run, seq: where it is in the lake.
        epoch: of the agent.
        role: what it is for the rule; `GONE`, or as the machine says.
        value: of the rule's expression.
        ident: same for the same event.
        agent, object: whose.
        fields: the columns that the rule's message and evidence want, as JSON.
    """

    at: int
    ts: int
    run: str
    seq: int
    epoch: int | None
    role: int
    value: float | None
    ident: int | None
    agent: str | None
    object: str | None
    fields: str | None


@attrs.frozen
class DetectorContext:
    """What machines know besides their signals.

    Attributes:
        outages: times in which nobody recorded, as (begin, end), in order.
    """

    outages: Sequence[tuple[int, int]] = ()


@attrs.frozen(kw_only=True)
class AlertChange:
    """An alert is raised or ends.

    Attributes:
        raised: or cleared.
        began: when the incident began; together with rule and subject its identity.
        at: when the rule was fulfilled, or the alert ended.
        window: the time that the evidence spans.
        value: that decided.
        agent, object: whose; None where the subject is none.
        message: text of the alert.
        reason: why it ended; empty for one that is raised.
        evidence: samples and events.
    """

    raised: bool
    began: int
    at: int
    window: tuple[int, int]
    value: float | None
    agent: str | None
    object: str | None
    message: str
    reason: str
    evidence: list[dict[str, Any]]


#: What is kept of a signal for evidence, short and ready for JSON: at, ts, run, seq, value, fields.
Evidence = list[Any]


def evidence_of(signal: Signal, value: float | None = None) -> Evidence:
    """Keep a signal as evidence."""
    shown = signal.value if value is None else value
    return [signal.at, signal.ts, signal.run, signal.seq, shown, signal.fields]


def fields_of(kept: Evidence) -> dict[str, Any]:
    """The columns kept with it."""
    found: dict[str, Any] = json.loads(kept[5]) if kept[5] else {}
    return found


def told(kept: Evidence) -> dict[str, Any]:
    """Evidence as it is published."""
    at, ts, run, seq, value, _fields = kept
    shown: dict[str, Any] = {"time": iso(ts), "run": run, "seq": seq}
    if at != ts:
        shown["counted"] = iso(at)
    if value is not None:
        shown["value"] = value
    return shown | fields_of(kept)


class Detector:
    """Base of all machines.

    Attributes:
        changes: what came out; whoever drives the machine takes them.
        due: `advance` has something to do once this time is over; `NEVER` for nothing.
    """

    def __init__(self, rule: Rule, key: str) -> None:
        self._rule = rule
        self._key = key
        self.changes: list[AlertChange] = []
        self.due = NEVER
        #: The alert that is open: began, raised at, message, agent, object.
        self._open: list[Any] | None = None
        self._idents: list[int] = []

    def feed(self, signal: Signal) -> None:
        """Take a signal; `advance` was called with its time before."""
        raise NotImplementedError

    def advance(self, now: int) -> None:
        """Do what was due before `now`."""
        raise NotImplementedError

    def dump(self, now: int) -> str | None:
        """The state after everything before `now`, or None for that of a new machine."""
        state = {name: value for name, value in self._state(now).items() if value not in (None, [])}
        if self._open is not None:
            state["open"] = self._open
            state["rule"] = [self._rule.name, self._rule.kind.value, int(self._rule.severity)]
        if state and self._idents:
            state["idents"] = self._idents
        return json.dumps(state, separators=(",", ":")) if state else None

    def load(self, text: str) -> None:
        """Take up a state that `dump` gave."""
        state = json.loads(text)
        self._open = state.pop("open", None)
        self._idents = state.pop("idents", [])
        self._restore(state)

    # -- for subclasses

    def _state(self, now: int) -> dict[str, Any]:
        raise NotImplementedError

    def _restore(self, state: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def _is_new(self, signal: Signal) -> bool:
        """It is not an event that was recorded twice."""
        ident = signal.ident
        if ident is None:
            return True
        if ident in self._idents:
            return False
        self._idents = [*self._idents[1 - _IDENTS :], ident]
        return True

    def _begin(
        self,
        at: int,
        began: int,
        kept: Sequence[Evidence],
        *,
        value: float | None = None,
        whose: tuple[str | None, str | None],
        count: int | None = None,
    ) -> None:
        """Raise an alert."""
        fields: dict[str, Any] = {}
        for item in kept:
            fields |= fields_of(item)
        message = render(
            self._rule,
            {
                **fields,
                "rule": self._rule.name,
                "subject": subject_of(self._key),
                "agent": whose[0],
                "object": whose[1],
                "value": value,
                "count": count,
                "began": iso(began),
                "at": iso(at),
            },
        )
        self._open = [began, at, message, *whose]
        self.changes.append(
            AlertChange(
                raised=True,
                began=began,
                at=at,
                window=(min([began, *(item[0] for item in kept)]), at),
                value=value,
                agent=whose[0],
                object=whose[1],
                message=message,
                reason="",
                evidence=[told(item) for item in kept],
            )
        )

    def _end(self, at: int, reason: str, kept: Sequence[Evidence], value: float | None = None) -> None:
        """Clear the alert."""
        assert self._open is not None
        began, raised_at, message, agent, object_ = self._open
        self._open = None
        self.changes.append(
            AlertChange(
                raised=False,
                began=began,
                at=max(at, raised_at),
                window=(began, max(at, raised_at)),
                value=value,
                agent=agent,
                object=object_,
                message=message,
                reason=reason,
                evidence=[told(item) for item in kept],
            )
        )


def subject_of(key: str) -> str:
    """A key as people read it."""
    return ", ".join(part for part in key.split("\n") if part)


def alert_id(rule: str, key: str, began: int) -> str:
    """The identity of an alert: 32 hex digits, the same whenever the same incident is found."""
    return hashlib.sha256(f"{rule}\x1f{key}\x1f{began}".encode()).hexdigest()[:32]
