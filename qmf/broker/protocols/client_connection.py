"""The broker's end of a connection of a protocol without frames of SASL: its socket, its login, and its end."""

from __future__ import annotations

import abc
import asyncio
import contextlib
import logging
import socket
from collections.abc import Callable, Hashable
from typing import Protocol, cast

from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_clients import ClientSession
from qmf.broker.nodes.queues import Queue
from qmf.broker.protocols.input import HeldInput, InputHold
from qmf.broker.protocols.login import ClientLogin, LoginOwner, peer_address
from qmf.broker.protocols.output import TurnOutput
from qmf.broker.protocols.services import ConnectionServices
from qmf.broker.refusal import Reason
from qmf.bus.channels import server_channel

log = logging.getLogger("qmf.broker")


class AdmittedClient(Protocol):
    """What a client does that was let in."""

    def dispatch(self) -> None:
        """There may be room: deliver what waits."""

    def loses(self, node: Queue | Exchange) -> bool:
        """A node was deleted: True if the client cannot go on without it."""

    def missing_right(self) -> str:
        """Why a right of the client has ended, since there are other rules; empty if it has all."""

    def leave(self) -> None:
        """The connection is gone, or about to be closed."""


class ClientConnection(asyncio.Protocol, ClientSession, LoginOwner):
    """A connection that a client made, and that has one session; protocols add what is said on it."""

    _client: AdmittedClient | None = None

    def __init__(self, services: ConnectionServices) -> None:
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = self._loop.create_future()
        self._services = services
        self._operations = services.operations
        self._registry = services.operations.registry
        self._clients = services.clients
        self._info = ClientInfo("unknown")
        self._transport: asyncio.Transport | None = None
        self._login: ClientLogin | None = None
        self._output = TurnOutput(self._on_room)
        self._input = HeldInput()
        self._handling = self._failed = False
        self._timers: dict[str, asyncio.TimerHandle] = {}

    __hash__ = object.__hash__

    def __str__(self) -> str:
        return f"{self._info.container or 'client'} at {self._info.address}"

    # What a protocol adds

    @property
    @abc.abstractmethod
    def _has_begun(self) -> bool:
        """The client has said who it is, truly or not."""

    @abc.abstractmethod
    def _dispatch_later(self) -> None:
        """Send what waits for room, in a later turn of the loop."""

    def _leave(self) -> None:
        """The client has nothing here any more."""
        client, self._client = self._client, None
        if client is not None:
            client.leave()

    # ClientSession

    @property
    def info(self) -> ClientInfo:
        """See `BrokerClient`; before the login, only the address."""
        return self._info

    @property
    def ended(self) -> asyncio.Future[None]:
        """Done when the connection is gone."""
        return self._ended

    def abort(self) -> None:
        self._output.abort()

    def end_session(self, session: Hashable, reason: str) -> None:  # noqa: ARG002 - the only one
        self.close(reason)

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        if self._client is not None and self._client.loses(node):
            self.close(f"{node.name!r} was deleted")

    def on_policy_changed(self) -> None:
        if self._client is not None and (reason := self._client.missing_right()):
            self._registry.observer.on_link_revoked(self, "subscriptions", reason)
            self.close(reason, Reason.UNAUTHORIZED)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Transports of other loops than asyncio's have its methods without being derived from its class.
        self._transport = cast("asyncio.Transport", transport)
        self._output.connect(self._transport)
        self._input.connect(self._transport)
        if (sock := transport.get_extra_info("socket")) is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._info = ClientInfo(peer_address(transport))
        self._clients.start(self)
        channel = server_channel(transport, self._services.own_certificate())
        self._login = ClientLogin(self._services.logins, self, channel, self._info.host)
        self._start_timer("open", self._services.open_timeout, self._on_open_timeout)

    def pause_writing(self) -> None:
        """See asyncio: a client that does not read is not read from either."""
        self._input.hold(InputHold.WRITING)

    def resume_writing(self) -> None:
        self._input.release(InputHold.WRITING)
        self._dispatch()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            log.debug("lost: %s: %s", self, exc)
        if not self._has_begun:
            self._log_failure("it disconnected before it had sent CONNECT", logging.INFO)
        self._stop_timers()
        if self._login is not None:
            self._login.close()
        self._transport = None
        self._output.disconnect()
        self._input.disconnect()
        try:
            self._leave()
        finally:
            # Whatever happens here, the broker must not wait for this connection when it ends.
            self._ended.set_result(None)
            self._clients.end(self)

    # For the client

    def _dispatch(self) -> None:
        if self._client is not None:
            self._client.dispatch()

    @property
    def has_room(self) -> bool:
        """More may be written without piling up in memory."""
        return not self._input.is_held(InputHold.WRITING) and self._output.has_room

    def _on_room(self) -> None:
        if not self._input.is_held(InputHold.WRITING):
            self._dispatch_later()

    def _close_transport(self) -> None:
        if self._output.close():
            self._stop_timers()

    # Failures

    def _report_rejection(self, reason: str) -> None:
        """Report a login that was refused, with the user that the client named."""
        user = "" if self._login is None else self._login.claimed_user
        who = f"user {user!r}" if user else "no user"
        self._registry.observer.on_connection_refused(ClientInfo(self._info.address, user=user), reason)
        self._log_failure(f"login of {who} refused: {reason}")

    def _log_failure(self, reason: str, level: int = logging.WARNING) -> None:
        """Count and log a failure, once per connection."""
        if not self._failed:
            self._failed = True
            self._registry.counters.failures += 1
            log.log(level, "dropped %s: %s", self, reason)

    # Time

    def _on_open_timeout(self) -> None:
        self._log_failure(f"no login within {self._services.open_timeout:g} s")
        self.abort()

    def _start_timer(self, name: str, seconds: float, callback: Callable[[], object]) -> None:
        self._timers[name] = self._loop.call_later(max(0.0, seconds), callback)

    def _stop_timers(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
