"""Network interfaces by name, as qpidd's `--interface` takes them."""

from __future__ import annotations

import fcntl
import socket
import struct

#: Linux: the IPv4 address of an interface.
_SIOCGIFADDR = 0x8915


class InterfaceError(Exception):
    """An interface has no address to listen on; the message names it."""


def address_of(host: str) -> str:
    """The address of an interface; anything but the name of one is returned as it is.

    Raises:
        InterfaceError: the interface has no IPv4 address.
    """
    if host not in (name for _, name in socket.if_nameindex()):
        return host
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as request:
        try:
            answer = fcntl.ioctl(request, _SIOCGIFADDR, struct.pack("256s", host.encode()[:15]))
        except OSError as error:
            raise InterfaceError(f"interface {host} has no IPv4 address: {error.strerror}") from error
    return socket.inet_ntoa(answer[20:24])
