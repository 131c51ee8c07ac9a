"""Addresses: the text that names a node, a subject and options, and its meaning. No I/O."""

from __future__ import annotations

from qmf.messaging.addresses.address import Address
from qmf.messaging.addresses.options import AddressOptions
from qmf.messaging.addresses.parser import parse_map

__all__ = ["Address", "AddressOptions", "parse_map"]
