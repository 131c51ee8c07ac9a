"""A notification, what comes of it, and its JSON: as Alertmanager's webhook, version 4, and API, version 2. Pure."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.notifying.silences import format_time

#: What Go's programs write for no time.
NO_TIME = "0001-01-01T00:00:00Z"


class NotificationOutcome(enum.Enum):
    """What came of a notification.

    DELIVERED: the receiver has it; UNREACHABLE: trying again later helps; REFUSED: the receiver doesn't want this one.
    """

    DELIVERED = "delivered"
    UNREACHABLE = "unreachable"
    REFUSED = "refused"


@attrs.frozen(kw_only=True)
class AlertNotification:
    """A message to one integration, named by its key, about one group, with its alerts by their start."""

    integration: str
    receiver: str
    group_key: str
    group_labels: Mapping[str, str]
    firing: tuple[Alert, ...]
    resolved: tuple[Alert, ...]
    at: int

    @property
    def alerts(self) -> tuple[Alert, ...]:
        """All alerts, those that fire first."""
        return self.firing + self.resolved

    @property
    def status(self) -> str:
        """``firing`` while one of them fires, else ``resolved``."""
        return "firing" if self.firing else "resolved"


def webhook_payload(notification: AlertNotification, *, max_alerts: int = 0) -> dict[str, Any]:
    """A notification as Alertmanager sends it to webhooks, with `max_alerts` alerts at most; 0 for all."""
    alerts = shown_alerts(notification)
    shown = alerts[:max_alerts] if max_alerts else alerts
    return {
        "version": "4",
        "groupKey": notification.group_key,
        "truncatedAlerts": len(alerts) - len(shown),
        "status": notification.status,
        "receiver": notification.receiver,
        "groupLabels": dict(notification.group_labels),
        "commonLabels": common_pairs(alert.labels for alert in alerts),
        "commonAnnotations": common_pairs(alert.annotations for alert in alerts),
        "externalURL": "",
        "alerts": [webhook_alert(alert) for alert in shown],
    }


def webhook_alert(alert: Alert) -> dict[str, Any]:
    """An alert within a webhook's message."""
    return {
        "status": alert.state.value,
        "labels": dict(alert.labels),
        "annotations": dict(alert.annotations),
        "startsAt": format_time(alert.starts_ns),
        "endsAt": NO_TIME if alert.ends_ns is None else format_time(alert.ends_ns),
        "generatorURL": "",
        "fingerprint": alert.fingerprint,
    }


def api_alerts(notification: AlertNotification, *, lasts: int) -> list[dict[str, Any]]:
    """The alerts of a notification for ``POST /api/v2/alerts``, which ends those not sent again for `lasts` ns."""
    return [
        {
            "labels": dict(alert.labels),
            "annotations": {name: value for name, value in alert.annotations.items() if value},
            "startsAt": format_time(alert.starts_ns),
            "endsAt": format_time(notification.at + lasts if alert.ends_ns is None else alert.ends_ns),
        }
        for alert in newest(notification.alerts)
    ]


def shown_alerts(notification: AlertNotification) -> Sequence[Alert]:
    """The alerts, each set of labels once, those that fire first."""
    return sorted(newest(notification.alerts), key=lambda alert: not alert.is_firing)


def common_pairs(maps: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """The pairs that are in all of some mappings, in the order of the first."""
    rest = iter(maps)
    found = dict(next(rest, {}))
    for other in rest:
        found = {name: value for name, value in found.items() if other.get(name) == value}
    return found


def newest(alerts: Iterable[Alert]) -> list[Alert]:
    """The last incident of each set of labels, in the order of their starts.

    Receivers that know alerts by their labels would mistake the end of an earlier incident for that of the next.
    """
    found: dict[str, Alert] = {}
    for alert in sorted(alerts, key=lambda alert: (alert.starts_ns, alert.is_firing, alert.id)):
        found.pop(alert.fingerprint, None)
        found[alert.fingerprint] = alert
    return list(found.values())
