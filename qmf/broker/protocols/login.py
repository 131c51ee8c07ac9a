"""Who a client is: by name and password, by its certificate, or by a mechanism."""

from __future__ import annotations

import asyncio
import enum
import functools
from typing import Protocol

from qmf.broker.client_info import format_address
from qmf.broker.logins import Logins
from qmf.sasl.channel import Channel
from qmf.sasl.mechanism import ServerMechanism
from qmf.sasl.results import Authenticated, Challenge, Pending, Rejected, Result

#: Answers of a client in one exchange; no mechanism needs more than two.
_MAX_ANSWERS = 10


class LoginRefusal(enum.Enum):
    """Why a client is not let in, as far as it learns that."""

    NOT_AUTHORIZED = enum.auto()  #: it proves nothing that is wanted here
    METHOD = enum.auto()  #: its mechanism is not offered
    CREDENTIALS = enum.auto()  #: user or password is wrong


class LoginOwner(Protocol):
    """Whose client logs in."""

    def on_challenge(self, data: bytes) -> None:
        """The client has to answer this."""

    def on_authenticated(self, result: Authenticated, mechanism: str) -> None:
        """The client is who it says."""

    def on_rejected(self, refusal: LoginRefusal, reason: str) -> None:
        """The client may not go on; the reason is for the log."""


class ClientLogin:
    """The login of one client, and its renewals."""

    def __init__(
        self, logins: Logins, owner: LoginOwner, channel: Channel, host: str, *, called: str = "method"
    ) -> None:
        """Begin with a client at `host` that has said nothing; its protocol has a name for mechanisms (`called`)."""
        self._logins = logins
        self._called = called
        self._owner = owner
        self._channel = channel
        self._host = host
        self._mechanism = ""
        self._exchange: ServerMechanism | None = None
        self._answers = 0
        self._closed = False

    def begin(self, username: str | None, password: bytes | None) -> None:
        """The client connects, with a user name and a password, or with neither."""
        channel = self._channel
        offer = self._logins.authenticator.offer(channel)
        if username is None and password is None:
            name = next((name for name in ("EXTERNAL", "ANONYMOUS") if name in offer), None)
            if name is None:
                self._owner.on_rejected(LoginRefusal.NOT_AUTHORIZED, "it has neither a user name nor a certificate")
                return
            self.begin_exchange(name, b"")
        elif "PLAIN" in offer:
            self.begin_exchange("PLAIN", b"\0".join((b"", (username or "").encode(), password or b"")))
        elif not channel.private:
            self._owner.on_rejected(
                LoginRefusal.NOT_AUTHORIZED, "passwords would be readable without TLS (--sasl-mechanisms may allow it)"
            )
        else:
            self._owner.on_rejected(LoginRefusal.NOT_AUTHORIZED, "this broker takes no passwords")

    def begin_exchange(self, method: str, data: bytes | None) -> None:
        """The client begins to authenticate itself by a SASL mechanism, perhaps again."""
        authenticator = self._logins.authenticator
        self._mechanism, self._answers = method, 0
        self._exchange = authenticator.start(method, self._channel)
        if self._exchange is None:
            offer = ", ".join(authenticator.offer(self._channel))
            self._owner.on_rejected(LoginRefusal.METHOD, f"{self._called} {method!r} is not offered, but {offer}")
            return
        self._take(self._exchange.respond(data))

    def answer(self, data: bytes | None) -> None:
        """The client has answered a challenge."""
        self._answers += 1
        if self._exchange is None or self._answers > _MAX_ANSWERS:
            self._owner.on_rejected(LoginRefusal.NOT_AUTHORIZED, "too many answers")
            return
        self._take(self._exchange.respond(data or b""))

    def close(self) -> None:
        """The client is gone: the results of checks are ignored."""
        self._closed = True

    @property
    def claimed_user(self) -> str:
        """Who the client says it is; empty before it has said so."""
        return "" if self._exchange is None else self._exchange.claimed_user

    def _take(self, result: Result) -> None:
        failures = self._logins.failures
        if self._by_password and (wait := failures.wait(self.claimed_user, self._host)):
            self._owner.on_rejected(
                LoginRefusal.CREDENTIALS,
                f"too soon after wrong passwords of this user from there: {wait:.1f} s are left",
            )
            return
        match result:
            case Challenge():
                self._owner.on_challenge(result.data)
            case Pending():
                self._logins.check_elsewhere(functools.partial(self._compute, result), self._take_result)
            case Authenticated():
                failures.on_success(self.claimed_user, self._host)
                self._owner.on_authenticated(result, self._mechanism)
            case Rejected():
                if self._by_password:
                    failures.on_failure(self.claimed_user, self._host)
                self._owner.on_rejected(LoginRefusal.CREDENTIALS, result.reason)

    @property
    def _by_password(self) -> bool:
        """A password can be guessed, unlike a token or a certificate."""
        return bool(self.claimed_user) and (self._mechanism == "PLAIN" or self._mechanism.startswith("SCRAM-"))

    def _compute(self, pending: Pending) -> Authenticated | Rejected:
        """On another thread."""
        return Rejected("the client is gone") if self._closed else pending.compute()

    def _take_result(self, result: Authenticated | Rejected) -> None:
        if not self._closed:
            self._take(result)


def peer_address(transport: asyncio.BaseTransport) -> str:
    """Host and port of a client."""
    return format_address(transport.get_extra_info("peername"))
