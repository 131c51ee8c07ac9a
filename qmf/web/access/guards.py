"""ASGI middlewares in front of all routes, in this order from the outside:

`Headers` adds security headers; `RequestLimits` bounds bodies, slow clients and rates; `Origins` refuses what another
site's page asks for; `Callers` finds out who asks.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from urllib.parse import quote, urlsplit

from starlette.requests import HTTPConnection
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from qmf.web.access.access import WebAccess, caller_of, client_address, unauthorized_problem
from qmf.web.access.limits import retry_after
from qmf.web.access.login import PROVIDER_PATHS
from qmf.web.options import WebLimits, WebOptions
from qmf.web.problems import Problem

log = logging.getLogger("qmf.web")

#: What everybody may see: the page to log in, and whether the server runs.
PUBLIC = frozenset({"/login", *PROVIDER_PATHS, "/healthz", "/favicon.ico"})

#: Methods that change nothing.
_SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
}
#: For answers that are no pages: nothing in them is ever run or shown inside another page.
_DATA_POLICY = "default-src 'none'; frame-ancestors 'none'"
#: For pages. The library of the pages compiles its templates in the browser, which needs `unsafe-eval`; nothing is
#: loaded from another server.
_PAGE_POLICY = (
    "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline'; "
    "img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self' ws: wss:; worker-src 'self' blob:; "
    "object-src 'none'; base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
)


class Headers:
    """Adds security headers to every answer."""

    def __init__(self, app: ASGIApp, *, tls: bool) -> None:
        self._app = app
        self._always = [(name.lower().encode(), value.encode()) for name, value in _HEADERS.items()]
        if tls:
            self._always.append((b"strict-transport-security", b"max-age=31536000"))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower(): value for name, value in message.get("headers", ())}
                page = given.get(b"content-type", b"").startswith(b"text/html")
                extra = [*self._always, (b"content-security-policy", (_PAGE_POLICY if page else _DATA_POLICY).encode())]
                if b"cache-control" not in given:
                    extra.append((b"cache-control", b"no-store"))
                message["headers"] = [*message.get("headers", ()), *(item for item in extra if item[0] not in given)]
            await send(message)

        await self._app(scope, receive, send_with_headers)


class _TooLarge(Exception):
    """A body is longer than it may be."""


class _TooSlow(Exception):
    """A client sends or takes nothing for too long."""


class RequestLimits:
    """Bounds the size of bodies, and how long a client may let the server wait."""

    def __init__(self, app: ASGIApp, *, limits: WebLimits, access: WebAccess) -> None:
        self._app = app
        self._limits = limits
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limits = self._limits
        started = False
        left = limits.body
        complete = False

        async def bounded_receive() -> Message:
            nonlocal left, complete
            if complete:
                return await receive()  # waits for the end of the connection
            try:
                async with asyncio.timeout(limits.read_time):
                    message = await receive()
            except TimeoutError:
                raise _TooSlow from None
            if message["type"] == "http.request":
                left -= len(message.get("body", b""))
                complete = not message.get("more_body", False)
                if left < 0:
                    raise _TooLarge
            return message

        async def bounded_send(message: Message) -> None:
            nonlocal started
            started = started or message["type"] == "http.response.start"
            try:
                async with asyncio.timeout(limits.write_time):
                    await send(message)
            except TimeoutError:
                raise _TooSlow from None

        connection = HTTPConnection(scope)
        problem: Problem | None = None
        declared = connection.headers.get("content-length", "0")
        try:
            if declared.isdecimal() and int(declared) > limits.body:
                raise _TooLarge
            await self._app(scope, bounded_receive, bounded_send)
        except _TooLarge:
            problem = Problem(413, f"the body is longer than {limits.body} bytes", headers={"Connection": "close"})
        except _TooSlow:
            problem = Problem(408, f"nothing came for {limits.read_time:g} s", headers={"Connection": "close"})
        if problem is not None:
            self._access.log_refused(connection, problem.detail)
            if not started:
                await problem.response()(scope, receive, send)


class Origins:
    """Refuses requests that the page of another site made a browser send, and unknown names of this server.

    Browsers tell where a request comes from (``Sec-Fetch-Site``, ``Origin``); other clients don't, and need no check.
    The name matters where there are no users: a page whose name was made to point to 127.0.0.1 would be of the same
    origin.
    """

    def __init__(self, app: ASGIApp, *, options: WebOptions, access: WebAccess) -> None:
        self._app = app
        self._access = access
        named = {options.host.lower(), *(name.lower() for name in options.hosts)}
        self._hosts = named | {"localhost", "127.0.0.1", "::1"}
        # With users, who reaches the server under another name still has to prove who he is.
        self._any_host = not access.open and not options.hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            connection = HTTPConnection(scope)
            problem = self._problem(connection)
            if problem is not None:
                self._access.log_refused(connection, problem.detail)
                await refuse(problem, scope, receive, send)
                return
        await self._app(scope, receive, send)

    def _problem(self, connection: HTTPConnection) -> Problem | None:
        headers = connection.headers
        hosts = headers.getlist("host")
        if len(hosts) > 1 or (not hosts and connection.scope.get("http_version") == "1.1"):
            return Problem(400, f"a request has one header Host, not {len(hosts)}")
        host = hosts[0] if hosts else ""
        if not self._is_known(host):
            return Problem(421, f"this server is not {host!r}; --server-name adds a name")
        if connection.scope["type"] == "http" and connection.scope["method"] in _SAFE:
            return None
        site, origin = headers.get("sec-fetch-site"), headers.get("origin")
        if site is not None and site not in ("same-origin", "none"):
            return Problem(403, "the request comes from the page of another site")
        if origin is not None and urlsplit(origin).netloc.lower() != host.lower():
            return Problem(403, f"the request comes from {origin[:100]!r}, not from this server")
        return None

    def _is_known(self, host: str) -> bool:
        if self._any_host:
            return True
        name = (urlsplit(f"//{host}").hostname or "").lower()
        return name in self._hosts or (_is_address(name) and not self._loopback_only())

    def _loopback_only(self) -> bool:
        return self._hosts <= {"localhost", "127.0.0.1", "::1"}


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


class Callers:
    """Finds out who asks, and counts requests; the caller is then in the scope (`caller_of`)."""

    def __init__(self, app: ASGIApp, *, access: WebAccess) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        connection = HTTPConnection(scope)
        try:
            caller = await self._access.caller(connection)
            wait = self._access.requests.take(caller.client if caller else f"address {client_address(connection)}")
            if wait:
                raise Problem(429, "too many requests", headers=retry_after(wait))
        except Problem as problem:
            await refuse(problem, scope, receive, send)
            return
        if caller is None and scope["path"] not in PUBLIC:
            await self._ask(scope, receive, send)
            return
        scope["qmf.caller"] = caller
        await self._app(scope, receive, send)

    async def _ask(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send a person to the page to log in, and a program a problem."""
        connection = HTTPConnection(scope)
        wants_page = "text/html" in connection.headers.get("accept", "")
        if scope["type"] == "http" and scope["method"] in _SAFE and wants_page:
            query = connection.url.query
            target = quote(scope["path"] + (f"?{query}" if query else ""), safe="/")
            await RedirectResponse(f"/login?next={target}", 303)(scope, receive, send)
            return
        self._access.log_refused(connection, "unknown caller")
        await refuse(unauthorized_problem("log in, or send a token"), scope, receive, send)


async def refuse(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    """Answer a request or the opening of a websocket with a problem."""
    response: Response = problem.response()
    if scope["type"] == "websocket":
        if "websocket.http.response" in (scope.get("extensions") or {}):
            await response(scope, receive, send)
            return
        await send({"type": "websocket.close", "code": 1008, "reason": problem.title})
        return
    await response(scope, receive, send)


__all__ = ["PUBLIC", "Callers", "Headers", "Origins", "RequestLimits", "caller_of", "refuse"]
