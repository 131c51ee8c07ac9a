"""The broker's end of a connection of STOMP: its socket, its login, its heart-beats; a `ClientSession`."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Sequence

from qmf._version import __version__
from qmf.broker.client_info import ClientInfo
from qmf.broker.nodes.observed_clients import Traffic
from qmf.broker.operations.principal import Principal
from qmf.broker.protocols.client_connection import ClientConnection
from qmf.broker.protocols.input import InputHold
from qmf.broker.protocols.login import LoginRefusal
from qmf.broker.protocols.services import ConnectionServices
from qmf.broker.protocols.stomp.client import CommandFailed, StompClient
from qmf.broker.protocols.stomp.frames import MAX_HEAD, Frame, FrameError, FrameReader, StompVersion, encode_frame
from qmf.broker.protocols.stomp.options import StompOptions
from qmf.broker.refusal import Reason
from qmf.sasl.results import Authenticated

log = logging.getLogger("qmf.broker")

#: The longest time between heart-beats that a client may ask for, in milliseconds.
_MAX_HEARTBEAT = 24 * 3600 * 1000


class StompConnection(ClientConnection):
    """A connection that a client of STOMP made; a `StompConnectionEnd`, and so a `FrameSender`."""

    def __init__(self, services: ConnectionServices, options: StompOptions) -> None:
        super().__init__(services)
        self.version = StompVersion.V1_2
        self._options = options
        self._reader = FrameReader(MAX_HEAD)  # until somebody has logged in
        #: CONNECT, while the login is checked and after it.
        self._connect: Frame | None = None
        self._client: StompClient | None = None
        self._closing = False
        self._frames_in = self._frames_out = 0

    # ClientSession

    def traffic(self) -> Traffic:
        return Traffic(self._frames_in, self._frames_out, self._input.octets, self._output.octets)

    def close(self, reason: str, cause: Reason | None = None) -> None:  # noqa: ARG002 - there are no codes
        self.fail(reason)

    # asyncio.Protocol

    def data_received(self, data: bytes) -> None:
        self._input.count(len(data))
        self._reader.feed(data)
        self._handle()
        if self._client is not None:
            self._client.end_turn()

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
        self._report_rejection(reason)
        self.fail("the login is refused")

    # For the client

    def send_frame(self, command: str, headers: Sequence[tuple[str, str]], body: bytes = b"") -> None:
        self._frames_out += 1
        self._output.write(encode_frame(command, headers, body, self.version))

    def fail(self, reason: str, frame: Frame | None = None) -> None:
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
        self._leave()
        self._closing = True
        self._close_transport()

    @property
    def _has_begun(self) -> bool:
        return self._connect is not None

    # Writing

    def _dispatch_later(self) -> None:
        self._loop.call_soon(self._dispatch)

    # What is sent, and has yet to be stored

    def hold_reading(self) -> None:
        self._input.hold(InputHold.STORING)

    def resume_reading(self) -> None:
        self._input.release(InputHold.STORING)

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


def _read_heartbeat(frame: Frame) -> tuple[int, int] | None:
    """How often the client can send, and wants to receive, in milliseconds; None if that can't be read."""
    parts = frame.headers.get("heart-beat", "0,0").split(",")
    if len(parts) != 2 or not all(part.strip().isascii() and part.strip().isdigit() for part in parts):
        return None
    sends, wants = (min(int(part[:20]), _MAX_HEARTBEAT) for part in parts)
    return sends, wants
