"""Search for a text in the values of objects."""

from __future__ import annotations

from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.protocol import Envelope, ObjectData, ObjectId, QueryRequest, TextSearch, What, decode, encode, texts_in
from qmf.schema import TYPES

DATA = ObjectData(
    object_id=ObjectId("org.example:queue:Orders", "agent"),
    values={
        "label": "Straße",
        "depth": 1234,
        "ratio": -0.5,
        "durable": True,
        "nothing": None,
        "arguments": {"max-Size": 77, "names": ["a", {"deep": "Needle"}]},
        "vhostRef": ObjectId("org.example:vhost:main", "agent"),
        "token": UUID(int=0xABC),
        "data": b"raw\xff",
    },
)


@pytest.mark.parametrize(
    "text",
    ["ORDERS", "straße", "23", "-0.5", "true", "MAX-size", "77", "needle", "vhost:MAIN", "abc", r"raw\xff", "queue:or"],
)
def test_what_contains_a_text(text: str) -> None:
    assert TextSearch(text).is_in(DATA)


@pytest.mark.parametrize("text", ["none", "label", "orders2", "0.51", "agent", "needles"])
def test_what_does_not(text: str) -> None:
    assert not TextSearch(text).is_in(DATA)


@given(
    st.text(max_size=3),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=5)
        | st.binary(max_size=3)
        | st.uuids(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
        max_leaves=4,
    ),
)
def test_the_representation_has_what_plain_texts_are_in(text: str, value: object) -> None:
    search = TextSearch(text)
    if search.is_plain and search.is_in_value(value):
        assert search.text in repr(value).lower()


@given(st.sampled_from(["uint64", "int8", "absTime", "float", "double", "bool"]), st.data())
def test_types_whose_values_cannot_contain_it_are_left_out(name: str, data: st.DataObject) -> None:
    kind = TYPES[name]
    values = {"float": st.floats(width=32), "double": st.floats(), "bool": st.booleans()}
    value = data.draw(values[name] if name in values else st.integers(kind.minimum, kind.maximum))
    (text,) = texts_in(value)
    start = data.draw(st.integers(0, len(text) - 1))
    part = text[start : data.draw(st.integers(start + 1, len(text)))]
    assert TextSearch(part).can_be_in(kind)
    assert not TextSearch("queue-1").can_be_in(kind)


def test_a_query_says_its_text() -> None:
    content = QueryRequest(what=What.OBJECT, text="Straße", limit=3)
    envelope = decode(encode(Envelope(content=content)))
    assert isinstance(envelope, Envelope)
    assert envelope.content == content
