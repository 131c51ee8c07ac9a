"""Alerts as values, and rows of the table of alerts. Pure.

A rule with `for` has a pending alert from the moment its condition holds; the alert fires when the condition has held
for that time, and is resolved when it doesn't hold any more. Without `for` an alert fires at once.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping
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

_FNV_OFFSET, _FNV_PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1


class AlertState(enum.Enum):
    """The state of an alert."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


@attrs.frozen(kw_only=True)
class Alert:
    """One incident of a rule at one moment, as notifications see it."""

    #: of the incident and its severity, the same from start to end. An incident whose severity changes is the end of
    #: one alert and the start of another, as in Prometheus
    id: str
    incident: str  #: 32 hex digits made from rule, subject and the time when the incident began; `alertId` on the bus
    #: identify it, and are what it is selected, grouped and routed by: `alertname`, `severity`, `agent`, `object` and
    #: others, and those of the rule
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = attrs.field(factory=dict)  #: texts for people, e.g. ``summary``
    starts_ns: int  #: when it became pending or firing, ns since 1970
    ends_ns: int | None = None  #: when it ended; None while it lasts
    pending: bool = False  #: the condition is true, but not yet for long enough
    value: float | None = None  #: that decided, or None
    reason: str = ""  #: why it ended; empty before
    detail: Mapping[str, Any] = attrs.field(factory=dict)  #: what only the bus needs, as JSON values

    @property
    def state(self) -> AlertState:
        """Pending, firing or resolved."""
        if self.ends_ns is not None:
            return AlertState.RESOLVED
        return AlertState.PENDING if self.pending else AlertState.FIRING

    @property
    def is_firing(self) -> bool:
        """True while it is firing."""
        return self.ends_ns is None and not self.pending

    @property
    def name(self) -> str:
        """Of its rule."""
        return self.labels.get(NAME_LABEL, "")

    @property
    def summary(self) -> str:
        """Its text."""
        return self.annotations.get(SUMMARY, "")

    @property
    def fingerprint(self) -> str:
        """16 hex digits made from the labels, the same as Alertmanager's."""
        return fingerprint(self.labels)


def fingerprint(labels: Mapping[str, str]) -> str:
    """The 64-bit FNV-1a hash of sorted labels, as Prometheus' programs identify alerts."""
    value = _FNV_OFFSET
    for name in sorted(labels):
        for byte in name.encode() + b"\xff" + labels[name].encode() + b"\xff":
            value = ((value ^ byte) * _FNV_PRIME) & _MASK
    return f"{value:016x}"


@attrs.frozen(kw_only=True)
class AlertRow:
    """A row of the table of alerts: an alert is raised or cleared, or has another severity."""

    alert_id: str  #: the same in all rows of an incident
    #: ``raised``, ``changed`` or ``cleared``; ``pending`` for one that may be raised later, not in the table
    change: str
    rule: str  #: and `rule_hash`, `kind`, `severity`: of the rule
    rule_hash: str
    kind: str
    severity: int
    subject: str  #: and `agent`, `object`: subject of the alert, and its agent and object
    agent: str | None
    object: str | None
    message: str  #: text
    reason: str  #: why it was cleared
    value: float | None  #: that decided, or None
    began_ns: int  #: when the incident began
    at_ns: int  #: when it was raised, changed or cleared
    window_start_ns: int  #: and `window_end_ns`: time of the evidence
    window_end_ns: int
    evidence: str  #: samples and events, JSON
    labels: str = "{}"  #: and `annotations`: of the alert, JSON
    annotations: str = "{}"

    @property
    def raised(self) -> bool:
        """True where the alert is raised."""
        return self.change == "raised"

    @property
    def cleared(self) -> bool:
        """True where the alert ends."""
        return self.change == "cleared"

    def clear(self, at: int, reason: str) -> AlertRow:
        """The end of the alert."""
        end = max(at, self.at_ns)
        return attrs.evolve(
            self, change="cleared", at_ns=end, window_start_ns=self.began_ns, window_end_ns=end, value=None,
            reason=reason, evidence="[]",
        )  # fmt: skip

    @property
    def key(self) -> str:
        """Identifies the row among those of all tables."""
        # An incident is raised and cleared once, but may change several times.
        return f"{self.alert_id} {self.change}" + (f" {self.at_ns}" if self.change == "changed" else "")

    def alert(self, detail: Mapping[str, Any] | None = None) -> Alert:
        """The alert after the change."""
        severity = Severity(self.severity).name.lower()
        labels: dict[str, str] = json.loads(self.labels) or {  # a row that was written before rows had labels
            NAME_LABEL: self.rule, "agent": self.agent or "", "object": self.object or "", "subject": self.subject
        }  # fmt: skip
        return Alert(
            id=f"{self.alert_id} {severity}",
            incident=self.alert_id,
            labels={name: text for name, text in {SEVERITY_LABEL: severity, **labels}.items() if text},
            annotations={SUMMARY: self.message, **json.loads(self.annotations)},
            starts_ns=self.began_ns,
            ends_ns=self.at_ns if self.cleared else None,
            pending=self.change == PENDING,
            value=self.value,
            reason=self.reason,
            detail=detail or {},
        )


def compact_json(value: object) -> str:
    """A value as it is in the table."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def in_order(alerts: Iterable[AlertRow]) -> list[AlertRow]:
    """By time; at one time, an alert is raised before it is changed, and cleared last."""
    return sorted(alerts, key=lambda item: (item.at_ns, item.alert_id, item.cleared, not item.raised))
