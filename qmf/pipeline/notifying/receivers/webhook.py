"""A webhook: a POST of Alertmanager's JSON."""

from __future__ import annotations

import attrs

from qmf.pipeline.notifying.notification import AlertNotification
from qmf.pipeline.notifying.payload import webhook_payload
from qmf.pipeline.notifying.receivers.base import Secret
from qmf.pipeline.notifying.receivers.http import TIMEOUT, HttpConfig, HttpPoster


@attrs.frozen(kw_only=True)
class WebhookConfig:
    """A webhook.

    Attributes:
        url: target, or where it is stored.
        send_resolved: it is told of ends.
        max_alerts: alerts in a message at most; 0 for all.
        timeout: seconds.
        http: how it is reached.
    """

    url: str | Secret
    send_resolved: bool = True
    max_alerts: int = 0
    timeout: float = TIMEOUT
    http: HttpConfig = attrs.field(factory=HttpConfig)


class WebhookSender:
    """Sends to a webhook."""

    def __init__(self, config: WebhookConfig) -> None:
        self._poster = HttpPoster(config.url, config.http, timeout=config.timeout)
        self._max_alerts = config.max_alerts

    def send(self, notification: AlertNotification) -> None:
        """As of `Sender`."""
        self._poster.post(webhook_payload(notification, max_alerts=self._max_alerts))

    def close(self) -> None:
        """As of `Sender`."""
        self._poster.close()
