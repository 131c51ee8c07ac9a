"""Sections that differ in their ids alone: the same as those that are encoded and decoded one by one."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.codec.message import IdForm, Message, Section, decode_fields, encode_message, fits_form

texts = st.text(st.characters(max_codepoint=127), max_size=8) | st.integers(200, 255).map("x".__mul__)
commons = st.builds(
    Message,
    durable=st.booleans(),
    ttl=st.none() | st.just(2.5),
    user_id=st.none() | st.just(b"ann"),
    to=st.none() | st.sampled_from(["q", "q" * 200]),
    subject=st.none() | st.just("s"),
    reply_to=st.none() | st.just("r"),
    content_type=st.none() | st.just("text/plain"),
    application_properties=st.sampled_from([{}, {"a": 1}]),
    section=st.just(Section.DATA),
    body=st.just(b""),
)


def _with_ids(message: Message, ids: dict[str, Any]) -> bytes:
    return encode_message(attrs.evolve(message, **ids))


@given(commons, st.sampled_from([("message_id",), ("correlation_id",), ("message_id", "correlation_id")]), st.data())
def test_any_ids_in_one_form(message: Message, names: tuple[str, ...], data: st.DataObject) -> None:
    form = IdForm.of(_with_ids(message, dict.fromkeys(names, data.draw(texts))))
    assert form is not None
    assert form.ids == names
    assert form.join(*("" for _ in names)) == _with_ids(message, dict.fromkeys(names, ""))
    values = data.draw(st.tuples(*(texts for _ in names)))
    encoded = _with_ids(message, dict(zip(names, values, strict=True)))
    assert form.join(*values) == encoded
    # A form is of lists of one of the two sizes.
    found = form.find(encoded)
    own = IdForm.of(encoded)
    assert own is not None
    assert own.find(encoded) == (list(values), len(encoded))
    assert found in (None, (list(values), len(encoded)))


@given(commons, st.binary(max_size=3), st.integers(0, 80), st.integers(0, 3))
def test_what_has_the_form_is_a_message_with_these_ids(message: Message, noise: bytes, at: int, cut: int) -> None:
    encoded = _with_ids(message, {"message_id": "one", "correlation_id": "two"})
    form = IdForm.of(encoded)
    assert form is not None
    changed = encoded[:at] + noise + encoded[at + cut :]
    if (found := form.find(changed)) is None:
        return
    ids, end = found
    fields = decode_fields(changed[:end], text=False)
    assert [fields["message_id"], fields["correlation_id"]] == ids
    assert {**fields, "message_id": "one", "correlation_id": "two"} == decode_fields(encoded, text=False)


@pytest.mark.parametrize("value", [7, b"id", "i" * 256, None])
def test_ids_that_have_no_form(value: object) -> None:
    head = encode_message(Message(message_id=value, subject="s"))
    assert IdForm.of(head) is None


@given(st.binary(max_size=30))
def test_anything_else_has_no_form(data: bytes) -> None:
    form = IdForm.of(data)
    assert form is None or form.find(data) is not None


def test_which_ids_fit() -> None:
    assert all(map(fits_form, (None, "", "i" * 255)))
    assert not any(map(fits_form, (0, b"i", "i" * 256, "\u20ac", "\ud800")))
