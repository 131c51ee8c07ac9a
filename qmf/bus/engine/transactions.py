"""Transactional delivery states (AMQP 1.0, part 4.5) to and from proton's data objects. Part of `deliveries.py`.

All messages of a transaction have one of a few states, so their encodings are kept.
"""

from __future__ import annotations

import functools
from typing import Any

import attrs
import proton
from cproton import ffi, lib

#: Types of delivery states: the answer to the declaration of a transaction, and what happens within one.
DECLARED, TRANSACTIONAL = 0x33, 0x34

#: Bytes of the id of a transaction at most (the specification allows 32), and of a state whose meaning is kept.
_MAX_ID, _MAX_KEPT = 200, 256
#: The type of errors, as number and as symbol.
_ERROR = 0x1D
_ERROR_DESCRIPTORS = (_ERROR, "amqp:error:list")
_allocate = ffi.new_allocator(should_clear_after_alloc=False)


def write_state(
    delivery: Any,
    state: int,
    transaction: bytes,
    outcome: int | None = None,
    condition: str = "",
    description: str = "",
) -> None:
    """Set the local state of a delivery, a C object: the id of a transaction and, where given, an outcome in it.

    Args:
        delivery: which.
        state: type of the state.
        transaction, outcome, condition, description: see `encode_state`.
    """
    data = lib.pn_disposition_data(lib.pn_delivery_local(delivery))
    lib.pn_data_clear(data)
    encoded = encode_state(transaction, outcome, condition, description)
    lib.pn_data_decode(data, encoded, len(encoded))
    lib.pn_delivery_update(delivery, state)


def remote_state(delivery: Any) -> bytes:
    """The peer's state of a delivery, a C object, encoded."""
    data = lib.pn_disposition_data(lib.pn_delivery_remote(delivery))
    size = lib.pn_data_encoded_size(data)
    if size <= 0:
        return b""
    buffer = _allocate("char[]", size)
    return bytes(ffi.buffer(buffer, max(0, lib.pn_data_encode(data, buffer, size)))[:])


@functools.lru_cache(maxsize=256)
def encode_state(transaction: bytes, outcome: int | None = None, condition: str = "", description: str = "") -> bytes:
    """The id of a transaction and, where given, an outcome in it, encoded.

    Args:
        transaction: its id.
        outcome: type of the outcome's state; None for none.
        condition, description: error, for a rejection.
    """
    data = proton.Data()
    fields: list[Any] = [transaction]
    if outcome is not None:
        error: list[Any] = [proton.symbol(condition), *([description] if description else [])]
        fields.append(
            proton.Described(
                proton.ulong(outcome), [proton.Described(proton.ulong(_ERROR), error)] if condition else []
            )
        )
    data.put_object(fields)
    return bytes(data.encode())


@attrs.frozen
class TransactionalState:
    """What happened to a message in a transaction.

    Attributes:
        transaction: its id.
        outcome: type of the outcome's state; None if there is none.
        condition, description: the peer's error, of a rejection; else empty.
    """

    transaction: bytes
    outcome: int | None = None
    condition: str = ""
    description: str = ""


def decode_state(encoded: bytes) -> TransactionalState:
    """The reverse.

    Raises:
        ValueError: the state is not as the specification demands.
    """
    return _decode_kept(encoded) if len(encoded) <= _MAX_KEPT else _decode(encoded)


def _decode(encoded: bytes) -> TransactionalState:
    data = proton.Data()
    data.decode(encoded)
    data.rewind()
    fields = None if data.next() is None else data.get_object()
    if not isinstance(fields, list) or not fields or not isinstance(fields[0], bytes | memoryview):
        raise ValueError("a transactional state without the id of a transaction")
    transaction = bytes(fields[0])
    if len(transaction) > _MAX_ID:
        raise ValueError(f"the id of a transaction has {len(transaction)} bytes, {_MAX_ID} are allowed")
    if len(fields) == 1 or fields[1] is None:
        return TransactionalState(transaction)
    outcome = fields[1]
    if not isinstance(outcome, proton.Described) or not isinstance(outcome.descriptor, int):
        raise ValueError("a transactional state with an outcome that is not a described value")
    return TransactionalState(transaction, int(outcome.descriptor), *_read_error(outcome.value))


_decode_kept = functools.lru_cache(maxsize=256)(_decode)


def _read_error(fields: object) -> tuple[str, str]:
    """Condition and description of the error in an outcome; both empty where there is none."""
    error = fields[0] if isinstance(fields, list) and fields else None
    values = error.value if isinstance(error, proton.Described) and error.descriptor in _ERROR_DESCRIPTORS else None
    if not isinstance(values, list):
        return "", ""
    texts = [value if isinstance(value, str) else "" for value in (*values, "", "")[:2]]
    return str(texts[0]), str(texts[1])
