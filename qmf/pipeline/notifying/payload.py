"""Notifications as JSON: Alertmanager's webhook format, version 4, and alerts of its API, version 2. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from qmf.pipeline.notifying.active_alert import ActiveAlert, common_pairs, newest
from qmf.pipeline.notifying.notification import AlertNotification
from qmf.pipeline.notifying.silences import format_time

#: What Go's programs write for no time.
NO_TIME = "0001-01-01T00:00:00Z"


def webhook_payload(notification: AlertNotification, *, max_alerts: int = 0) -> dict[str, Any]:
    """A notification as Alertmanager sends it to webhooks.

    Args:
        notification: to send.
        max_alerts: alerts in it at most; 0 for all.
    """
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
    """The alerts of a notification for ``POST /api/v2/alerts``.

    Args:
        notification: to send.
        lasts: ns after which Alertmanager ends a firing alert that is not sent again.
    """
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
