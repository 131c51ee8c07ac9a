"""The base of all detectors: signals in, changes of alerts out, the open alert, and the state as JSON.

Times are nanoseconds since 1970. A deadline at the time of a signal comes after that signal. Stored states use the JSON
keys of `dump`, and of the detectors' `_state`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import attrs

from qmf.pipeline.correlate.message_templates import iso, render
from qmf.pipeline.correlate.rules import Rule

#: A time that is never reached.
NEVER = (1 << 63) - 1

#: The role of a signal of a deleted object, or of an agent that said goodbye.
GONE = -1

#: Identities of events that are remembered, to recognise events that were recorded twice.
_IDENTITIES = 16


class Signal(NamedTuple):
    """A row of the lake, as a rule sees it.

    Attributes:
        at: its time for the rule: its own time, or that of its arrival where its own can't be right.
        ts: its own time.
        run, seq: identify the row in the lake.
        epoch: of the agent.
        role: its meaning for the rule; `GONE`, or as the detector defines.
        value: of the rule's expression.
        ident: the same for an event that was recorded twice.
        agent, object: of the row.
        fields: the columns for the rule's message and evidence, as JSON.
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
    """What detectors know besides their signals.

    Attributes:
        outages: intervals in which no recorder was recording, as (begin, end), in order.
    """

    outages: Sequence[tuple[int, int]] = ()


@attrs.frozen(kw_only=True)
class AlertChange:
    """An alert is raised or cleared.

    Attributes:
        raised: True for raised, False for cleared.
        began: when the incident began; rule, subject and this time identify the alert.
        at: when the rule was fulfilled, or the alert was cleared.
        window: the time of the evidence.
        value: that decided.
        agent, object: of the alert; None where the subject has none.
        message: text of the alert.
        reason: why it was cleared; empty for a raised one.
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


#: A signal as evidence, short and ready for JSON: at, ts, run, seq, value, fields.
Evidence = list[Any]


def evidence_of(signal: Signal, value: float | None = None) -> Evidence:
    """A signal as evidence; `value` replaces its own."""
    shown = signal.value if value is None else value
    return [signal.at, signal.ts, signal.run, signal.seq, shown, signal.fields]


def fields_of(evidence: Evidence) -> dict[str, Any]:
    """The columns of a piece of evidence."""
    found: dict[str, Any] = json.loads(evidence[5]) if evidence[5] else {}
    return found


def published(evidence: Evidence) -> dict[str, Any]:
    """Evidence as it is published."""
    at, ts, run, seq, value, _fields = evidence
    shown: dict[str, Any] = {"time": iso(ts), "run": run, "seq": seq}
    if at != ts:
        shown["counted"] = iso(at)
    if value is not None:
        shown["value"] = value
    return shown | fields_of(evidence)


class Detector:
    """Base of all detectors.

    Attributes:
        changes: of alerts, so far.
        due: `advance` has something to do after this time; `NEVER` for nothing.
    """

    def __init__(self, rule: Rule, key: str) -> None:
        self._rule = rule
        self._key = key
        self.changes: list[AlertChange] = []
        self.due = NEVER
        #: The alert that is open: began, raised at, message, agent, object.
        self._open: list[Any] | None = None
        self._recent_idents: list[int] = []

    def feed(self, signal: Signal) -> None:
        """Process a signal; the caller has called `advance` with its time."""
        raise NotImplementedError

    def advance(self, now: int) -> None:
        """Process deadlines before `now`."""
        raise NotImplementedError

    def dump(self, now: int) -> str | None:
        """The state after everything before `now` as JSON, or None for that of a new detector."""
        state = {name: value for name, value in self._state(now).items() if value not in (None, [])}
        if self._open is not None:
            state["open"] = self._open
            state["rule"] = [self._rule.name, self._rule.kind.value, int(self._rule.severity)]
        if state and self._recent_idents:
            state["idents"] = self._recent_idents
        return json.dumps(state, separators=(",", ":")) if state else None

    def load(self, text: str) -> None:
        """Restore a state from `dump`."""
        state = json.loads(text)
        self._open = state.pop("open", None)
        self._recent_idents = state.pop("idents", [])
        self._restore(state)

    # -- for subclasses

    def _state(self, now: int) -> dict[str, Any]:
        raise NotImplementedError

    def _restore(self, state: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def _is_new(self, signal: Signal) -> bool:
        """True unless the signal is an event that was recorded twice."""
        ident = signal.ident
        if ident is None:
            return True
        if ident in self._recent_idents:
            return False
        self._recent_idents = [*self._recent_idents[1 - _IDENTITIES :], ident]
        return True

    def _raise_alert(
        self,
        at: int,
        began: int,
        evidence: Sequence[Evidence],
        *,
        value: float | None = None,
        origin: tuple[str | None, str | None],
        count: int | None = None,
    ) -> None:
        """Raise an alert; `origin` is its agent and object."""
        fields: dict[str, Any] = {}
        for item in evidence:
            fields |= fields_of(item)
        message = render(
            self._rule,
            {
                **fields,
                "rule": self._rule.name,
                "subject": subject_of(self._key),
                "agent": origin[0],
                "object": origin[1],
                "value": value,
                "count": count,
                "began": iso(began),
                "at": iso(at),
            },
        )
        self._open = [began, at, message, *origin]
        self.changes.append(
            AlertChange(
                raised=True,
                began=began,
                at=at,
                window=(min([began, *(item[0] for item in evidence)]), at),
                value=value,
                agent=origin[0],
                object=origin[1],
                message=message,
                reason="",
                evidence=[published(item) for item in evidence],
            )
        )

    def _clear_alert(self, at: int, reason: str, evidence: Sequence[Evidence], value: float | None = None) -> None:
        """Clear the open alert."""
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
                evidence=[published(item) for item in evidence],
            )
        )


def subject_of(key: str) -> str:
    """The subject of a key, for people."""
    return ", ".join(part for part in key.split("\n") if part)


def alert_id(rule: str, key: str, began: int) -> str:
    """The id of an alert: 32 hex digits, always the same for the same incident."""
    return hashlib.sha256(f"{rule}\x1f{key}\x1f{began}".encode()).hexdigest()[:32]
