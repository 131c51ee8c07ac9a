"""What SASL has to know of a connection, from the transport of asyncio that carries it."""

from __future__ import annotations

import asyncio
import ipaddress
import ssl

from qmf.sasl.channel import Channel
from qmf.sasl.external import certificate_user


def client_channel(transport: asyncio.BaseTransport) -> Channel:
    """The channel of a client."""
    tls = _tls(transport)
    return Channel(
        encrypted=tls is not None,
        local=_is_local(transport),
        server_certificate=None if tls is None else tls.getpeercert(binary_form=True),
    )


def server_channel(transport: asyncio.BaseTransport, certificate: bytes | None) -> Channel:
    """The channel of a server.

    Args:
        transport: it.
        certificate: of the server, as DER; None if it is not known.
    """
    tls = _tls(transport)
    return Channel(
        encrypted=tls is not None,
        local=_is_local(transport),
        server_certificate=None if tls is None else certificate,
        client_name="" if tls is None else certificate_user(tls.getpeercert()),
    )


def _tls(transport: asyncio.BaseTransport) -> ssl.SSLObject | None:
    found: ssl.SSLObject | None = transport.get_extra_info("ssl_object")
    return found


def _is_local(transport: asyncio.BaseTransport) -> bool:
    """Whether the peer is on this machine."""
    if transport.get_extra_info("socket") is None:
        return True  # within this process
    peer = transport.get_extra_info("peername")
    if not isinstance(peer, tuple) or not peer:
        return isinstance(peer, str)  # a socket in the file system has a path, or an empty name
    try:
        address = ipaddress.ip_address(str(peer[0]).partition("%")[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
