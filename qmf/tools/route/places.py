"""Where brokers are: the addresses that users write, and those that links have."""

from __future__ import annotations

import socket

import attrs

from qmf.connecting import BrokerTarget


@attrs.frozen
class BrokerPlace:
    """Where a broker is.

    Attributes:
        host, port: of the broker.
        tls: the address asks for TLS.
        username, password: to log in with, or empty.
    """

    host: str
    port: int
    tls: bool = False
    username: str = ""
    password: str = attrs.field(default="", repr=False)

    @classmethod
    def of(cls, address: str) -> BrokerPlace:
        """That of an address.

        Raises:
            UrlError: it is none.
        """
        url = BrokerTarget.of(address).url
        return cls(url.host, url.port, url.tls, url.username or "", url.password or "")

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def is_at(self, host: str, port: int) -> bool:
        """Another name may stand for the same machine."""
        return (host, port) == (self.host, self.port) or bool(_addresses(host, port) & _addresses(self.host, self.port))


def _addresses(host: str, port: int) -> frozenset[object]:
    try:
        return frozenset(item[4] for item in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
    except OSError:  # unknown here, though perhaps not to the broker
        return frozenset()
