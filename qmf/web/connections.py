"""The connections of a server: how many there may be, and how long one may take for the header of a request.

Nobody has proved anything when a connection is made, so it must cost little. Where there are too many of one address,
or in all, the one that has waited longest without a request is closed in favour of the new one: whoever only holds
connections never keeps others out. Only where all of them are answered right now, the new one is refused.

Knows uvicorn's protocols by asyncio's interface alone; which connections have a request is what the ASGI application
tells that is wrapped around all others (`OpenConnections.watch`).
"""

from __future__ import annotations

import asyncio
import collections
import ipaddress
import json
import logging
import time
from collections.abc import Sequence
from typing import Any

import attrs
from starlette.types import ASGIApp, Receive, Scope, Send

from qmf.web.options import Network, WebLimits
from qmf.web.problems import MEDIA_TYPE, Problem

log = logging.getLogger("qmf.web")

#: Seconds after which who was refused may try again.
_RETRY_AFTER = 5
#: Seconds between lines of the log about refusals.
_LOG_INTERVAL = 60.0
#: Files that a server needs besides its connections.
_OTHER_FILES = 200

#: Host and port of a client.
Peer = tuple[str, int]


def most_connections(wanted: int, files: int) -> int:
    """How many connections there may be where the system allows so many open files."""
    return min(wanted, max(files - _OTHER_FILES, files // 2, 1))


def open_files(wanted: int) -> int:
    """How many files this process may open; the system is asked for enough for so many connections."""
    try:
        import resource
    except ImportError:  # not on Windows, which has no such limit
        return wanted + _OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = wanted + _OTHER_FILES
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return needed
    soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return soft


def plain_address(host: str) -> str:
    """An address as it is counted and logged: one of IPv4 that came over IPv6 (``::ffff:``) is one of IPv4."""
    try:
        found = ipaddress.ip_address(host)
    except ValueError:
        return host
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return host if mapped is None else str(mapped)


@attrs.define(eq=False)
class _Connection:
    """`requests` are those that are answered now; a websocket counts as one until its end."""

    peer: Peer
    group: str | None
    transport: asyncio.Transport
    requests: int = 0
    received: bool = False
    deadline: asyncio.TimerHandle | None = None


class OpenConnections:
    """The open connections. Belongs to the event loop."""

    def __init__(self, limits: WebLimits, trusted: Sequence[Network] = ()) -> None:
        """Begin without connections.

        Args:
            limits: `connections`, `address_connections` and `header_time` are used.
            trusted: proxies, which have the connections of many clients: only the limit in all holds for them.
        """
        self._limits = limits
        self._trusted = trusted
        self._open: dict[Peer, _Connection] = {}
        self._counts: collections.Counter[str] = collections.Counter()
        #: Without a request, the one that has waited longest first: of all, and of each group.
        self._idle: dict[_Connection, None] = {}
        self._idle_of: dict[str | None, dict[_Connection, None]] = {}
        self._logged = -_LOG_INTERVAL

    def __len__(self) -> int:
        return len(self._open)

    def on_connection_made(self, peer: Peer, transport: asyncio.Transport) -> bool:
        """There is a connection; False if it was refused, and is closed."""
        upgraded = self._open.get(peer)
        if upgraded is not None:
            self._begin(upgraded)
            return True
        group = self._group(peer[0])
        if not self._has_room(group):
            self._say(f"connections of {peer[0]} are refused: there are {len(self)}, and all are busy")
            problem = Problem(503, "too many connections", headers={"Retry-After": str(_RETRY_AFTER)})
            _answer(transport, problem)
            return False
        connection = self._open[peer] = _Connection(peer, group, transport)
        if group is not None:
            self._counts[group] += 1
        self._wait(connection)
        self._expect(connection)
        return True

    def on_data_received(self, peer: Peer) -> None:
        """Something came: where no request is answered now, the header of the next one has so long from now on."""
        connection = self._open.get(peer)
        if connection is not None:
            connection.received = True
            if not connection.requests and connection.deadline is None:
                self._expect(connection)

    def on_connection_lost(self, peer: Peer) -> None:
        """A connection has ended; what is not there is ignored."""
        connection = self._open.pop(peer, None)
        if connection is None:
            return
        self._stop_expecting(connection)
        self._stop_waiting(connection)
        if connection.group is not None:
            self._counts[connection.group] -= 1
            if not self._counts[connection.group]:
                del self._counts[connection.group]

    def watch(self, app: ASGIApp) -> ASGIApp:
        """An application that tells which connections have a request."""
        return _Watched(app, self)

    def begin(self, peer: Peer) -> None:
        """The header of a request is complete."""
        connection = self._open.get(peer)
        if connection is not None:
            self._begin(connection)

    def end(self, peer: Peer) -> None:
        """A request was answered."""
        connection = self._open.get(peer)
        if connection is not None:
            connection.requests -= 1
            if not connection.requests:
                self._wait(connection)

    def _begin(self, connection: _Connection) -> None:
        connection.requests += 1
        self._stop_expecting(connection)
        self._stop_waiting(connection)

    def _group(self, host: str) -> str | None:
        """What connections are counted by; None for a trusted proxy."""
        host = plain_address(host)
        address = ipaddress.ip_address(host.partition("%")[0])
        if any(address in network for network in self._trusted):
            return None
        # A client of IPv6 has a whole network of addresses.
        return str(ipaddress.ip_network((address, 64), strict=False)) if address.version == 6 else host

    def _has_room(self, group: str | None) -> bool:
        if group is not None and self._counts[group] >= self._limits.address_connections:
            waiting = self._idle_of.get(group, {})
        elif len(self._open) >= self._limits.connections:
            waiting = self._idle
        else:
            return True
        longest = next(iter(waiting), None)
        if longest is None:
            return False
        self._drop(longest)
        return True

    def _drop(self, connection: _Connection) -> None:
        self.on_connection_lost(connection.peer)
        connection.transport.abort()

    def _expect(self, connection: _Connection) -> None:
        loop = asyncio.get_running_loop()
        connection.deadline = loop.call_later(self._limits.header_time, self._on_deadline, connection)

    def _stop_expecting(self, connection: _Connection) -> None:
        if connection.deadline is not None:
            connection.deadline.cancel()
            connection.deadline = None

    def _on_deadline(self, connection: _Connection) -> None:
        connection.deadline = None
        if connection.received:
            text = f"the header of the request did not come within {self._limits.header_time:g} s"
            _answer(connection.transport, Problem(408, text))
        else:
            connection.transport.close()

    def _wait(self, connection: _Connection) -> None:
        self._idle[connection] = None
        self._idle_of.setdefault(connection.group, {})[connection] = None

    def _stop_waiting(self, connection: _Connection) -> None:
        self._idle.pop(connection, None)
        of_group = self._idle_of.get(connection.group)
        if of_group is not None:
            of_group.pop(connection, None)
            if not of_group:
                del self._idle_of[connection.group]

    def _say(self, text: str) -> None:
        now = time.monotonic()
        if now - self._logged >= _LOG_INTERVAL:
            self._logged = now
            log.warning("%s", text)


class _Watched:
    """The application of `OpenConnections.watch`."""

    def __init__(self, app: ASGIApp, connections: OpenConnections) -> None:
        self.app = app  # by this name, libraries find the application that is wrapped
        self._connections = connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        peer = scope.get("client")
        if peer is not None:
            scope = {**scope, "client": (plain_address(peer[0]), peer[1])}
        if peer is None or scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self._connections.begin(peer)
        try:
            await self.app(scope, receive, send)
        finally:
            self._connections.end(peer)


class _Limited(asyncio.Protocol):
    """Tells `connections` of a protocol's connection; mixed into one of uvicorn's.

    Its attributes have names that uvicorn's classes don't.
    """

    qmf_connections: OpenConnections
    qmf_peer: Peer | None = None
    qmf_refused = False

    def connection_made(self, transport: Any) -> None:
        self.qmf_peer = _peer(transport)
        if self.qmf_peer is not None and not self.qmf_connections.on_connection_made(self.qmf_peer, transport):
            self.qmf_refused = True
            return
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self.qmf_refused:
            return
        super().data_received(data)
        if self.qmf_peer is not None:
            self.qmf_connections.on_data_received(self.qmf_peer)

    def connection_lost(self, error: Exception | None) -> None:
        if self.qmf_refused:
            return
        if self.qmf_peer is not None:
            self.qmf_connections.on_connection_lost(self.qmf_peer)
        super().connection_lost(error)


def limited_protocol(protocol: Any, connections: OpenConnections) -> type[asyncio.Protocol]:
    """The protocol class whose connections are limited; `protocol` is one of uvicorn's."""
    return type(f"Limited{protocol.__name__}", (_Limited, protocol), {"qmf_connections": connections})


def _peer(transport: asyncio.BaseTransport) -> Peer | None:
    """Host and port of the other end, as ASGI has them; None where there are none."""
    found = transport.get_extra_info("peername")
    return (str(found[0]), int(found[1])) if isinstance(found, tuple) else None


def _answer(transport: asyncio.Transport, problem: Problem) -> None:
    """Answer without a request, and close."""
    body = json.dumps(problem.content()).encode()
    headers = {**problem.headers, "Connection": "close", "Content-Type": MEDIA_TYPE, "Content-Length": str(len(body))}
    lines = [f"HTTP/1.1 {problem.status} {problem.title}", *(f"{name}: {value}" for name, value in headers.items())]
    transport.write("\r\n".join((*lines, "", "")).encode() + body)
    transport.close()
