"""SASL on the broker's side: the frames of AMQP around the exchanges of `qmf.sasl`.

`SaslServer` is the SASL layer in front of an engine, without I/O: bytes in, bytes out. Once a user is authenticated,
all further bytes are the engine's. What takes long to decide, as hashes of passwords do, is decided elsewhere
(`RunElsewhere`): other clients don't wait for it. A broker that lets everybody in accepts clients without SASL, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

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
from qmf.sasl.mechanism import ServerMechanism
from qmf.sasl.results import Authenticated, Challenge, Pending, Rejected, Result
from qmf.sasl.server import Authenticator
from qmf.users.delays import FailureDelays

#: Bytes that a client may send while its password is checked.
_MAX_EARLY = 64 * 1024
#: Responses of one exchange: SCRAM needs two, GSSAPI a few more.
_MAX_RESPONSES = 10

#: Computes a result that takes long, elsewhere, and calls the other function with it: never within the call, and not
#: if computing fails.
RunElsewhere = Callable[[Callable[[], Authenticated | Rejected], Callable[[Authenticated | Rejected], None]], None]


class SaslServer:
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

    def __init__(
        self,
        authenticator: Authenticator,
        elsewhere: RunElsewhere | None = None,
        failures: FailureDelays | None = None,
    ) -> None:
        """Begin an exchange with a client.

        Args:
            authenticator: decides who the client is.
            elsewhere: where results that take long are computed; None: in `feed`.
            failures: makes whoever has had wrong passwords wait; None: nobody waits.
        """
        self.channel = Channel()
        self.host = ""
        self._failures = failures
        self.user: str | None = None
        self.groups: frozenset[str] = frozenset()
        self.token_end: float | None = None
        self.claimed_mechanism = ""
        self.mechanism: str | None = None
        self.on_checked: Callable[[], None] = lambda: None
        self._authenticator = authenticator
        self._elsewhere = elsewhere
        self._checking = False
        self._closed = False
        self._reader = SaslFrameReader()
        self._output = b""
        self._header_received = False
        self._exchange: ServerMechanism | None = None
        self._responses = 0
        #: Computed elsewhere.
        self._result: Authenticated | Rejected | None = None

    @property
    def passed(self) -> bool:
        return self.user is not None

    @property
    def claimed_user(self) -> str:
        """Who the client says it is; empty before it has said so."""
        return "" if self._exchange is None else self._exchange.claimed_user

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
        if self._result is not None:
            result, self._result = self._result, None
            self._answer(result)
        try:
            while self._header_received and not self._checking and self.user is None:
                if (frame := self._reader.next_frame()) is None:
                    break
                self._answer(self._respond(frame))
        except SaslFrameError as error:
            raise NotAuthenticated(str(error)) from error
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
        self._closed = True
        self.on_checked = lambda: None  # who is called knows this layer

    def _read_header(self) -> None:
        try:
            self._header_received = self._reader.has_header()
        except SaslFrameError as error:
            if not self._authenticator.needs_login:
                self.user = ""
                return
            raise NotAuthenticated(f"{error}, which this broker requires") from error
        if self._header_received:
            offer = self._authenticator.offer(self.channel)
            self._output += SASL_HEADER + mechanisms_frame(offer)
            if not offer:
                raise NotAuthenticated(
                    "no mechanism is possible on this connection: passwords would be readable without TLS"
                    if not self.channel.private
                    else "no mechanism is possible on this connection"
                )

    def _respond(self, frame: SaslFrame) -> Result:
        self._responses += 1
        if self._responses > _MAX_RESPONSES:
            return Rejected("too many responses")
        if self._exchange is not None:
            if frame.code != RESPONSE:
                raise SaslFrameError("unexpected SASL frame instead of response")
            return self._exchange.respond(frame.binary(0) or b"")
        if frame.code != INIT:
            raise SaslFrameError("unexpected SASL frame instead of init")
        self.claimed_mechanism = (frame.symbols(0) or ("",))[0]
        self._exchange = self._authenticator.start(self.claimed_mechanism, self.channel)
        if self._exchange is None:
            offer = ", ".join(self._authenticator.offer(self.channel))
            return Rejected(f"mechanism {self.claimed_mechanism!r} is not offered, but {offer}")
        return self._exchange.respond(frame.binary(1))

    def _answer(self, result: Result) -> None:
        if wait := self._delay():
            self._output += outcome_frame(OUTCOME_AUTH)
            raise NotAuthenticated(f"too soon after wrong passwords of this user from there: {wait:.1f} s are left")
        if isinstance(result, Pending):
            if self._elsewhere is not None:
                self._checking = True
                self._elsewhere(functools.partial(self._compute, result), self._take_result)
                return
            result = result.compute()
        match result:
            case Challenge():
                self._output += challenge_frame(result.data)
            case Authenticated():
                if self._failures is not None:
                    self._failures.on_success(self.claimed_user, self.host)
                self._output += outcome_frame(OUTCOME_OK, result.data)
                self.user, self.mechanism = result.user, self.claimed_mechanism
                self.groups, self.token_end = result.groups, result.token_end
            case Rejected():
                if self._failures is not None and self._by_password:
                    self._failures.on_failure(self.claimed_user, self.host)
                self._output += outcome_frame(OUTCOME_AUTH)
                raise NotAuthenticated(result.reason)

    @property
    def _by_password(self) -> bool:
        """A password can be guessed, unlike a token or a certificate."""
        return bool(self.claimed_user) and (
            self.claimed_mechanism == "PLAIN" or self.claimed_mechanism.startswith("SCRAM-")
        )

    def _delay(self) -> float:
        """Seconds until this user may try again from this address."""
        if self._failures is None or not self._by_password:
            return 0.0
        return self._failures.wait(self.claimed_user, self.host)

    def _compute(self, pending: Pending) -> Authenticated | Rejected:
        """On another thread."""
        return Rejected("the client is gone") if self._closed else pending.compute()

    def _take_result(self, result: Authenticated | Rejected) -> None:
        if not self._closed:
            self._checking, self._result = False, result
            self.on_checked()
