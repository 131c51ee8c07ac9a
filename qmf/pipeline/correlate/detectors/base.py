"""The base of all detectors: signals in, changes of alerts out, the open alert, and the state as JSON.

Times are nanoseconds since 1970. A deadline at the time of a signal comes after that signal. Stored states use the JSON
keys of `dump`, and of the detectors' `_state`.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import attrs

from qmf.pipeline.correlate.alerts import NAME_LABEL
from qmf.pipeline.correlate.message_templates import iso, render, render_template
from qmf.pipeline.correlate.rules import Rule
from qmf.schema import Severity

#: A time that is never reached.
NEVER = (1 << 63) - 1

#: The role of a signal of a deleted object.
GONE = -1

#: The role of a signal from which on a subject is expected.
BEGIN = -3

#: The role of a row of heartbeats that go on; its value is for how many ns after it the next one comes at the latest.
OPEN = 1

#: The reason of alerts that end because their agent said goodbye.
GOODBYE = "its agent said goodbye"

#: Identities of events that are remembered, to recognise events that were recorded twice.
_IDENTITIES = 16


class Signal(NamedTuple):
    """A row of the lake, as a rule sees it.

    Attributes:
        at: its time for the rule: its own time, or that of its arrival where its own can't be right.
        ts: its own time.
        run, seq: identify the row in the lake.
        epoch: of the agent.
        role: its meaning for the rule; `GONE`, `BEGIN`, or as the detector defines.
        value: of the rule's expression.
        ident: the same for an event that was recorded twice.
        agent, object: of the row.
        fields: the columns for the rule's texts and evidence, as JSON.
    """

    at: int
    ts: int
    run: str
    seq: int
    epoch: int | None
    role: int
    value: float | None
    ident: str | None
    agent: str | None
    object: str | None
    fields: str | None


@attrs.define
class DetectorContext:
    """What detectors know besides their signals, as of `EvaluationPass`; all detectors of an evaluation share one."""

    outages: Sequence[tuple[int, int]] = ()
    ended: Mapping[str, int] = attrs.field(factory=dict)


class AlertTransition(enum.Enum):
    """What happens to an alert; the value is that in the table."""

    RAISED = "raised"
    CHANGED = "changed"  #: another severity
    CLEARED = "cleared"


@attrs.frozen(kw_only=True)
class AlertChange:
    """An alert is raised, cleared, or has another severity; the last one of a subject is its open alert.

    Attributes:
        key: of the subject.
        change: what happens.
        severity: of the alert from now on.
        began: when the incident began; rule, subject and this time identify the alert.
        at: when the rule was fulfilled, or the alert was changed or cleared.
        window: the time of the evidence.
        value: that decided.
        agent, object: of the alert; None where the subject has none.
        message: text of the alert.
        labels, annotations: of the alert.
        reason: why it was cleared; otherwise empty.
        evidence: samples and events.
    """

    key: str
    change: AlertTransition = AlertTransition.RAISED
    severity: Severity
    began: int
    at: int
    window: tuple[int, int] = (0, 0)
    value: float | None = None
    agent: str | None
    object: str | None
    message: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    reason: str = ""
    evidence: Sequence[Mapping[str, Any]] = ()

    @property
    def raised(self) -> bool:
        """True where the alert is raised."""
        return self.change is AlertTransition.RAISED

    def clear(self, at: int, reason: str) -> AlertChange:
        """The end of the alert."""
        end = max(at, self.at)
        cleared = AlertTransition.CLEARED
        return attrs.evolve(
            self, change=cleared, at=end, window=(self.began, end), value=None, reason=reason, evidence=()
        )

    def dump(self) -> dict[str, Any]:
        """What is stored of an open alert."""
        return {name: getattr(self, name) for name in _STORED}

    @classmethod
    def load(cls, key: str, content: Mapping[str, Any]) -> AlertChange:
        """The reverse of `dump`."""
        return cls(**{**content, "key": key, "severity": Severity(content["severity"])})


#: The attributes of open alerts in stored states.
_STORED = ("began", "at", "severity", "message", "agent", "object", "labels", "annotations")


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


def published_evidence(evidence: Evidence) -> dict[str, Any]:
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
        self._open: AlertChange | None = None
        self._recent_idents: list[str] = []

    def feed(self, signal: Signal) -> None:
        """Process a signal; the caller has called `advance` with its time."""
        raise NotImplementedError

    def advance(self, now: int) -> None:
        """Process deadlines before `now`."""
        raise NotImplementedError

    def goodbye(self, agent: str, at: int) -> None:
        """An agent said goodbye; the caller has called `advance` with the time."""
        if self._open is not None and self._open.agent == agent:
            self._clear_alert(at, GOODBYE, [])

    def on_ends_known(self) -> None:
        """The context is another one than before."""

    def pending(self) -> Iterable[AlertChange]:
        """The alerts whose condition holds, but not for long enough yet, as they would be raised."""
        return ()

    def dump(self, now: int) -> str | None:
        """The state after everything before `now` as JSON, or None for that of a new detector."""
        state = {name: value for name, value in self._state(now).items() if value not in (None, [], {})}
        if self._open is not None:
            state["open"] = self._open.dump()
        if state and self._recent_idents:
            state["idents"] = self._recent_idents
        return json.dumps(state, separators=(",", ":")) if state else None

    def load(self, text: str) -> None:
        """Restore a state from `dump`."""
        state = json.loads(text)
        found = state.pop("open", None)
        self._open = None if found is None else AlertChange.load(self._key, found)
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
        origin: tuple[str | None, str | None],
        severity: Severity | None = None,
        **values: Any,
    ) -> None:
        """Raise an alert, or change the severity of the open one.

        Its `origin` are agent and object; `severity` is None for that of the rule; `values` are for the templates:
        `value`, `count`, `limit`.
        """
        change = self._alert_change(at, began, evidence, origin, severity, values)
        if self._open is not None:
            # Labels identify the alert, so they stay as they were.
            change = attrs.evolve(change, change=AlertTransition.CHANGED, labels=self._open.labels)
        self._open = change
        self.changes.append(change)

    def _alert_change(
        self,
        at: int,
        began: int,
        evidence: Sequence[Evidence],
        origin: tuple[str | None, str | None],
        severity: Severity | None,
        values: Mapping[str, Any],
    ) -> AlertChange:
        """The alert as it is raised."""
        fields: dict[str, Any] = {}
        for item in evidence:
            fields |= fields_of(item)
        severity = self._rule.severity if severity is None else severity
        known = {
            **fields,
            "rule": self._rule.name,
            "subject": subject_of(self._key),
            "agent": origin[0],
            "object": origin[1],
            "began": iso(began),
            "at": iso(at),
            "severity": severity.name.lower(),
            **values,
        }
        return AlertChange(
            key=self._key,
            severity=severity,
            began=began,
            at=at,
            window=(min([began, *(item[0] for item in evidence)]), at),
            value=values.get("value"),
            agent=origin[0],
            object=origin[1],
            message=render(self._rule, known),
            labels=self._labels(origin, known),
            annotations={
                name: render_template(self._rule, template, known) for name, template in self._rule.annotations.items()
            },
            evidence=[published_evidence(item) for item in evidence],
        )

    def _labels(self, origin: tuple[str | None, str | None], values: Mapping[str, Any]) -> dict[str, str]:
        found: dict[str, str | None] = {NAME_LABEL: self._rule.name}
        if grouped := self._rule.grouped_by:
            parts = self._key.split("\n")
            for number, (text, part) in enumerate(zip(grouped, parts, strict=False), 1):
                found[_GROUP_LABELS.get(text) or (text if text.isidentifier() else f"by_{number}")] = part
        elif self._key:
            found |= {"agent": origin[0], "object": origin[1]}
            if origin == (None, None):
                found["subject"] = subject_of(self._key)
        found |= {name: render_template(self._rule, text, values) for name, text in self._rule.labels.items()}
        return {name: text for name, text in found.items() if text}

    def _clear_alert(self, at: int, reason: str, evidence: Sequence[Evidence], value: float | None = None) -> None:
        """Clear the open alert."""
        assert self._open is not None
        shown = [published_evidence(item) for item in evidence]
        self.changes.append(attrs.evolve(self._open.clear(at, reason), value=value, evidence=shown))
        self._open = None


_GROUP_LABELS: Mapping[str, str] = {"_agent": "agent", "_object": "object"}


def subject_of(key: str) -> str:
    """The subject of a key, for people."""
    return ", ".join(part for part in key.split("\n") if part)


def alert_id(rule: str, key: str, began: int) -> str:
    """The id of an alert: 32 hex digits, always the same for the same incident."""
    return hashlib.sha256(f"{rule}\x1f{key}\x1f{began}".encode()).hexdigest()[:32]


def open_alerts(key: str, state: str) -> Iterator[AlertChange]:
    """The open alerts in a state from `Detector.dump` of a subject."""
    found = json.loads(state)
    if "open" in found:
        yield AlertChange.load(key, found["open"])
    for own, inner in found.get("quotients", {}).items():
        yield from open_alerts(own, inner)
