"""The compiled part of the engine (`native.c`), where it is installed: what happens to every message, many in a call.

It calls proton's functions in the library that proton's Python package has loaded. Connections and links are
addresses there, as numbers.
"""

from __future__ import annotations

import functools
import importlib
import os
import struct
from collections.abc import Callable, Iterable
from typing import Any

import proton
from cproton import ffi, lib

from qmf.bus.frames.walker import VERSION

#: Set in the environment to do without.
NO_NATIVE = "QMF_NO_NATIVE"

#: Kinds of batches. Their items: delivery tag and data of messages; delivery tags of messages that the peer has
#: accepted and settled; tag and number of those that it has not settled; numbers of such as had an outcome before; for
#: changes of credit none; delivery tags of messages that it has accepted in a transaction (`Link.accepting`); those of
#: messages received that the peer has settled after they had an outcome.
MESSAGES, ACCEPTED, HELD, FORGOTTEN, FLOW, ACCEPTED_IN, CONFIRMED = range(1, 8)
#: Flags of links; see `native.c`.
HOLDS, SKIP, QUIET, TAGGED = 1, 2, 4, 8
#: Which changes of credit `feed` reports.
NO_FLOW, LOUD_FLOW, ALL_FLOW = range(3)

#: In the order of `struct functions`.
_FUNCTIONS = (
    "pn_collector_peek",
    "pn_collector_pop",
    "pn_event_type",
    "pn_event_delivery",
    "pn_event_link",
    "pn_delivery",
    "pn_delivery_tag",
    "pn_delivery_link",
    "pn_delivery_local",
    "pn_delivery_remote",
    "pn_disposition_data",
    "pn_data_clear",
    "pn_data_decode",
    "pn_data_encode",
    "pn_delivery_updated",
    "pn_delivery_aborted",
    "pn_delivery_readable",
    "pn_delivery_partial",
    "pn_delivery_settled",
    "pn_delivery_pending",
    "pn_delivery_remote_state",
    "pn_delivery_update",
    "pn_delivery_settle",
    "pn_link_is_receiver",
    "pn_link_current",
    "pn_link_recv",
    "pn_link_send",
    "pn_link_advance",
    "pn_link_credit",
    "pn_link_get_drain",
    "pn_session_outgoing_bytes",
    "pn_transport_capacity",
    "pn_transport_push",
    "pn_transport_pending",
    "pn_transport_peek",
    "pn_transport_pop",
)
#: Of the module that fits; see `VERSION` there.
_VERSION = 8
_TRANSACTIONAL = 0x34
_LOW_60 = (1 << 60) - 1
_ROW, _FLAGS = struct.Struct("=QII"), struct.Struct("=I")

#: A batch: kind, link, items.
Batch = tuple[int, Any, list[Any]]
#: What `feed` returns: batches, whether an event is left, the next delivery tag, how far the data was used, what proton
#: returned for bytes that it did not take, or None, and whether all was read and nothing is to be written.
Fed = tuple[list[Batch], bool, int, int, int | None, bool]


class Native:
    """The functions of the compiled module; they are described there."""

    def __init__(self, module: Any) -> None:
        self.feed, self.output = module.feed, module.output
        self.send, self.room, self.accept = module.send, module.room, module.accept
        self.send_at_once: Callable[..., bool] = module.send_at_once
        self.accept_at_once: Callable[..., bool] = module.accept_at_once
        self.read_at_once: Callable[..., bool | None] = module.read_at_once
        events = (proton.Event.DELIVERY.number, proton.Event.LINK_FLOW.number, proton.Event.TRANSPORT.number)
        addresses = [address(ffi.addressof(lib, name)) for name in _FUNCTIONS]
        module.bind(addresses, *events, int(proton.Delivery.ACCEPTED), _TRANSACTIONAL)


def link_table(links: Iterable[tuple[int, int, int]]) -> bytearray:
    """A table of the links of a connection, as the compiled functions see them.

    Args:
        links: address, number and flags of each, in the order of their addresses.
    """
    return bytearray(b"".join(_ROW.pack(*link) for link in links))


def set_flags(table: bytearray, place: int, flags: int) -> None:
    """Change the flags of the link at a place of a table."""
    _FLAGS.pack_into(table, place * _ROW.size + _ROW.size - _FLAGS.size, flags)


def address(pointer: Any) -> int:
    """The address of one of proton's C objects."""
    return int(ffi.cast("uintptr_t", pointer))


def number_of(delivery: Any) -> int:
    """A delivery as a number: its address, rotated, since the lowest bits of all addresses are the same."""
    found = address(delivery)
    return found >> 4 | (found & 15) << 60


def delivery_at(number: int) -> Any:
    """The delivery with a number."""
    return ffi.cast("pn_delivery_t *", (number & _LOW_60) << 4 | number >> 60)


@functools.cache
def native() -> Native | None:
    """The compiled module; None where it is not installed, or not wanted."""
    if os.environ.get(NO_NATIVE):
        return None
    try:
        module = importlib.import_module("qmf.bus.engine._native")
    except ImportError:
        return None
    return Native(module) if module.VERSION == _VERSION and module.WALKER == VERSION else None
