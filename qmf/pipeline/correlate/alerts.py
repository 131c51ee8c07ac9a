"""Alerts as values, and rows of the table of alerts. Pure.

A rule with `for` has a pending alert from the moment its condition holds; the alert fires when the condition has held
for that time, and is resolved when it doesn't hold any more. Without `for` an alert fires at once.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from qmf.schema import Severity

#: The label with the name of the rule, as Prometheus names it.
NAME_LABEL = "alertname"

#: The label with the name of the severity, by which alerts are routed.
SEVERITY_LABEL = "severity"

#: The change of a row about an alert that is pending.
PENDING = "pending"

#: The annotation with the text of the alert.
SUMMARY = "summary"


class AlertState(enum.Enum):
    """The state of an alert."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


@attrs.frozen(kw_only=True)
class Alert:
    """An alert at one moment. A new value is made when its state, severity or value changes.

    Attributes:
        fingerprint: 16 hex digits made from the labels: the same for all incidents of one rule and subject.
        incident: 32 hex digits made from rule, subject and the time when the incident began; `alertId` on the bus.
        name: of the rule.
        labels: identify the alert: `alertname`, `agent`, `object` and others, and those of the rule.
        annotations: texts for people; `summary` is the alert's message.
        severity: the highest that applies.
        state: pending, firing or resolved.
        starts_at: when it became pending or firing, in ns since 1970.
        ends_at: when it was resolved, in ns since 1970; None before.
        value: that decided, or None.
        evidence: samples and events, oldest first, ready for JSON.
        reason: why it was resolved; empty before.
    """

    fingerprint: str
    incident: str
    name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    severity: Severity
    state: AlertState
    starts_at: int
    ends_at: int | None = None
    value: float | None = None
    evidence: Sequence[Mapping[str, Any]] = ()
    reason: str = ""

    @property
    def summary(self) -> str:
        """The alert's message."""
        return self.annotations.get(SUMMARY, "")


def fingerprint_of(labels: Mapping[str, str]) -> str:
    """16 hex digits that depend on the labels only, not on their order."""
    return hashlib.sha256(json.dumps(sorted(labels.items())).encode()).hexdigest()[:16]


@attrs.frozen(kw_only=True)
class AlertRow:
    """A row of the table of alerts: an alert is raised or cleared, or has another severity.

    Attributes:
        alert_id: the same in all rows of an incident.
        change: ``raised``, ``changed`` or ``cleared``; ``pending`` for one that may be raised later, not in the table.
        rule, rule_hash, kind, severity: of the rule.
        subject, agent, object: subject of the alert, and its agent and object.
        message: text.
        reason: why it was cleared.
        value: that decided, or None.
        began_ns: when the incident began.
        at_ns: when it was raised, changed or cleared.
        window_start_ns, window_end_ns: time of the evidence.
        evidence: samples and events, JSON.
        labels, annotations: of the alert, JSON.
    """

    alert_id: str
    change: str
    rule: str
    rule_hash: str
    kind: str
    severity: int
    subject: str
    agent: str | None
    object: str | None
    message: str
    reason: str
    value: float | None
    began_ns: int
    at_ns: int
    window_start_ns: int
    window_end_ns: int
    evidence: str
    labels: str = "{}"
    annotations: str = "{}"

    @property
    def raised(self) -> bool:
        """True where the alert is raised."""
        return self.change == "raised"

    @property
    def cleared(self) -> bool:
        """True where the alert ends."""
        return self.change == "cleared"

    @property
    def key(self) -> str:
        """Identifies the row among those of all tables."""
        # An incident is raised and cleared once, but may change several times.
        return f"{self.alert_id} {self.change}" + (f" {self.at_ns}" if self.change == "changed" else "")

    def alert(self) -> Alert:
        """The alert after the change."""
        labels: dict[str, str] = json.loads(self.labels) or self._plain_labels()
        return Alert(
            fingerprint=fingerprint_of(labels),
            incident=self.alert_id,
            name=self.rule,
            labels=labels,
            annotations={SUMMARY: self.message, **json.loads(self.annotations)},
            severity=Severity(self.severity),
            state=_STATES.get(self.change, AlertState.FIRING),
            starts_at=self.began_ns,
            ends_at=self.at_ns if self.cleared else None,
            value=self.value,
            evidence=tuple(json.loads(self.evidence)),
            reason=self.reason,
        )

    def _plain_labels(self) -> dict[str, str]:
        """The labels of a row that was written before rows had labels."""
        named = {NAME_LABEL: self.rule, "agent": self.agent, "object": self.object, "subject": self.subject}
        return {name: text for name, text in named.items() if text}


_STATES = {PENDING: AlertState.PENDING, "cleared": AlertState.RESOLVED}


def in_order(alerts: Iterable[AlertRow]) -> list[AlertRow]:
    """By time; at one time, an alert is raised before it is changed, and cleared last."""
    return sorted(alerts, key=lambda item: (item.at_ns, item.alert_id, item.cleared, not item.raised))
