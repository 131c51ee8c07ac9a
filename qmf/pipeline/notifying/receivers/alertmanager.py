"""An Alertmanager: alerts are posted to its API, and again while they fire, as Prometheus does."""

from __future__ import annotations

import attrs

from qmf.pipeline.notifying.notification import AlertNotification
from qmf.pipeline.notifying.payload import api_alerts
from qmf.pipeline.notifying.receivers.http import TIMEOUT, HttpConfig, HttpPoster

#: ns after which firing alerts are sent again.
RESEND_INTERVAL = 60 * 10**9

#: Alertmanager ends an alert that was not sent again for this many intervals.
_INTERVALS = 4


@attrs.frozen(kw_only=True)
class AlertmanagerConfig:
    """An Alertmanager.

    Attributes:
        url: without ``/api/v2/alerts``.
        send_resolved: it is told of ends.
        resend_interval: ns after which firing alerts are sent again.
        timeout: seconds.
        http: how it is reached.
    """

    url: str
    send_resolved: bool = True
    resend_interval: int = RESEND_INTERVAL
    timeout: float = TIMEOUT
    http: HttpConfig = attrs.field(factory=HttpConfig)


class AlertmanagerSender:
    """Sends to an Alertmanager."""

    def __init__(self, config: AlertmanagerConfig) -> None:
        self._poster = HttpPoster(f"{config.url.rstrip('/')}/api/v2/alerts", config.http, timeout=config.timeout)
        self._lasts = _INTERVALS * config.resend_interval

    def send(self, notification: AlertNotification) -> None:
        """As of `Sender`."""
        self._poster.post(api_alerts(notification, lasts=self._lasts))

    def close(self) -> None:
        """As of `Sender`."""
        self._poster.close()
