"""Who asks for an operation."""

from __future__ import annotations

from typing import Self

import attrs

from qmf.broker.nodes.observer import BrokerClient

#: `Principal.protocol` of programs in the broker's own process.
LOCAL = "local"


@attrs.frozen
class Principal:
    """Who asks for an operation.

    Attributes:
        user: name that it has logged in with; empty for none.
        address: where it comes from; empty for the broker itself.
        protocol: by which it asks, as in `ClientInfo`, or `LOCAL`; empty for the broker itself.
        client: what observers are told; None for the broker itself, and for the buses inside its process.
        groups: that its access token names.
    """

    user: str = ""
    address: str = ""
    protocol: str = ""
    client: BrokerClient | None = attrs.field(default=None, eq=False, repr=False)
    groups: frozenset[str] = frozenset()

    @classmethod
    def of(cls, client: BrokerClient) -> Self:
        """That of a client that has logged in."""
        info = client.info
        return cls(info.user, info.address, info.protocol, client, info.groups)

    def __str__(self) -> str:
        return f"user {self.user!r}" if self.user else self.address or "the broker"


#: The broker itself, as far as it does what its options say.
BROKER = Principal()
