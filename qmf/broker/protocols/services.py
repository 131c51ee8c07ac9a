"""What the connections of all clients have of their broker."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from qmf.broker.logins import Logins
from qmf.broker.operations.operations import Operations
from qmf.broker.sessions import ClientSessions


@attrs.frozen
class ConnectionServices:
    """What all connections of clients share, whatever their protocol.

    Attributes:
        operations: of the broker.
        clients: of the broker.
        logins: who may log in, and by what.
        open_timeout: seconds that a client has for each step of its login.
        certificate: returns the broker's certificate as DER; None if it is not known.
    """

    operations: Operations
    clients: ClientSessions
    logins: Logins
    open_timeout: float
    certificate: Callable[[], bytes] | None

    def own_certificate(self) -> bytes | None:
        """The broker's certificate as DER; None if it is not known."""
        return None if self.certificate is None else self.certificate()
