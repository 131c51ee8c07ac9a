"""Addresses in rules for connections: one, or a range."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Callable
from typing import Self

import attrs

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

#: Finds the address of a host.
Resolver = Callable[[str], str]


def resolve(host: str) -> str:
    """The first address of a host.

    Raises:
        OSError: it has none.
    """
    return str(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)[0][4][0])


@attrs.frozen
class HostRange:
    """Addresses from `low` to `high`; None for all addresses."""

    low: Address | None = None
    high: Address | None = None

    @classmethod
    def parse(cls, text: str, resolver: Resolver = resolve) -> Self:
        """Of a rule's ``host``: a host, or two with a comma between them.

        Args:
            text: names or addresses; those of IPv6 may stand in brackets.
            resolver: finds the addresses of names.

        Raises:
            ValueError: what is wrong.
        """
        hosts = text.split(",")
        if len(hosts) > 2:
            raise ValueError(f"{text!r} is neither a host nor two with a comma between them")
        low, high = _address(hosts[0], resolver), _address(hosts[-1], resolver)
        if low.version != high.version:
            raise ValueError(f"{text!r}: one address is of IPv4, the other one of IPv6")
        return cls(low, high)

    def __contains__(self, address: Address) -> bool:
        if self.low is None or self.high is None:
            return True
        return address.version == self.low.version and int(self.low) <= int(address) <= int(self.high)

    def __str__(self) -> str:
        if self.low is None:
            return "all"
        return str(self.low) if self.low == self.high else f"{self.low},{self.high}"


def parse_address(text: str) -> Address | None:
    """The address of a client; None if it has none, as in a socket of the file system."""
    try:
        address = ipaddress.ip_address(text.strip("[]").partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return mapped or address


def _address(host: str, resolver: Resolver) -> Address:
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.ip_address(resolver(host).partition("%")[0])
    except (OSError, UnicodeError, ValueError) as error:
        raise ValueError(f"the host {host!r} has no address") from error
