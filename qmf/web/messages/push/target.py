"""Sending one message to the URL of a registration, and what its answer means.

Redirections are followed for status 307 and 308, and only to hosts that may be pushed to. Nothing of the environment
(proxies, .netrc) is used.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Collection
from urllib.parse import quote, urlsplit

import httpx

from qmf.messaging import Message
from qmf.web.messages.contents import to_http
from qmf.web.messages.push.registration import PushRegistration, Scheme, UrlRelation

#: Seconds that a URL has to answer.
ANSWER_TIMEOUT = 30.0
#: Longest `Retry-After` that is followed, in seconds.
MAX_WAIT = 300.0

_MAX_REDIRECTS = 5
_PARAMETER = re.compile(r"\{[^{}]*\}")
#: The message is wrong: another attempt, or another message, is another matter.
_REFUSING = frozenset((400, 411, 412, 413, 414, 415, 416, 422))
#: The registration is wrong: no message will be taken.
_FAILING = frozenset((401, 402, 403, 405, 406, 407, 417, 501, 505))
_REDIRECTING = frozenset((307, 308))


class PushOutcome(enum.Enum):
    """What an attempt led to."""

    DONE = "done"
    RETRY = "retry"
    REFUSED = "refused"  #: this message is not taken, ever
    FAILED = "failed"  #: no message is


class PushAttempt:
    """The result of an attempt.

    Attributes:
        outcome: see there.
        reason: in a few words.
        wait: seconds to wait before the next attempt, if the answer says so.
    """

    def __init__(self, outcome: PushOutcome, reason: str, wait: float | None = None) -> None:
        self.outcome = outcome
        self.reason = reason
        self.wait = wait


class PushTarget:
    """The URL of a registration."""

    def __init__(
        self, registration: PushRegistration, client: httpx.AsyncClient, hosts: Collection[str] | None
    ) -> None:
        """Prepare requests to a URL.

        Args:
            registration: where to, and how.
            client: sends the requests; without redirections of its own.
            hosts: that may be pushed to; None for any.
        """
        self._registration = registration
        self._client = client
        self._hosts = hosts
        self._auth: httpx.Auth | None = None
        if (credentials := registration.credentials) is not None:
            make = httpx.BasicAuth if credentials.scheme is Scheme.BASIC else httpx.DigestAuth
            self._auth = make(credentials.username, credentials.password)
        #: Of a destination: the template for messages with an id.
        self._template: str | None = None

    async def push(self, message: Message, id: str) -> PushAttempt:
        """Send a message once.

        Args:
            message: to send.
            id: of the message, the same one for each attempt.
        """
        try:
            url = await self._url(id)
            if url is None:
                return PushAttempt(PushOutcome.RETRY, "the destination offers no msg-create-with-id")
            return await self._send(url, message)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            self._template = None
            return PushAttempt(PushOutcome.RETRY, f"{type(error).__name__}: {error}")

    async def _url(self, id: str) -> str | None:
        registration = self._registration
        if registration.relation is UrlRelation.URL:
            return registration.href
        template: str | None = registration.href
        if registration.relation is UrlRelation.DESTINATION:
            if self._template is None:
                answer = await self._request("HEAD", registration.href, b"", {})
                self._template = answer.headers.get("msg-create-with-id") if answer.is_success else None
            template = self._template
        return None if template is None else _PARAMETER.sub(lambda _: quote(id, safe=""), template)

    async def _send(self, url: str, message: Message) -> PushAttempt:
        content = to_http(message)
        headers = dict(content.headers)
        own_type = self._registration.content_type
        plain = message.content_type is None and "http_content$type" not in message.properties
        headers["content-type"] = own_type if own_type is not None and plain else content.content_type
        answer = await self._request(self._registration.method, url, content.body, headers)
        status = answer.status_code
        if answer.is_success or status in (303, 304):
            return PushAttempt(PushOutcome.DONE, str(status))
        if status in _REFUSING:
            return PushAttempt(PushOutcome.REFUSED, f"status {status}")
        if status in _FAILING:
            return PushAttempt(PushOutcome.FAILED, f"status {status}")
        # A destination that was moved is asked for again.
        self._template = None
        after = answer.headers.get("retry-after", "")
        wait = min(float(after), MAX_WAIT) if status in (429, 503) and re.fullmatch("[0-9]{1,9}", after) else None
        return PushAttempt(PushOutcome.RETRY, f"status {status}", wait)

    async def _request(self, method: str, url: str, body: bytes, headers: dict[str, str]) -> httpx.Response:
        for _ in range(_MAX_REDIRECTS):
            if not may_push_to(url, self._hosts):
                raise httpx.InvalidURL(f"{urlsplit(url).hostname!r} is no host that may be pushed to")
            request = self._client.build_request(method, url, content=body or None, headers=headers)
            for name, value in self._registration.headers:
                request.headers[name] = value
            answer = await self._client.send(request, auth=self._auth, stream=True)
            await answer.aclose()  # what it says does not matter
            if answer.status_code not in _REDIRECTING or "location" not in answer.headers:
                return answer
            following = str(answer.url.join(answer.headers["location"]))
            if urlsplit(following).netloc != urlsplit(url).netloc and (self._auth or self._registration.headers):
                raise httpx.InvalidURL("redirected to another host, which is not to see the credentials")
            url = following
        raise httpx.TooManyRedirects(f"more than {_MAX_REDIRECTS} redirections")


def may_push_to(url: str, hosts: Collection[str] | None) -> bool:
    """True if a URL is of a host that may be pushed to; `hosts`: names or ``name:port``; None for any."""
    if hosts is None:
        return True
    try:
        parts = urlsplit(url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError:
        return False
    name = (parts.hostname or "").lower()
    return name in hosts or f"{name}:{port}" in hosts
