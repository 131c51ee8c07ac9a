"""POST of JSON to a URL, by httpx: what the webhook and Alertmanager's API share."""

from __future__ import annotations

import json
import ssl
from collections.abc import Generator
from pathlib import Path
from typing import Any

import attrs
import httpx

from qmf.pipeline.notifying.receivers.base import RefusedError, Secret, UnreachableError

#: Seconds for a connection and for each part of an answer.
TIMEOUT = 10.0

#: Statuses after which trying again later helps, besides 5xx.
_LATER = (408, 425, 429)

#: Characters of an answer that are shown.
_SHOWN = 200


@attrs.frozen(kw_only=True)
class HttpConfig:
    """How a URL is reached; the names are those of Alertmanager's `http_config`.

    Attributes:
        username, password: for basic authentication.
        authorization_type, credentials: for a header ``Authorization``.
        ca_file, cert_file, key_file: TLS.
        insecure_skip_verify: any certificate is accepted.
        proxy_url: proxy; None for none.
        follow_redirects: answers may refer to other URLs.
    """

    username: str | None = None
    password: Secret | None = None
    authorization_type: str = "Bearer"
    credentials: Secret | None = None
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    insecure_skip_verify: bool = False
    proxy_url: str | None = None
    follow_redirects: bool = True


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


class HttpPoster:
    """Posts to one URL, over connections that are kept."""

    def __init__(self, url: str | Secret, config: HttpConfig, *, timeout: float = TIMEOUT) -> None:
        """Nothing is connected yet.

        Args:
            url: target, or where the target is stored.
            config: how it is reached.
            timeout: seconds for a connection and for each part of an answer.
        """
        self._url = url
        self._config = config
        self._timeout = timeout
        self._client: httpx.Client | None = None

    def post(self, content: Any) -> None:
        """Send JSON.

        Raises:
            UnreachableError, RefusedError: as of `Sender.send`.
        """
        url = self._url.read() if isinstance(self._url, Secret) else self._url
        data = json.dumps(content, ensure_ascii=False).encode()
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
        """Close the connections."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _connect(self) -> httpx.Client:
        config = self._config
        context = ssl.create_default_context(cafile=None if config.ca_file is None else str(config.ca_file))
        if config.cert_file is not None:
            context.load_cert_chain(config.cert_file, config.key_file)
        if config.insecure_skip_verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        return httpx.Client(
            auth=_Authentication(config),
            verify=context,
            timeout=self._timeout,
            follow_redirects=config.follow_redirects,
            proxy=config.proxy_url,
            trust_env=True,
        )
