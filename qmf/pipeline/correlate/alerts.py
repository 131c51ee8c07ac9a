"""Rows of the table of alerts. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import attrs


@attrs.frozen(kw_only=True)
class Alert:
    """A row of the table of alerts: one is raised, or ends.

    Attributes:
        alert_id: the same for both.
        change: ``raised`` or ``cleared``.
        rule, rule_hash, kind, severity: of the rule.
        subject, agent, object: what it is about.
        message: text.
        reason: why it ended.
        value: that decided, or None.
        began_ns: when the incident began.
        at_ns: when it was raised, or ended.
        window_start_ns, window_end_ns: time that was looked at.
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
        """It is the beginning."""
        return self.change == "raised"

    @property
    def key(self) -> str:
        """Tells it from every other row of every table."""
        return f"{self.alert_id} {self.change}"


def in_order(alerts: Iterable[Alert]) -> list[Alert]:
    """By time; of one time and one alert the raise first."""
    return sorted(alerts, key=lambda item: (item.at_ns, item.alert_id, not item.raised))
