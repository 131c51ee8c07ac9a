"""Orders of objects: places, and how a query says them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.codec import amqp010
from qmf.errors import ProtocolError
from qmf.protocol import (
    Envelope,
    ObjectsResponse,
    OrderKey,
    QueryRequest,
    What,
    decode,
    encode,
    encode_correlated,
    place_of,
)
from qmf.protocol.ordering import order_from_list, order_to_list

KEYS = st.builds(OrderKey, st.text(max_size=9), st.booleans(), st.booleans(), st.booleans())
VALUES: st.SearchStrategy[object] = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary() | st.just([])
)


def test_orders_come_back_and_strange_ones_are_skipped_or_refused() -> None:
    order = (OrderKey("a"), OrderKey("b", True), OrderKey("c", natural=True), OrderKey("d", True, True, True))
    assert order_from_list(order_to_list(order)) == order
    assert order_from_list([["a", "sideways"]]) == (OrderKey("a"),)
    strange: list[list[object]] = [[[]], [[1]], [["a", 1]], ["a"]]
    for wrong in strange:
        with pytest.raises(ProtocolError, match="_order"):
            order_from_list(wrong)


@given(KEYS, st.lists(VALUES, max_size=9))
def test_values_of_any_types_have_an_order(key: OrderKey, values: list[object]) -> None:
    places = sorted(place_of([key], {key.name: value}.get) for value in values)
    assert [place[0][0] for place in places] == sorted(place[0][0] for place in places)


@given(st.lists(st.integers() | st.text(), max_size=9))
def test_descending_is_the_other_way_round_for_values_of_one_kind(values: list[object]) -> None:
    for kind in (int, str):
        found = [value for value in values if isinstance(value, kind)]
        up, down = (sorted(found, key=OrderKey("x", descending=way).place) for way in (False, True))
        assert up == down[::-1]


def test_a_query_says_its_limit_and_order() -> None:
    content = QueryRequest(what=What.OBJECT, limit=5, order=(OrderKey("a", descending=True), OrderKey("b")))
    envelope = decode(encode(Envelope(content=content)))
    assert isinstance(envelope, Envelope)
    assert envelope.content == content


@pytest.mark.parametrize(("sent", "understood"), [(1, 1), (0, 0), (-1, 0), ("x", 0), (None, 0), (True, 0)])
def test_a_strange_limit_does_not_spoil_a_query(sent: object, understood: int) -> None:
    body = amqp010.encode_map({"_what": "OBJECT", "_limit": sent})
    envelope = decode(encode(Envelope(content=QueryRequest(what=What.OBJECT)), body=body))
    assert isinstance(envelope, Envelope)
    assert envelope.content == QueryRequest(what=What.OBJECT, limit=understood)


@pytest.mark.parametrize("matched", [None, 0, 7])
def test_an_answer_says_how_many_match(matched: int | None) -> None:
    for encoded in (encode, encode_correlated):
        envelope = decode(encoded(Envelope(content=ObjectsResponse((), matched=matched), correlation_id="1")))
        assert isinstance(envelope, Envelope)
        assert isinstance(envelope.content, ObjectsResponse)
        assert envelope.content.matched == matched
