"""Addresses: the text that names a node, a subject and options, and its meaning. No I/O."""

from __future__ import annotations

from qmf.messaging.addresses.address import Address
from qmf.messaging.addresses.options import AddressOptions

__all__ = ["Address", "AddressOptions"]
