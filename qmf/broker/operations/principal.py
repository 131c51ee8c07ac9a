"""Who asks for an operation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Self

import attrs

from qmf.broker.nodes.observed_clients import BrokerClient

#: `Principal.protocol` of programs in the broker's own process.
LOCAL = "local"

_USER, _ADDRESS, _PROTOCOL, _GROUPS = "qmf.user", "qmf.address", "qmf.protocol", "qmf.groups"


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

    @property
    def lasting(self) -> Self:
        """Who it is without its client, for what outlasts that.

        The groups that its token named stay: what was created with their rights keeps them, as the user's name, until
        it is deleted or the rules change. Whether the user still is in them cannot be asked once the token has ended.
        """
        return type(self)(self.user, self.address, self.protocol, groups=self.groups)

    @property
    def fields(self) -> dict[str, object]:
        """What the store keeps of it, beside the properties of what it has created: `split_stored` reads it."""
        return {_USER: self.user, _ADDRESS: self.address, _PROTOCOL: self.protocol, _GROUPS: sorted(self.groups)}

    def __str__(self) -> str:
        return f"user {self.user!r}" if self.user else self.address or "the broker"


#: The broker itself, as far as it does what its options say.
BROKER = Principal()


def split_stored(fields: Mapping[str, object]) -> tuple[dict[str, object], Principal]:
    """What the store has of something that was created, as its properties and its creator (`Principal.fields`)."""
    user, address, protocol = (str(fields.get(key, "")) for key in (_USER, _ADDRESS, _PROTOCOL))
    found = fields.get(_GROUPS)
    groups = frozenset(str(name) for name in found) if isinstance(found, Sequence) else frozenset()
    properties = {key: value for key, value in fields.items() if key not in (_USER, _ADDRESS, _PROTOCOL, _GROUPS)}
    return properties, Principal(user, address, protocol, groups=groups)
