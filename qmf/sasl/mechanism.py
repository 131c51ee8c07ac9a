"""What every mechanism is, on both sides."""

from __future__ import annotations

from typing import Protocol

from qmf.errors import QmfError
from qmf.sasl.results import Result


class SaslError(QmfError):
    """An exchange cannot go on; the message says why, and never has a secret."""


class ClientMechanism(Protocol):
    """A client's side of one exchange."""

    @property
    def name(self) -> str:
        """As it is registered, such as ``SCRAM-SHA-256``."""

    def initial(self) -> bytes | None:
        """What is sent with the name; None for nothing, which differs from an empty response."""

    def respond(self, challenge: bytes) -> bytes:
        """The answer to a challenge.

        Raises:
            SaslError: the server's challenge is malformed, or not what it may send.
        """

    def finish(self, data: bytes | None) -> None:
        """The server says that the client is authenticated.

        Args:
            data: what it sent with that.

        Raises:
            SaslError: it does not prove that it knows the password, which it has to in this mechanism.
        """


class OneMessageClient:
    """A client's side of a mechanism in which it sends one message, and the server proves nothing."""

    name = ""

    def __init__(self, message: bytes) -> None:
        """Make the client of one exchange, with its message."""
        self._message = message

    def initial(self) -> bytes | None:
        """See `ClientMechanism`."""
        return self._message

    def respond(self, challenge: bytes) -> bytes:  # noqa: ARG002  # of servers that ask before they read it
        """See `ClientMechanism`."""
        return self._message

    def finish(self, data: bytes | None) -> None:
        """See `ClientMechanism`."""


class ServerMechanism(Protocol):
    """The server's side of one exchange."""

    @property
    def claimed_user(self) -> str:
        """Who the client says it is; empty before it has said so."""

    def respond(self, response: bytes | None) -> Result:
        """The answer to the client's response; the first one is None where it sent none with the name."""
