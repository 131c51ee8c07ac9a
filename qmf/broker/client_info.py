"""What the broker knows of a client, as a value: without the connection, which may be gone."""

from __future__ import annotations

from collections.abc import Mapping

import attrs


@attrs.frozen
class ClientInfo:
    """What is known of a client.

    Attributes:
        address: its address and port.
        container: its container id, or what names it in its protocol, or empty.
        user: the user that it has logged in as, or empty.
        mechanism: SASL mechanism that it used, or empty.
        properties: of its connection, such as `product`.
        protocol: by which it communicates, such as ``AMQP 1.0``; empty before it has logged in.
        groups: that its access token says the user belongs to.
        token_end: when its access token ends, in seconds since 1970; None if it has logged in otherwise.
        domain: name of the domain, for another broker to which this one has connected; empty for a client.
        bridge: name of the route of which that connection is; empty for others.
        local: our own address and port then; empty for a client.
    """

    address: str
    container: str = ""
    user: str = ""
    mechanism: str = ""
    properties: Mapping[str, object] = attrs.field(factory=dict)
    protocol: str = ""
    groups: frozenset[str] = frozenset()
    token_end: float | None = None
    domain: str = ""
    bridge: str = ""
    local: str = ""

    @property
    def proven_user(self) -> str:
        """The user; empty for a client that did not have to prove who it is."""
        return "" if self.mechanism in ("", "ANONYMOUS") else self.user

    @property
    def host(self) -> str:
        """The address without the port."""
        return self.address.rpartition(":")[0]


def format_address(name: object) -> str:
    """Host and port of a socket's address of the internet; "unknown" for anything else."""
    if not isinstance(name, tuple):
        return "unknown"
    host = f"[{name[0]}]" if ":" in name[0] else name[0]
    return f"{host}:{name[1]}"
