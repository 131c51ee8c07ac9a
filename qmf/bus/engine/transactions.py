"""Transactional delivery states (AMQP 1.0, part 4.5) to and from proton's data objects. Part of `deliveries.py`."""

from __future__ import annotations

from typing import Any

from cproton import (
    PN_BINARY,
    PN_DESCRIBED,
    PN_LIST,
    PN_NULL,
    PN_ULONG,
    lib,
    pn_data_clear,
    pn_data_enter,
    pn_data_exit,
    pn_data_get_binary,
    pn_data_get_list,
    pn_data_get_ulong,
    pn_data_next,
    pn_data_put_binary,
    pn_data_put_described,
    pn_data_put_list,
    pn_data_put_ulong,
    pn_data_rewind,
    pn_data_type,
)

#: Types of delivery states: the answer to the declaration of a transaction, and what happens within one.
DECLARED, TRANSACTIONAL = 0x33, 0x34


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
    data = lib.pn_disposition_data(lib.pn_delivery_remote(delivery))
    pn_data_rewind(data)
    pn_data_next(data)
    fields = pn_data_get_list(data) if pn_data_type(data) == PN_LIST else 0
    pn_data_enter(data)
    pn_data_next(data)
    if not fields or pn_data_type(data) != PN_BINARY:
        raise ValueError("a transactional state without the id of a transaction")
    transaction = bytes(pn_data_get_binary(data))
    pn_data_next(data)
    if fields == 1 or pn_data_type(data) == PN_NULL:
        return transaction, None
    described = pn_data_type(data) == PN_DESCRIBED
    pn_data_enter(data)
    pn_data_next(data)
    if not described or pn_data_type(data) != PN_ULONG:
        raise ValueError("a transactional state with an outcome that is not a described value")
    return transaction, int(pn_data_get_ulong(data))
