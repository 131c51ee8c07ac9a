"""SASL on the broker's side: the frames of AMQP around the login of a client.

`SaslServer` is the SASL layer in front of an engine, without I/O: bytes in, bytes out. Once a user is authenticated,
all further bytes are the engine's. What takes long to decide, as hashes of passwords do, is decided elsewhere
(`Logins.check_elsewhere`): other clients don't wait for it. A broker that lets everybody in accepts clients without
SASL, too.
"""

from __future__ import annotations

from collections.abc import Callable

from qmf.broker.logins import Logins
from qmf.broker.protocols.login import ClientLogin, LoginOwner, LoginRefusal
from qmf.bus.engine.sasl_frames import (
    INIT,
    OUTCOME_AUTH,
    OUTCOME_OK,
    RESPONSE,
    SASL_HEADER,
    SaslFrame,
    SaslFrameError,
    SaslFrameReader,
    challenge_frame,
    mechanisms_frame,
    outcome_frame,
)
from qmf.bus.engine.security_layer import NotAuthenticated
from qmf.sasl.channel import Channel
from qmf.sasl.results import Authenticated

#: Bytes that a client may send while its password is checked.
_MAX_EARLY = 64 * 1024
#: Responses of one exchange, the first one included: SCRAM needs two, GSSAPI a few more.
_MAX_RESPONSES = 10


class SaslServer(LoginOwner):
    """The server's side of one SASL exchange; the `SecurityLayer` of an engine.

    Attributes:
        channel, host: the connection and the client's address; to be set when they are known, before the first bytes.
        user: None until the client is authenticated; empty for one that uses no SASL.
        groups: of the user, as its access token says.
        token_end: when that token ends, in seconds since 1970; None without one.
        claimed_mechanism: that the client asked for; empty before.
        mechanism: that it used, or None.
        on_checked: called when a result was computed elsewhere; `feed` goes on then, without new bytes.
    """

    def __init__(self, logins: Logins) -> None:
        self.channel = Channel()
        self.host = ""
        self.user: str | None = None
        self.groups: frozenset[str] = frozenset()
        self.token_end: float | None = None
        self.claimed_mechanism = ""
        self.mechanism: str | None = None
        self.on_checked: Callable[[], None] = lambda: None
        self._logins = logins
        self._login: ClientLogin | None = None
        self._reader = SaslFrameReader()
        self._output = b""
        self._header_received = False
        self._responses = 0
        #: What the client has sent is being looked at, elsewhere unless this is within `feed`.
        self._checking = self._feeding = False
        #: Why it is refused; empty if it is not.
        self._rejection = ""

    @property
    def passed(self) -> bool:
        """See `SecurityLayer`."""
        return self.user is not None

    @property
    def claimed_user(self) -> str:
        """Who the client says it is; empty before it has said so."""
        return "" if self._login is None else self._login.claimed_user

    def feed(self, data: bytes | memoryview) -> bytes:
        """Take bytes from the client.

        Returns:
            bytes that follow the SASL layer, once `user` is set.

        Raises:
            NotAuthenticated: authentication failed. `output` may still have an answer for the client.
        """
        self._reader.buffer += data
        if self._checking:
            if len(self._reader.buffer) > _MAX_EARLY:
                raise NotAuthenticated("it sends without waiting until its password is checked")
            return b""
        if not self._header_received:
            self._read_header()
        self._feeding = True
        try:
            while self._header_received and not (self._checking or self._rejection or self.passed):
                if (frame := self._reader.next_frame()) is None:
                    break
                self._respond(frame)
        except SaslFrameError as error:
            raise NotAuthenticated(str(error)) from error
        finally:
            self._feeding = False
        if self._rejection:
            raise NotAuthenticated(self._rejection)
        if self.user is None:
            return b""
        rest, self._reader.buffer = self._reader.buffer, b""
        return rest

    def output(self) -> bytes:
        """Bytes for the client."""
        data, self._output = self._output, b""
        return data

    def close(self) -> None:
        """The connection is gone: a check that has not begun is left out, and the result of another one ignored."""
        if self._login is not None:
            self._login.close()
        self.on_checked = lambda: None  # who is called knows this layer

    def _read_header(self) -> None:
        authenticator = self._logins.authenticator
        try:
            self._header_received = self._reader.has_header()
        except SaslFrameError as error:
            if not authenticator.needs_login:
                self.user = ""
                return
            raise NotAuthenticated(f"{error}, which this broker requires") from error
        if self._header_received:
            offer = authenticator.offer(self.channel)
            self._output += SASL_HEADER + mechanisms_frame(offer)
            if not offer:
                raise NotAuthenticated(
                    "no mechanism is possible on this connection: passwords would be readable without TLS"
                    if not self.channel.private
                    else "no mechanism is possible on this connection"
                )

    def _respond(self, frame: SaslFrame) -> None:
        self._responses += 1
        if self._responses > _MAX_RESPONSES:
            self.on_rejected(LoginRefusal.NOT_AUTHORIZED, "too many responses")
            return
        self._checking = True
        if self._login is not None:
            if frame.code != RESPONSE:
                raise SaslFrameError("unexpected SASL frame instead of response")
            self._login.answer(frame.binary(0))
            return
        if frame.code != INIT:
            raise SaslFrameError("unexpected SASL frame instead of init")
        self.claimed_mechanism = (frame.symbols(0) or ("",))[0]
        self._login = ClientLogin(self._logins, self, self.channel, self.host, called="mechanism")
        self._login.begin_exchange(self.claimed_mechanism, frame.binary(1))

    # LoginOwner

    def on_challenge(self, data: bytes) -> None:
        self._answer(challenge_frame(data))

    def on_authenticated(self, result: Authenticated, mechanism: str) -> None:
        self.user, self.mechanism = result.user, mechanism
        self.groups, self.token_end = result.groups, result.token_end
        self._answer(outcome_frame(OUTCOME_OK, result.data))

    def on_rejected(self, refusal: LoginRefusal, reason: str) -> None:  # noqa: ARG002  # AMQP has one outcome for all
        self._rejection = reason
        self._answer(outcome_frame(OUTCOME_AUTH))

    def _answer(self, data: bytes) -> None:
        self._output += data
        self._checking = False
        if not self._feeding:
            self.on_checked()
