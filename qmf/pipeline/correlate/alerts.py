"""Rows of the table of alerts. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import attrs


@attrs.frozen(kw_only=True)
class Alert:
    """A row of the table of alerts: an alert is raised or cleared.

    Attributes:
        alert_id: the same in both rows.
        change: ``raised`` or ``cleared``.
        rule, rule_hash, kind, severity: of the rule.
        subject, agent, object: subject of the alert, and its agent and object.
        message: text.
        reason: why it was cleared.
        value: that decided, or None.
        began_ns: when the incident began.
        at_ns: when it was raised or cleared.
        window_start_ns, window_end_ns: time of the evidence.
        evidence: samples and events, JSON.
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

    @property
    def raised(self) -> bool:
        """True where the alert is raised, False where it is cleared."""
        return self.change == "raised"

    @property
    def key(self) -> str:
        """Identifies the row among those of all tables."""
        return f"{self.alert_id} {self.change}"


def in_order(alerts: Iterable[Alert]) -> list[Alert]:
    """By time; at one time, an alert is raised before it is cleared."""
    return sorted(alerts, key=lambda item: (item.at_ns, item.alert_id, not item.raised))
