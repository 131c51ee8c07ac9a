"""JSON to a URL, by httpx: webhooks, and Alertmanagers, whose API gets firing alerts again as from Prometheus."""

from __future__ import annotations

import json
import ssl
from collections.abc import Callable, Generator
from functools import partial
from typing import Any

import attrs
import httpx

from qmf.pipeline.notifying.notification import AlertNotification, api_alerts, webhook_payload
from qmf.pipeline.notifying.receivers.base import (
    NotificationSender,
    ReceiverSettings,
    RefusedError,
    Secret,
    TlsSettings,
    UnreachableError,
)

#: Seconds for a connection and for each part of an answer.
TIMEOUT = 10.0

#: ns after which firing alerts are sent to an Alertmanager again.
RESEND_INTERVAL = 60 * 10**9

#: Alertmanager ends an alert that was not sent again for this many intervals.
_INTERVALS = 4

#: Statuses after which trying again later helps, besides 5xx.
_LATER = (408, 425, 429)

#: Characters of an answer that are shown.
_SHOWN = 200


@attrs.frozen(kw_only=True)
class HttpConfig:
    """How a URL is reached; the names are those of Alertmanager's `http_config`."""

    username: str | None = None  #: and `password`: for basic authentication
    password: Secret | None = None
    authorization_type: str = "Bearer"  #: and `credentials`: for a header ``Authorization``
    credentials: Secret | None = None
    tls: TlsSettings = attrs.field(factory=TlsSettings)  #: of ``https``
    proxy_url: str | None = None  #: proxy; None for none
    follow_redirects: bool = True  #: answers may refer to other URLs


@attrs.frozen(kw_only=True)
class HttpSettings(ReceiverSettings):
    """What is reached by HTTP; the timeout in seconds is for a connection, and for each part of an answer."""

    timeout: float = TIMEOUT
    http: HttpConfig = attrs.field(factory=HttpConfig)


@attrs.frozen(kw_only=True)
class WebhookConfig(HttpSettings):
    """A webhook: its URL, or where that is stored, and alerts in a message at most; 0 for all."""

    url: str | Secret
    max_alerts: int = 0

    def make_sender(self) -> NotificationSender:
        return HttpSender(self.url, self, partial(webhook_payload, max_alerts=self.max_alerts))


@attrs.frozen(kw_only=True)
class AlertmanagerConfig(HttpSettings):
    """An Alertmanager; `url` is without ``/api/v2/alerts``."""

    url: str
    resend_interval: int = RESEND_INTERVAL

    def make_sender(self) -> NotificationSender:
        work = partial(api_alerts, lasts=_INTERVALS * self.resend_interval)
        return HttpSender(f"{self.url.rstrip('/')}/api/v2/alerts", self, work)


class _Authentication(httpx.Auth):
    """Reads secrets for each request, so that they can be changed."""

    def __init__(self, config: HttpConfig) -> None:
        self._config = config

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response, None]:
        """Add the header."""
        config = self._config
        if config.username is not None:
            basic = httpx.BasicAuth(config.username, config.password.read() if config.password else "")
            yield from basic.auth_flow(request)
            return
        if config.credentials is not None:
            request.headers["Authorization"] = f"{config.authorization_type} {config.credentials.read()}"
        yield request


class HttpSender(NotificationSender):
    """Posts to one URL what `make` makes of notifications, over connections that are kept."""

    def __init__(self, url: str | Secret, config: HttpSettings, make: Callable[[AlertNotification], Any]) -> None:
        self._url, self._config, self._make = url, config, make
        self._client: httpx.Client | None = None

    def send(self, notification: AlertNotification) -> None:
        url = self._url.read() if isinstance(self._url, Secret) else self._url
        data = json.dumps(self._make(notification), ensure_ascii=False).encode()
        try:
            if self._client is None:
                self._client = self._connect()
            answer = self._client.post(url, content=data, headers={"Content-Type": "application/json"})
            text = answer.text
        except httpx.InvalidURL as error:
            raise RefusedError(f"not a URL: {error}") from error
        except (httpx.HTTPError, ssl.SSLError, OSError) as error:
            raise UnreachableError(str(error) or type(error).__name__) from error
        if answer.request.method != "POST":
            raise RefusedError(f"the answer refers to {answer.url} in a way that would lose the content")
        if answer.is_success:
            return
        reason = " ".join(text.split())[:_SHOWN]
        message = f"HTTP {answer.status_code} {answer.reason_phrase}{f': {reason}' if reason else ''}"
        if answer.status_code >= 500 or answer.status_code in _LATER:
            raise UnreachableError(message)
        raise RefusedError(message)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def _connect(self) -> httpx.Client:
        config = self._config.http
        return httpx.Client(
            auth=_Authentication(config),
            verify=config.tls.context(),
            timeout=self._config.timeout,
            follow_redirects=config.follow_redirects,
            proxy=config.proxy_url,
            trust_env=True,
        )
