"""The broker's end of a connection of STOMP: its socket, its login, its heart-beats; a `ClientSession`."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import uuid
from collections.abc import Callable, Hashable, Sequence
from typing import cast

from qmf._version import __version__
from qmf.broker.client_info import ClientInfo
from qmf.broker.logins import Logins
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.observed_clients import Traffic
from qmf.broker.nodes.queues import Queue
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.principal import Principal
from qmf.broker.protocols.input import HeldInput, InputHold
from qmf.broker.protocols.login import ClientLogin, LoginRefusal, peer_address
from qmf.broker.protocols.output import TurnOutput
from qmf.broker.protocols.stomp.client import CommandFailed, StompClient
from qmf.broker.protocols.stomp.frames import MAX_HEAD, Frame, FrameError, FrameReader, StompVersion, encode_frame
from qmf.broker.protocols.stomp.options import StompOptions
from qmf.broker.refusal import Reason
from qmf.broker.sessions import ClientSessions
from qmf.bus.channels import server_channel
from qmf.sasl.results import Authenticated

log = logging.getLogger("qmf.broker")

#: The longest time between heart-beats that a client may ask for, in milliseconds.
_MAX_HEARTBEAT = 24 * 3600 * 1000


class StompConnection(asyncio.Protocol):
    """A connection that a client of STOMP made.

    Attributes:
        ended: done when the connection is gone.
        version: that both ends have agreed on.
    """

    def __init__(
        self,
        options: StompOptions,
        operations: Operations,
        clients: ClientSessions,
        logins: Logins,
        *,
        open_timeout: float,
        certificate: Callable[[], bytes] | None,
    ) -> None:
        """Make the connection for a socket that a listener has accepted.

        Args:
            options: see there.
            operations, clients, logins: of the broker.
            open_timeout: seconds that the client has for its login.
            certificate: returns the broker's certificate as DER; None if it is not known.
        """
        self._loop = asyncio.get_running_loop()
        self.ended: asyncio.Future[None] = self._loop.create_future()
        self.version = StompVersion.V1_2
        self._options = options
        self._operations = operations
        self._registry = operations.registry
        self._clients = clients
        self._logins = logins
        self._open_timeout = open_timeout
        self._certificate = certificate
        self._info = ClientInfo("unknown")
        self._reader = FrameReader(MAX_HEAD)  # until somebody has logged in
        self._transport: asyncio.Transport | None = None
        self._login: ClientLogin | None = None
        #: CONNECT, while the login is checked and after it.
        self._connect: Frame | None = None
        self._client: StompClient | None = None
        self._output = TurnOutput(self._on_room)
        self._input = HeldInput()
        self._handling = self._failed = self._closing = False
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._frames_in = self._frames_out = 0

    def __str__(self) -> str:
        return f"{self._info.container or 'client'} at {self._info.address}"

    # ClientSession

    @property
    def info(self) -> ClientInfo:
        """See `BrokerClient`; before the login, only the address."""
        return self._info

    def traffic(self) -> Traffic:
        """See `ClientSession`."""
        return Traffic(self._frames_in, self._frames_out, self._input.octets, self._output.octets)

    def close(self, reason: str, cause: Reason | None = None) -> None:  # noqa: ARG002 - there are no codes
        """See `ClientSession`."""
        self.fail(reason)

    def abort(self) -> None:
        """See `ClientSession`."""
        self._output.abort()

    def end_session(self, session: Hashable, reason: str) -> None:  # noqa: ARG002 - a connection has one
        """See `ClientSession`: the connection ends with its session."""
        self.fail(reason)

    def on_node_deleted(self, node: Queue | Exchange) -> None:
        """See `ClientSession`."""
        if self._client is not None and self._client.uses(node):
            self.fail(f"{node.name!r} was deleted")

    def on_policy_changed(self) -> None:
        """See `ClientSession`."""
        if self._client is not None and (reason := self._client.missing_right()):
            self._registry.observer.on_link_revoked(self, "subscriptions", reason)
            self.fail(reason)

    # asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio."""
        # Transports of other loops than asyncio's have its methods without being derived from its class.
        self._transport = cast("asyncio.Transport", transport)
        self._output.connect(self._transport)
        self._input.connect(self._transport)
        if (sock := transport.get_extra_info("socket")) is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._info = ClientInfo(peer_address(transport))
        self._clients.start(self)
        channel = server_channel(transport, None if self._certificate is None else self._certificate())
        self._login = ClientLogin(self._logins, self, channel, self._info.host)
        self._start_timer("open", self._open_timeout, self._on_open_timeout)

    def data_received(self, data: bytes) -> None:
        """See asyncio."""
        self._input.count(len(data))
        self._reader.feed(data)
        self._handle()
        if self._client is not None:
            self._client.end_turn()

    def pause_writing(self) -> None:
        """See asyncio: a client that does not read is not read from either."""
        self._input.hold(InputHold.WRITING)

    def resume_writing(self) -> None:
        """See asyncio."""
        self._input.release(InputHold.WRITING)
        self._dispatch()

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio."""
        if exc is not None:
            log.debug("lost: %s: %s", self, exc)
        if self._connect is None:
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
            self.ended.set_result(None)
            self._clients.end(self)

    # Frames

    def _handle(self) -> None:
        """Handle the frames that are there, and write what they cause. While a login is checked, frames wait."""
        if self._handling:
            return
        self._handling = self._output.collecting = True
        try:
            while not self._closing and (self._connect is None or self._client is not None):
                frame = self._reader.next_frame()
                if frame is None:
                    break
                self._frames_in += 1
                self._on_frame(frame)
        except FrameError as error:
            self._log_failure(str(error))
            self.fail(str(error))
        finally:
            self._handling = self._output.collecting = False
        self._output.flush()
        if self._connect is not None and self._client is None and not self._closing and self._transport is not None:
            self._input.hold(InputHold.LOGIN)  # what comes would only pile up

    def _on_frame(self, frame: Frame) -> None:
        if self._client is None:
            if frame.command not in ("CONNECT", "STOMP"):
                raise FrameError(f"the first frame is CONNECT, not {frame.command[:20]}")
            self._on_connect(frame)
            return
        try:
            self._client.on_frame(frame)
        except CommandFailed as error:
            log.info("%s: %s: %s", self, frame.command, error)
            self.fail(str(error), frame)

    def _on_connect(self, frame: Frame) -> None:
        versions = frame.headers.get("accept-version", StompVersion.V1_0.value).split(",")
        known = [each for each in StompVersion if each.value in [name.strip() for name in versions]]
        if not known:
            self.fail(
                f"no version of {', '.join(versions)[:100]}, but {', '.join(each.value for each in StompVersion)}"
            )
            return
        if not _read_heartbeat(frame):
            self.fail("heart-beat is two numbers of milliseconds")
            return
        self.version = self._reader.version = known[-1]
        self._connect = frame
        assert self._login is not None
        passcode = frame.headers.get("passcode")
        self._login.begin(frame.headers.get("login"), None if passcode is None else passcode.encode())

    # LoginOwner

    def on_challenge(self, data: bytes) -> None:
        """See `LoginOwner`: no mechanism that is used here has any."""

    def on_authenticated(self, result: Authenticated, mechanism: str) -> None:
        """See `LoginOwner`."""
        connect = self._connect
        if connect is None or self._closing:
            return
        client_id, session_id = connect.headers.get("client-id", ""), str(uuid.uuid4())
        self._info = ClientInfo(
            self._info.address,
            client_id or session_id,
            result.user,
            mechanism,
            {"heart-beat": connect.headers.get("heart-beat", "0,0")},
            f"STOMP {self.version.value}",
            groups=result.groups,
            token_end=result.token_end,
        )
        refusal = self._clients.admit(self)
        if refusal is not None:
            self._log_failure(refusal.description)
            self.fail(refusal.description)
            return
        self._stop_timers()
        self._reader.max_frame = self._options.max_frame
        self._input.release(InputHold.LOGIN)
        self._client = StompClient(
            self, Principal.of(self), self._operations, self._clients, self._options, session_id, client_id
        )
        headers = [("version", self.version.value), ("session", session_id), ("server", f"qmf/{__version__}")]
        if self.version is not StompVersion.V1_0:
            headers.append(("heart-beat", f"{self._options.heartbeat},{self._options.heartbeat}"))
            self._begin_heartbeats(connect)
        self.send_frame("CONNECTED", headers)
        log.debug("connected: %s", self)
        self._handle()  # what came meanwhile; nothing if this is called for a frame

    def on_rejected(self, refusal: LoginRefusal, reason: str) -> None:  # noqa: ARG002 - there are no codes
        """See `LoginOwner`: the client learns no more than that."""
        if self._closing:
            return
        user = "" if self._login is None else self._login.claimed_user
        who = f"user {user!r}" if user else "no user"
        self._registry.observer.on_connection_refused(ClientInfo(self._info.address, user=user), reason)
        self._log_failure(f"login of {who} refused: {reason}")
        self.fail("the login is refused")

    # For the client

    @property
    def has_room(self) -> bool:
        """See `FrameSender`."""
        return not self._input.is_held(InputHold.WRITING) and self._output.has_room

    def send_frame(self, command: str, headers: Sequence[tuple[str, str]], body: bytes = b"") -> None:
        """See `FrameSender`."""
        self._frames_out += 1
        self._output.write(encode_frame(command, headers, body, self.version))

    def fail(self, reason: str, frame: Frame | None = None) -> None:
        """See `StompConnectionEnd`."""
        if self._closing:
            return
        self._leave()
        headers = [("message", reason), ("content-type", "text/plain")]
        body = reason
        if frame is not None:
            body = f"{reason}\nThe frame was {frame.command}:\n" + "".join(
                f"{name}:{value}\n" for name, value in frame.headers.items() if name != "passcode"
            )
            if (receipt := frame.headers.get("receipt")) is not None:
                headers.insert(0, ("receipt-id", receipt))
        self.send_frame("ERROR", headers, body.encode("utf-8", "replace"))
        self.finish()

    def finish(self) -> None:
        """See `StompConnectionEnd`."""
        self._leave()
        self._closing = True
        if self._output.close():
            self._stop_timers()

    def _leave(self) -> None:
        """The client has nothing here any more."""
        client, self._client = self._client, None
        if client is not None:
            client.leave()

    # Writing

    def _on_room(self) -> None:
        if not self._input.is_held(InputHold.WRITING):
            self._loop.call_soon(self._dispatch)

    # What is sent, and has yet to be stored

    def hold_reading(self) -> None:
        """See `StompConnectionEnd`."""
        self._input.hold(InputHold.STORING)

    def resume_reading(self) -> None:
        """See `StompConnectionEnd`."""
        self._input.release(InputHold.STORING)

    def _dispatch(self) -> None:
        if self._client is not None:
            self._client.dispatch()

    # Time

    def _begin_heartbeats(self, connect: Frame) -> None:
        own, (sends, wants) = self._options.heartbeat, _read_heartbeat(connect) or (0, 0)
        if not own:
            return
        if wants:
            interval = max(own, wants) / 1000
            self._start_timer("send", interval, lambda: self._send_heartbeat(interval))
        if sends:
            allowed = 2 * max(own, sends) / 1000
            self._start_timer("receive", allowed, lambda: self._expect_heartbeat(allowed))

    def _send_heartbeat(self, interval: float) -> None:
        left = self._output.last_write + interval - self._loop.time()
        if left <= interval / 10:
            self._output.write(b"\n")
            left = interval
        # A little sooner than agreed: it takes time to arrive.
        self._start_timer("send", 0.9 * left, lambda: self._send_heartbeat(interval))

    def _expect_heartbeat(self, allowed: float) -> None:
        left = allowed - self._input.silence()
        if left > 0:
            self._start_timer("receive", left, lambda: self._expect_heartbeat(allowed))
            return
        log.info("dropped %s: it has sent nothing for %g s", self, allowed)
        self.fail(f"nothing was sent for {allowed:g} s")

    def _on_open_timeout(self) -> None:
        self._log_failure(f"no login within {self._open_timeout:g} s")
        self.abort()

    def _start_timer(self, name: str, seconds: float, callback: Callable[[], object]) -> None:
        self._timers[name] = self._loop.call_later(max(0.0, seconds), callback)

    def _stop_timers(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()

    def _log_failure(self, reason: str, level: int = logging.WARNING) -> None:
        """Count and log a failure, once per connection."""
        if not self._failed:
            self._failed = True
            self._registry.counters.failures += 1
            log.log(level, "dropped %s: %s", self, reason)


def _read_heartbeat(frame: Frame) -> tuple[int, int] | None:
    """How often the client can send, and wants to receive, in milliseconds; None if that can't be read."""
    parts = frame.headers.get("heart-beat", "0,0").split(",")
    if len(parts) != 2 or not all(part.strip().isascii() and part.strip().isdigit() for part in parts):
        return None
    sends, wants = (min(int(part[:20]), _MAX_HEARTBEAT) for part in parts)
    return sends, wants
