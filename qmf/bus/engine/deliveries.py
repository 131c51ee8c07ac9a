"""Deliveries of an engine: transfers are joined, limits enforced, outcomes sent and received.

Part of `engine.py`, which owns the links. What happens for every message calls proton's C library (`lib`) directly: its
Python objects would take several times as long as everything else. They are used only to read and write errors, which
is rare.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import proton
from cproton import ffi, lib

from qmf.bus.engine.events import Delivery, EngineEvent, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome

_OUTCOMES: dict[int, Outcome] = {
    int(proton.Delivery.ACCEPTED): Outcome.ACCEPTED,
    int(proton.Delivery.REJECTED): Outcome.REJECTED,
    int(proton.Delivery.RELEASED): Outcome.RELEASED,
    int(proton.Delivery.MODIFIED): Outcome.MODIFIED,
}
_STATES = {outcome: state for state, outcome in _OUTCOMES.items()}
#: A proton object of a C object.
_wrap: Callable[[Any], proton.Delivery] = proton.Delivery.wrap
_ACCEPTED = _STATES[Outcome.ACCEPTED]

#: Transfers up to this size are read through one buffer per engine; larger ones get a buffer of their own.
_BUFFER = 16 * 1024
_allocate = ffi.new_allocator(should_clear_after_alloc=False)


class Deliveries:
    """The deliveries on all links of one engine."""

    def __init__(
        self, limit: int, emit: Callable[[EngineEvent], None], detach: Callable[[Link, str, str], None]
    ) -> None:
        """Args:

        limit: largest message that is accepted, in bytes.
        emit: called with each event.
        detach: ends a link whose peer exceeds the limit: link, condition, description.
        """
        self._limit = limit
        self._emit = emit
        self._detach = detach
        self._numbers = itertools.count(1)
        # The tag of a delivery must be unique among the unsettled ones of its link; proton copies it.
        self._tag = bytearray(8)
        self._tag_struct = ffi.new("pn_bytes_t *")
        self._tag_start = self._tag_struct.start = ffi.from_buffer(self._tag)
        self._tag_struct.size = len(self._tag)
        self._buffer: Any = None

    def send(self, link: Link, data: bytes, *, settled: bool) -> int:
        """See `Engine.send`."""
        delivery_tag = next(self._numbers)
        self._tag[:] = b"%08x" % (delivery_tag & 0xFFFFFFFF)
        impl = link.impl
        delivery = lib.pn_delivery(impl, self._tag_struct[0])
        lib.pn_link_send(impl, data, len(data))
        lib.pn_link_advance(impl)
        if settled or link.presettled:
            lib.pn_delivery_settle(delivery)
        else:
            link.sent[delivery] = delivery_tag
        return delivery_tag

    def settle(self, link: Link, delivery_tag: int, outcome: Outcome, condition: str, description: str) -> None:
        """See `Engine.settle`."""
        delivery = link.received.pop(delivery_tag, None)
        if delivery is None:
            return
        if outcome is Outcome.ACCEPTED:
            lib.pn_delivery_update(delivery, _ACCEPTED)
            lib.pn_delivery_settle(delivery)
        else:
            _settle(delivery, outcome, condition, description)

    def on_changed(self, link: Link | None, delivery: Any) -> None:
        """Something happened to a delivery; `link` is None when the engine has forgotten the link."""
        if link is None or link.detached:
            # Nothing waits for it any more. A message settled without an outcome would count as accepted.
            if lib.pn_link_is_receiver(lib.pn_delivery_link(delivery)) and not lib.pn_delivery_local_state(delivery):
                lib.pn_delivery_update(delivery, _STATES[Outcome.RELEASED])
            lib.pn_delivery_settle(delivery)
        elif link.is_sender:
            self._on_outcome(link, delivery)
        else:
            self._on_transfer(link, delivery)

    def _on_outcome(self, link: Link, delivery: Any) -> None:
        if not lib.pn_delivery_updated(delivery):
            return
        outcome = _OUTCOMES.get(lib.pn_delivery_remote_state(delivery))
        if outcome is None and not lib.pn_delivery_settled(delivery):
            return
        delivery_tag = link.sent.pop(delivery, None)
        if delivery_tag is None:
            return
        if outcome is Outcome.REJECTED and (condition := _wrap(delivery).remote.condition):
            event = OutcomeReceived(link, delivery_tag, outcome, condition.name, condition.description or "")
        else:
            # Settled without an outcome: the peer has the message.
            event = OutcomeReceived(link, delivery_tag, outcome or Outcome.ACCEPTED)
        lib.pn_delivery_settle(delivery)
        self._emit(event)

    def _on_transfer(self, link: Link, delivery: Any) -> None:
        impl = link.impl
        if lib.pn_delivery_aborted(delivery):
            link.chunks.clear()
            link.chunks_size = 0
            lib.pn_delivery_settle(delivery)
            lib.pn_link_flow(impl, 1)
            return
        if not lib.pn_delivery_readable(delivery) or lib.pn_link_current(impl) != delivery:
            return
        data = b""
        if size := lib.pn_delivery_pending(delivery):
            data = self._read(impl, size)
        if link.chunks or link.chunks_size + len(data) > self._limit or lib.pn_delivery_partial(delivery):
            whole = self._join(link, delivery, data)
            if whole is None:
                return
            data = whole
        lib.pn_link_advance(impl)
        if lib.pn_delivery_settled(delivery):
            lib.pn_delivery_settle(delivery)
            self._emit(Delivery(link, None, data))
        else:
            delivery_tag = next(self._numbers)
            link.received[delivery_tag] = delivery
            self._emit(Delivery(link, delivery_tag, data))

    def _read(self, impl: Any, size: int) -> bytes:
        buffer = self._buffer if size <= _BUFFER else None
        if buffer is None:
            buffer = _allocate("char[]", max(size, _BUFFER))
            if size <= _BUFFER:
                self._buffer = buffer
        count: int = lib.pn_link_recv(impl, buffer, size)
        data: bytes = ffi.buffer(buffer, max(0, count))[:]
        return data

    def _join(self, link: Link, delivery: Any, data: bytes) -> bytes | None:
        """Add a transfer to the message that is being received; returns the message when it is complete."""
        link.chunks.append(data)
        link.chunks_size += len(data)
        if link.chunks_size > self._limit:
            error = ("amqp:link:message-size-exceeded", f"messages may have {self._limit} bytes, this one has more")
            _settle(delivery, Outcome.REJECTED, *error)
            self._detach(link, *error)
            return None
        if lib.pn_delivery_partial(delivery):
            return None
        whole = b"".join(link.chunks)
        link.chunks.clear()
        link.chunks_size = 0
        return whole


def _settle(impl: Any, outcome: Outcome, condition: str, description: str) -> None:
    delivery = _wrap(impl)
    if condition:
        delivery.local.condition = proton.Condition(condition, description)
    delivery.update(_STATES[outcome])
    delivery.settle()
