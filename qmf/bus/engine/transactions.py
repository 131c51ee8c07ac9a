"""Transactional delivery states (AMQP 1.0, part 4.5) to and from proton's data objects. Part of `deliveries.py`.

All messages of a transaction have one of a few states, so their encodings are kept.
"""

from __future__ import annotations

import functools
from typing import Any

import proton
from cproton import ffi, lib

#: Types of delivery states: the answer to the declaration of a transaction, and what happens within one.
DECLARED, TRANSACTIONAL = 0x33, 0x34

#: Bytes of a state at most; the specification allows ids of 32 bytes.
_MAX_STATE = 256
_allocate = ffi.new_allocator(should_clear_after_alloc=False)


def write_state(delivery: Any, state: int, transaction: bytes, outcome: int | None = None) -> None:
    """Set the local state of a delivery, a C object: the id of a transaction and, where given, an outcome in it."""
    data = lib.pn_disposition_data(lib.pn_delivery_local(delivery))
    lib.pn_data_clear(data)
    encoded = encode_state(transaction, outcome)
    lib.pn_data_decode(data, encoded, len(encoded))
    lib.pn_delivery_update(delivery, state)


def read_state(delivery: Any) -> tuple[bytes, int | None]:
    """The id of the transaction in the peer's state of a delivery, a C object, and the outcome in it, if there is one.

    Raises:
        ValueError: the state is not as the specification demands.
    """
    return decode_state(remote_state(delivery))


def remote_state(delivery: Any) -> bytes:
    """The peer's state of a delivery, a C object, encoded."""
    data = lib.pn_disposition_data(lib.pn_delivery_remote(delivery))
    buffer = _allocate("char[]", _MAX_STATE)
    size = lib.pn_data_encode(data, buffer, _MAX_STATE)
    return bytes(ffi.buffer(buffer, max(0, size))[:])


@functools.lru_cache(maxsize=256)
def encode_state(transaction: bytes, outcome: int | None = None) -> bytes:
    """The id of a transaction and, where given, an outcome in it, encoded."""
    data = proton.Data()
    fields: list[Any] = [transaction]
    if outcome is not None:
        fields.append(proton.Described(proton.ulong(outcome), []))
    data.put_object(fields)
    return bytes(data.encode())


@functools.lru_cache(maxsize=256)
def decode_state(encoded: bytes) -> tuple[bytes, int | None]:
    """The reverse; errors as of `read_state`."""
    data = proton.Data()
    data.decode(encoded)
    data.rewind()
    fields = None if data.next() is None else data.get_object()
    if not isinstance(fields, list) or not fields or not isinstance(fields[0], bytes | memoryview):
        raise ValueError("a transactional state without the id of a transaction")
    transaction = bytes(fields[0])
    if len(fields) == 1 or fields[1] is None:
        return transaction, None
    outcome = fields[1]
    if not isinstance(outcome, proton.Described) or not isinstance(outcome.descriptor, int):
        raise ValueError("a transactional state with an outcome that is not a described value")
    return transaction, int(outcome.descriptor)
