"""Outcomes of messages, to and from proton's states of deliveries. Part of `deliveries.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import proton
from cproton import ffi, lib

from qmf.bus.engine.values import Outcome

OUTCOMES: dict[int, Outcome] = {
    int(proton.Delivery.ACCEPTED): Outcome.ACCEPTED,
    int(proton.Delivery.REJECTED): Outcome.REJECTED,
    int(proton.Delivery.RELEASED): Outcome.RELEASED,
    int(proton.Delivery.MODIFIED): Outcome.MODIFIED,
}
STATES = {outcome: state for state, outcome in OUTCOMES.items()}
#: A proton object of a C object.
wrap: Callable[[Any], proton.Delivery] = proton.Delivery.wrap
_allocate = ffi.new_allocator(should_clear_after_alloc=False)


def read_annotations(delivery: Any) -> bytes:
    """The message annotations of the peer's outcome `modified`, encoded; empty where there are none."""
    data = lib.pn_disposition_annotations(lib.pn_delivery_remote(delivery))
    size = lib.pn_data_encoded_size(data)
    if size <= 0:
        return b""
    buffer = _allocate("char[]", size)
    return bytes(ffi.buffer(buffer, max(0, lib.pn_data_encode(data, buffer, size)))[:])


def update(
    impl: Any, outcome: Outcome, condition: str, description: str, *, failed: bool = False, undeliverable: bool = False
) -> proton.Delivery:
    """Report an outcome other than acceptance."""
    delivery = wrap(impl)
    if condition:
        delivery.local.condition = proton.Condition(condition, description)
    if outcome is Outcome.MODIFIED:
        delivery.local.failed = failed
        delivery.local.undeliverable = undeliverable
    delivery.update(STATES[outcome])
    return delivery
