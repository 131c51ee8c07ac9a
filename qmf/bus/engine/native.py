"""The compiled part of the engine (`batches.c`), where it is installed: what happens to every message in one call.

It calls proton's functions in the library that proton's Python package has loaded. Links and deliveries are addresses
there, as numbers.
"""

from __future__ import annotations

import functools
import importlib
import os
import struct
import threading
from collections.abc import Iterable
from typing import Any

import proton
from cproton import ffi, lib

#: Set in the environment to do without.
NO_NATIVE = "QMF_NO_NATIVE"

#: Kinds of records; see `batches.c`.
MESSAGE, SETTLED_MESSAGE, OUTCOME, HELD_OUTCOME, FLOW = range(1, 6)
#: Flags of links; see there.
HOLDS, SKIP = 1, 2

#: In the order of `struct functions`.
_FUNCTIONS = (
    "pn_collector_peek",
    "pn_collector_pop",
    "pn_event_type",
    "pn_event_delivery",
    "pn_event_link",
    "pn_delivery",
    "pn_delivery_link",
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
    "pn_session_outgoing_bytes",
    "pn_transport_pending",
    "pn_transport_peek",
    "pn_transport_pop",
)
#: Of the module that fits; see `version` there.
_VERSION = 4
_TRANSACTIONAL = 0x34
_RECORD = struct.Struct("=IIQII")
#: Records of one call, and bytes of their messages: a read of the socket brings no more than that in most cases.
_RECORDS, _BUFFER = 256, 64 * 1024


class Native:
    """The functions of the compiled module."""

    def __init__(self, module: Any) -> None:
        self._ffi = module.ffi
        self._lib = module.lib
        self._scratch = _Scratch(self._ffi)
        self.send, self.readiness = self._lib.send_message, self._lib.readiness
        self.accept, self.accept_all = self._lib.accept_message, self._lib.accept_all
        addresses = [address(ffi.addressof(lib, name)) for name in _FUNCTIONS]
        accepted = int(proton.Delivery.ACCEPTED)
        events = (proton.Event.DELIVERY.number, proton.Event.LINK_FLOW.number, proton.Event.TRANSPORT.number)
        self._lib.bind(addresses, *events, accepted, _TRANSACTIONAL)

    def link_table(self, links: Iterable[tuple[int, int, int]]) -> Any:
        """A table of the links of a connection, which `collect` needs; its rows have `number` and `flags`.

        Args:
            links: address, number and flags of each.
        """
        return self._ffi.new("link_t[]", sorted(links))

    def collect(
        self, collector: int, links: Any, limit: int, *, flow: bool
    ) -> tuple[Iterable[tuple[int, ...]], Any, bool]:
        """Take simple events. The result is valid until the next call in this thread.

        Args:
            collector: its address.
            links: the table of `link_table`.
            limit: bytes of the largest message that is accepted.
            flow: report changes of credit.

        Returns:
            records (number of the link, kind, delivery, offset and size of the message), the bytes of the messages, and
            whether an event is left that is not simple.
        """
        scratch = self._scratch
        records, buffer, more = scratch.records, scratch.buffer, scratch.more
        count = self._lib.collect(collector, links, len(links), records, _RECORDS, buffer, _BUFFER, limit, flow, more)
        if not count:
            return (), scratch.bytes, bool(more[0])
        return _RECORD.iter_unpack(scratch.rows[: count * _RECORD.size]), scratch.bytes, bool(more[0])

    def output(self, transport: int, collector: int) -> tuple[bytes, bool, bool]:
        """Take bytes for the peer, without the events that proton raises for its own output.

        Args:
            transport, collector: their addresses.

        Returns:
            some or all of the bytes, whether an event is left, and whether bytes may be left.
        """
        scratch = self._scratch
        size = self._lib.output(transport, collector, scratch.buffer, _BUFFER, scratch.more)
        return scratch.bytes[:size], bool(scratch.more[0]), size == _BUFFER


class _Scratch(threading.local):
    """Where records and messages are put by one call; a thread has its own, since others run while C code does."""

    def __init__(self, ffi: Any) -> None:
        self.records = ffi.new("record_t[]", _RECORDS)
        self.buffer = ffi.new("char[]", _BUFFER)
        self.more = ffi.new("int *")
        self.rows = ffi.buffer(self.records)
        self.bytes = ffi.buffer(self.buffer)


def address(pointer: Any) -> int:
    """The address of one of proton's C objects."""
    return int(ffi.cast("uintptr_t", pointer))


def delivery_at(number: int) -> Any:
    """The delivery at an address."""
    return ffi.cast("pn_delivery_t *", number)


@functools.cache
def native() -> Native | None:
    """The compiled module; None where it is not installed, or not wanted."""
    if os.environ.get(NO_NATIVE):
        return None
    try:
        module = importlib.import_module("qmf.bus.engine._batches")
    except ImportError:
        return None
    return Native(module) if module.lib.version() == _VERSION else None
