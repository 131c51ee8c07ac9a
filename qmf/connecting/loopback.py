"""Whether an address to listen on is reached by other machines."""

from __future__ import annotations

import ipaddress


def is_loopback(host: str) -> bool:
    """True if only programs of this machine reach that address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
