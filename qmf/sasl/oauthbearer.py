"""OAUTHBEARER (RFC 7628): an access token in place of a password, for channels that nobody else can read."""

from __future__ import annotations

from collections.abc import Callable

from qmf.sasl.mechanism import OneMessageClient, SaslError
from qmf.sasl.results import Challenge, Rejected, Result

_SEPARATOR = "\x01"


class OauthBearerClient(OneMessageClient):
    """A client with a token."""

    name = "OAUTHBEARER"

    def __init__(self, token: str, username: str = "", host: str = "") -> None:
        """Make the client of one exchange.

        Args:
            token: it.
            username: whom it wants to act for; empty for the token's user.
            host: of the server; empty to leave it out.
        """
        user = username.replace("=", "=3D").replace(",", "=2C")
        header = f"n,{'a=' + user if user else ''},"
        fields = [header, *([f"host={host}"] if host else ()), f"auth=Bearer {token}", "", ""]
        super().__init__(_SEPARATOR.join(fields).encode())

    def respond(self, challenge: bytes) -> bytes:
        """See `ClientMechanism`."""
        if not challenge:  # of servers that ask before they read the first message
            return self._message
        return _SEPARATOR.encode()


class OauthBearerServer:
    """A server that is sent a token.

    Attributes:
        claimed_user: see `ServerMechanism`.
    """

    def __init__(self, check: Callable[[str, str], Result]) -> None:
        """Make the server of one exchange.

        Args:
            check: says whose token it is, from the name whom the client wants to act for, or an empty one, and the
                token.
        """
        self.claimed_user = ""
        self._check = check

    def respond(self, response: bytes | None) -> Result:
        """See `ServerMechanism`."""
        if response is None:
            return Challenge(b"")
        try:
            user, token = _parse(response)
        except SaslError as error:
            return Rejected(str(error))
        self.claimed_user = user
        return self._check(user, token)


def _parse(message: bytes) -> tuple[str, str]:
    """User and token of a client's message."""
    try:
        header, *fields = message.decode().split(_SEPARATOR)
    except UnicodeDecodeError:
        raise SaslError("a message that is not UTF-8") from None
    parts = header.split(",")
    if len(parts) != 3 or parts[0] not in ("n", "y") or parts[2]:
        raise SaslError("malformed message")
    user = parts[1].removeprefix("a=").replace("=2C", ",").replace("=3D", "=")
    values = dict(field.partition("=")[::2] for field in fields if field)
    kind, _, token = values.get("auth", "").partition(" ")
    if kind.lower() != "bearer" or not token:
        raise SaslError("it sends no bearer token")
    return user, token
