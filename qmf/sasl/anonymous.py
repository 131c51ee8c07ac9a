"""ANONYMOUS (RFC 4505): no user. The optional trace information is neither sent nor used."""

from __future__ import annotations

from qmf.sasl.mechanism import OneMessageClient
from qmf.sasl.results import Authenticated, Result

#: Name of a user of ANONYMOUS.
ANONYMOUS_USER = "anonymous"


class AnonymousClient(OneMessageClient):
    """A client without a user."""

    name = "ANONYMOUS"

    def __init__(self) -> None:
        super().__init__(b"")


class AnonymousServer:
    """A server that lets everybody in.

    Attributes:
        claimed_user: see `ServerMechanism`.
    """

    claimed_user = ""

    def respond(self, response: bytes | None) -> Result:  # noqa: ARG002  # trace information
        """See `ServerMechanism`."""
        return Authenticated(ANONYMOUS_USER)
