"""A notification, what comes of it, and its JSON: as Alertmanager's webhook, version 4, and API, version 2. Pure."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.notifying.active_alert import ActiveAlert, common_pairs, newest
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
    """A message to one integration about one group.

    Attributes:
        integration: its key.
        receiver: name of the receiver.
        group_key, group_labels: of the group.
        firing, resolved: the alerts, by their start.
        at: when it was made, ns since 1970.
    """

    integration: str
    receiver: str
    group_key: str
    group_labels: Mapping[str, str]
    firing: tuple[ActiveAlert, ...]
    resolved: tuple[ActiveAlert, ...]
    at: int

    @property
    def alerts(self) -> tuple[ActiveAlert, ...]:
        """All alerts, those that fire first."""
        return self.firing + self.resolved

    @property
    def status(self) -> str:
        """``firing`` while one of them fires, else ``resolved``."""
        return "firing" if self.firing else "resolved"


def webhook_payload(notification: AlertNotification, *, max_alerts: int = 0) -> dict[str, Any]:
    """A notification as Alertmanager sends it to webhooks, with `max_alerts` alerts at most; 0 for all."""
    alerts = in_order(notification)
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


def webhook_alert(alert: ActiveAlert) -> dict[str, Any]:
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


def in_order(notification: AlertNotification) -> Sequence[ActiveAlert]:
    """The alerts, each set of labels once, those that fire first."""
    return sorted(newest(notification.alerts), key=lambda alert: not alert.is_firing)
