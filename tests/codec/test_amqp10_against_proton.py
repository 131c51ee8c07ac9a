"""Our encodings and those of Qpid Proton agree: on captured messages, and on invented values in both directions."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import proton
import pytest
from hypothesis import given
from support import wire
from support.vectors import NAMES, Vector, parametrized

from qmf.codec import Message, Section, amqp10, decode_message, encode_message
from qmf.codec.message import DEFAULT_PRIORITY

FIELDS = {
    "durable": "durable",
    "first_acquirer": "first_acquirer",
    "delivery_count": "delivery_count",
    "to": "address",
    "subject": "subject",
    "reply_to": "reply_to",
    "correlation_id": "correlation_id",
    "message_id": "id",
    "content_type": "content_type",
}


def plain(value: Any) -> Any:
    """A value of proton without its wrappers."""
    if isinstance(value, dict):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, memoryview):
        return bytes(value)
    if isinstance(value, UUID):
        return UUID(bytes=bytes(value.bytes))
    kinds: tuple[type[Any], ...] = (bool, int, float, str, bytes)
    return next((kind(value) for kind in kinds if isinstance(value, kind)), value)


def decoded_by_proton(data: bytes) -> Any:
    message = proton.Message()
    message.decode(data)
    return message


@parametrized(NAMES)
def test_captured_messages_mean_the_same_to_both(name: str) -> None:
    data = Vector(name).data
    ours = decode_message(data, text=False)
    theirs = decoded_by_proton(data)
    for mine, other in FIELDS.items():
        # Proton says "", None, or a symbol that reads "None" for what is absent.
        value = plain(getattr(theirs, other))
        assert (getattr(ours, mine) or None) == (None if value in ("", "None") else value or None), mine
    assert (ours.ttl or 0) == theirs.ttl
    assert (DEFAULT_PRIORITY if ours.priority is None else ours.priority) == theirs.priority
    assert ours.application_properties == plain(theirs.properties or {})
    assert ours.body == plain(theirs.body)


def data_of(value: object) -> bytes:
    data = proton.Data()
    data.put_object(value)
    encoded: bytes = data.encode()
    return encoded


@pytest.mark.slow
@given(value=wire.values())
def test_proton_reads_what_we_write(value: object) -> None:
    data = proton.Data()
    data.decode(amqp10.encode(value))
    data.rewind()
    data.next()
    assert plain(data.get_object()) == value


@pytest.mark.slow
@given(value=wire.values(keys=wire.TEXTS))
def test_we_read_what_proton_writes(value: object) -> None:
    encoded = data_of(_proton_value(value))
    assert amqp10.decode(encoded) == (value, len(encoded))


def _proton_value(value: Any) -> Any:
    """The value with numbers over 63 bits in proton's wrapper."""
    if isinstance(value, dict):
        return {key: _proton_value(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_proton_value(item) for item in value]
    return proton.ulong(value) if type(value) is int and value >= 2**63 else value


def array(kind: int, *items: Any) -> Any:
    undescribed: Any = proton.UNDESCRIBED
    return proton.Array(undescribed, kind, *items)


@pytest.mark.parametrize(
    "value",
    [
        array(proton.Data.INT, 1, 2, 300),
        array(proton.Data.STRING, "a", "bc"),
        array(proton.Data.BOOL, True, False),
        array(proton.Data.SYMBOL, proton.symbol("a")),
    ],
)
def test_arrays_of_proton(value: Any) -> None:
    assert amqp10.decode(data_of(value))[0] == [plain(item) for item in value.elements]


def test_a_message_with_everything() -> None:
    ours = Message(
        durable=True,
        ttl=1.5,
        to="node",
        subject="key",
        reply_to="node/key",
        correlation_id=UUID(int=7),
        user_id=b"me",
        content_type="amqp/map",
        application_properties={"a": 1, "b": "x"},
        message_annotations={"x-opt": 1},
        section=Section.VALUE,
        body={"k": [1, 2.5, None, True]},
    )
    theirs = decoded_by_proton(encode_message(ours))
    assert (theirs.durable, theirs.ttl, theirs.address, theirs.subject) == (True, 1.5, "node", "key")
    assert (theirs.reply_to, theirs.correlation_id, theirs.user_id) == ("node/key", UUID(int=7), b"me")
    assert (theirs.content_type, plain(theirs.properties)) == ("amqp/map", {"a": 1, "b": "x"})
    assert plain(theirs.annotations) == {"x-opt": 1}
    assert plain(theirs.body) == {"k": [1, 2.5, None, True]}
