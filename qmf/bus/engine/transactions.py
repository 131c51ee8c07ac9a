"""Transactional delivery states (AMQP 1.0, part 4.5) to and from proton's data objects. Part of `deliveries.py`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import proton
from cproton import (
    lib,
    pn_data_clear,
    pn_data_enter,
    pn_data_exit,
    pn_data_put_binary,
    pn_data_put_described,
    pn_data_put_list,
    pn_data_put_ulong,
)

#: Types of delivery states: the answer to the declaration of a transaction, and what happens within one.
DECLARED, TRANSACTIONAL = 0x33, 0x34

_wrap: Callable[[Any], proton.Delivery] = proton.Delivery.wrap


def write_state(delivery: Any, state: int, transaction: bytes, outcome: int | None = None) -> None:
    """Set the local state of a delivery, a C object: the id of a transaction and, where given, an outcome in it."""
    data = lib.pn_disposition_data(lib.pn_delivery_local(delivery))
    pn_data_clear(data)
    pn_data_put_list(data)
    pn_data_enter(data)
    pn_data_put_binary(data, transaction)
    if outcome is not None:
        pn_data_put_described(data)
        pn_data_enter(data)
        pn_data_put_ulong(data, outcome)
        pn_data_put_list(data)
        pn_data_exit(data)
    pn_data_exit(data)
    lib.pn_delivery_update(delivery, state)


def read_state(delivery: Any) -> tuple[bytes, int | None]:
    """The id of the transaction in the peer's state of a delivery, a C object, and the outcome in it, if there is one.

    Raises:
        ValueError: the state is not as the specification demands.
    """
    fields: Any = _wrap(delivery).remote.data
    if not isinstance(fields, list) or not fields or not isinstance(fields[0], bytes | memoryview):
        raise ValueError("a transactional state without the id of a transaction")
    outcome = fields[1] if len(fields) > 1 else None
    if outcome is None:
        return bytes(fields[0]), None
    if not isinstance(outcome, proton.Described) or not isinstance(outcome.descriptor, int):
        raise ValueError("a transactional state with an outcome that is not a described value")
    return bytes(fields[0]), int(outcome.descriptor)
