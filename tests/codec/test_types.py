"""Schema types to encodings."""

from __future__ import annotations

from uuid import UUID

import pytest

from qmf.codec import Float32, Int8, Int64, UInt16, UInt32, UInt64, amqp10, wrap_value
from qmf.schema.types import TYPES


@pytest.mark.parametrize(
    ("type_name", "value", "kind"),
    [
        ("uint16", 5, UInt16),
        ("int8", -5, Int8),
        ("hilo32", 5, UInt32),
        ("count64", 5, UInt64),
        ("mmaTime", 5, UInt64),
        ("absTime", 5, Int64),
        ("deltaTime", 5, UInt64),
        ("float", 1.5, Float32),
        ("double", 1, float),
        ("bool", True, bool),
        ("sstr", "a", str),
        ("uuid", UUID(int=1), UUID),
        ("map", {"a": 1}, dict),
        ("list", [1], list),
        ("uint8", None, type(None)),
    ],
)
def test_values_get_the_width_of_their_type(type_name: str, value: object, kind: type) -> None:
    wrapped = wrap_value(TYPES[type_name], value)
    assert type(wrapped) is kind
    assert wrapped == value


@pytest.mark.parametrize("item", [item for item in TYPES.values() if item.is_integer], ids=lambda item: item.name)
def test_every_integer_type_carries_its_whole_range(item: object) -> None:
    kind = TYPES[getattr(item, "name", "")]
    for value in (kind.minimum, kind.maximum):
        assert amqp10.decode(amqp10.encode(wrap_value(kind, value)))[0] == value
