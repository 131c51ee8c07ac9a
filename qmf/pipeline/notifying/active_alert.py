"""Alerts as notifications see them: labels, annotations, and the time from their start to their end. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from qmf.pipeline.correlate.alerts import NAME_LABEL, SEVERITY_LABEL, SUMMARY, Alert, AlertState

_FNV_OFFSET, _FNV_PRIME, _MASK = 0xCBF29CE484222325, 0x100000001B3, (1 << 64) - 1


@attrs.frozen(kw_only=True)
class ActiveAlert:
    """One incident of a rule.

    Attributes:
        id: of the incident and its severity, the same from start to end. An incident whose severity changes is the
            end of one alert and the start of another, as in Prometheus.
        incident: `incident` of the alert.
        labels: what it is selected, grouped and routed by: those of the alert that are not empty, and
            `SEVERITY_LABEL`.
        annotations: texts for people, e.g. ``summary``.
        starts_ns: when it became pending or firing, ns since 1970.
        ends_ns: when it ended; None while it lasts.
        pending: the condition is true, but not yet for long enough.
        value: that decided, or None.
        reason: why it ended; empty before.
        detail: what only the bus needs, as JSON values.
    """

    id: str
    incident: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str] = attrs.field(factory=dict)
    starts_ns: int
    ends_ns: int | None = None
    pending: bool = False
    value: float | None = None
    reason: str = ""
    detail: Mapping[str, Any] = attrs.field(factory=dict)

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

    @classmethod
    def from_alert(cls, alert: Alert, detail: Mapping[str, Any] | None = None) -> ActiveAlert:
        """What notifications need of an alert."""
        severity = alert.severity.name.lower()
        return cls(
            id=f"{alert.incident} {severity}",
            incident=alert.incident,
            labels={name: text for name, text in {SEVERITY_LABEL: severity, **alert.labels}.items() if text},
            annotations=dict(alert.annotations),
            starts_ns=alert.starts_at,
            ends_ns=alert.ends_at,
            pending=alert.state is AlertState.PENDING,
            value=alert.value,
            reason=alert.reason,
            detail=detail or {},
        )


def fingerprint(labels: Mapping[str, str]) -> str:
    """The 64-bit FNV-1a hash of sorted labels, as Prometheus' programs identify alerts."""
    value = _FNV_OFFSET
    for name in sorted(labels):
        for byte in name.encode() + b"\xff" + labels[name].encode() + b"\xff":
            value = ((value ^ byte) * _FNV_PRIME) & _MASK
    return f"{value:016x}"


def common_pairs(maps: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The pairs that are in all of some mappings, in the order of the first."""
    rest = iter(maps)
    found = dict(next(rest, {}))
    for other in rest:
        found = {name: value for name, value in found.items() if other.get(name) == value}
    return found


def newest(alerts: Iterable[ActiveAlert]) -> list[ActiveAlert]:
    """The last incident of each set of labels, in the order of their starts.

    Receivers that know alerts by their labels would mistake the end of an earlier incident for that of the next.
    """
    found: dict[str, ActiveAlert] = {}
    for alert in sorted(alerts, key=lambda alert: (alert.starts_ns, alert.is_firing, alert.id)):
        found.pop(alert.fingerprint, None)
        found[alert.fingerprint] = alert
    return list(found.values())
