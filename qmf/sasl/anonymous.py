"""ANONYMOUS (RFC 4505): no user. The optional trace information is neither sent nor used."""

from __future__ import annotations

from qmf.sasl.results import Authenticated, Result

#: Name of a user of ANONYMOUS.
ANONYMOUS_USER = "anonymous"


class AnonymousClient:
    """A client without a user."""

    name = "ANONYMOUS"

    def initial(self) -> bytes | None:
        """See `ClientMechanism`."""
        return b""

    def respond(self, challenge: bytes) -> bytes:  # noqa: ARG002  # of servers that ask before they read it
        """See `ClientMechanism`."""
        return b""

    def finish(self, data: bytes | None) -> None:
        """See `ClientMechanism`."""


class AnonymousServer:
    """A server that lets everybody in.

    Attributes:
        claimed_user: see `ServerMechanism`.
    """

    claimed_user = ""

    def respond(self, response: bytes | None) -> Result:  # noqa: ARG002  # trace information
        """See `ServerMechanism`."""
        return Authenticated(ANONYMOUS_USER)
