"""Who a client of STOMP is: by login and passcode, by its certificate, or nobody where everybody is let in."""

from __future__ import annotations

import functools
from collections.abc import Callable

from qmf.broker.logins import Logins
from qmf.sasl.channel import Channel
from qmf.sasl.mechanism import ServerMechanism
from qmf.sasl.results import Authenticated, Pending, Rejected, Result

OnAuthenticated = Callable[[Authenticated, str], None]
OnRejected = Callable[[str], None]


class StompLogin:
    """The login of one client: login and passcode are checked as by SASL's PLAIN."""

    def __init__(
        self, logins: Logins, channel: Channel, host: str, on_authenticated: OnAuthenticated, on_rejected: OnRejected
    ) -> None:
        """Begin with a client that has said nothing.

        Args:
            logins: of the broker.
            channel: to the client.
            host: of the client.
            on_authenticated: called with the result, and the mechanism.
            on_rejected: called with the reason, which is for the log.
        """
        self._logins = logins
        self._channel = channel
        self._host = host
        self._on_authenticated = on_authenticated
        self._on_rejected = on_rejected
        self._mechanism = ""
        self._exchange: ServerMechanism | None = None
        self._closed = False

    @property
    def claimed_user(self) -> str:
        """Who the client says it is; empty before it has said so."""
        return "" if self._exchange is None else self._exchange.claimed_user

    def begin(self, login: str | None, passcode: str | None) -> None:
        """The client has sent its frame to connect."""
        offer = self._logins.authenticator.offer(self._channel)
        name: str | None
        if login is None and passcode is None:
            name = next((name for name in ("EXTERNAL", "ANONYMOUS") if name in offer), None)
            response = b""
        else:
            name = "PLAIN" if "PLAIN" in offer else None
            response = b"\0".join((b"", (login or "").encode(), (passcode or "").encode()))
        if name is None:
            private = self._channel.private or login is None
            self._on_rejected(
                f"this broker wants another login than {'a password' if login is not None else 'none'}"
                if private
                else "passwords would be readable without TLS (--sasl-mechanisms may allow it)"
            )
            return
        self._mechanism = name
        self._exchange = self._logins.authenticator.start(name, self._channel)
        assert self._exchange is not None
        self._take(self._exchange.respond(response))

    def close(self) -> None:
        """The client is gone: the result of a check is ignored."""
        self._closed = True

    def _take(self, result: Result) -> None:
        failures, by_password = self._logins.failures, self._mechanism == "PLAIN" and bool(self.claimed_user)
        if by_password and (wait := failures.wait(self.claimed_user, self._host)):
            self._on_rejected(f"too soon after wrong passwords of this user from there: {wait:.1f} s are left")
            return
        match result:
            case Pending():
                self._logins.check_elsewhere(functools.partial(self._compute, result), self._take_result)
            case Authenticated():
                failures.on_success(self.claimed_user, self._host)
                self._on_authenticated(result, self._mechanism)
            case Rejected():
                if by_password:
                    failures.on_failure(self.claimed_user, self._host)
                self._on_rejected(result.reason)
            case _:
                self._on_rejected("the mechanism asks for more than STOMP can say")

    def _compute(self, pending: Pending) -> Authenticated | Rejected:
        """On another thread."""
        return Rejected("the client is gone") if self._closed else pending.compute()

    def _take_result(self, result: Authenticated | Rejected) -> None:
        if not self._closed:
            self._take(result)
