"""PLAIN (RFC 4616): name and password as they are, for channels that nobody else can read."""

from __future__ import annotations

from collections.abc import Callable

from qmf.sasl.mechanism import OneMessageClient
from qmf.sasl.results import Challenge, Rejected, Result


class PlainClient(OneMessageClient):
    """A client that sends its password."""

    name = "PLAIN"

    def __init__(self, username: str, password: str) -> None:
        super().__init__(b"\0" + username.encode() + b"\0" + password.encode())


class PlainServer:
    """A server that is sent a password.

    Attributes:
        claimed_user: see `ServerMechanism`.
    """

    def __init__(self, check: Callable[[str, str], Result]) -> None:
        """Make the server of one exchange.

        Args:
            check: says whether a user has this password.
        """
        self.claimed_user = ""
        self._check = check

    def respond(self, response: bytes | None) -> Result:
        """See `ServerMechanism`."""
        if response is None:
            return Challenge(b"")
        parts = response.split(b"\0")
        if len(parts) != 3:
            return Rejected("malformed response")
        try:
            authority, user, password = (part.decode() for part in parts)
        except UnicodeDecodeError:
            return Rejected("a name or password that is not UTF-8")
        self.claimed_user = user
        if not user or authority not in ("", user):
            return Rejected(f"it wants to act for user {authority!r}" if user else "it has no user name")
        return self._check(user, password)
