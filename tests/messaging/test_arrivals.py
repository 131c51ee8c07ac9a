"""The compiled functions for messages that arrive: what they make, and what they refuse."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qmf.codec import message as codec
from qmf.codec.message import IdForm, Section, encode_message
from qmf.messaging import Message
from qmf.messaging.arrivals import ArrivalFunctions, arrival_functions
from qmf.messaging.core import deliveries
from qmf.messaging.core.deliveries import ReceivedDelivery, delivery_maker

KNOWN = (b"head", 0xA0, 0xB0, False, {"content": None, "properties": {"a": 1}, "subject": "s"})


@pytest.fixture
def compiled() -> ArrivalFunctions:
    found = arrival_functions()
    if found is None:
        pytest.skip("not compiled (scripts/c_extensions.py)")
    return found


def _slots(delivery: ReceivedDelivery) -> dict[str, object]:
    return {name: getattr(delivery, name) for name in ReceivedDelivery.__slots__ if name != "number"}


@pytest.mark.usefixtures("compiled")
def test_deliveries_are_those_that_the_class_makes(monkeypatch: pytest.MonkeyPatch) -> None:
    receiver, network, link = Any, object(), object()
    items = [(1, b"one"), (None, b""), (3, b"three")]
    made = delivery_maker()(receiver, network, link, items)  # type: ignore[arg-type]
    monkeypatch.setattr(deliveries, "arrival_functions", lambda: None)
    plain = delivery_maker()(receiver, network, link, items)  # type: ignore[arg-type]
    assert [*map(_slots, made)] == [*map(_slots, plain)]
    assert [*map(type, made)] == [ReceivedDelivery] * 3
    assert made[-1].number < plain[0].number < plain[-1].number


def test_nothing_is_kept_of_what_was_made(compiled: ArrivalFunctions) -> None:
    places = compiled.places(ReceivedDelivery, ("receiver", "data", "delivery_tag"))
    shared, items = object(), [(object(), object())] * 10
    before = [sys.getrefcount(each) for each in (shared, items[0], *items[0])]
    for _ in range(3):
        compiled.make(ReceivedDelivery, places, (shared,), items)
    assert [sys.getrefcount(each) for each in (shared, items[0], *items[0])] == before
    delivery, data = object(), b"head\xa0\x01x"
    before = [sys.getrefcount(each) for each in (delivery, data, Message, *KNOWN)]
    for each in (data, b"other", data, b"head\xa0\x02x"):
        compiled.take_apart(Message, KNOWN, each, delivery)
    assert [sys.getrefcount(each) for each in (delivery, data, Message, *KNOWN)] == before


def test_a_message_is_taken_apart(compiled: ArrivalFunctions) -> None:
    delivery = object()
    message = compiled.take_apart(Message, KNOWN, b"head\xb0\0\0\0\x02xy", delivery)
    assert vars(message) == {"content": b"xy", "properties": {"a": 1}, "subject": "s", "delivery": delivery}
    assert message.properties is not KNOWN[4]["properties"]


@pytest.mark.parametrize(
    "data",
    [
        b"", b"head", b"head\xa0", b"heaD\xa0\0", b"head\xa1\0", b"head\xa0\x01", b"head\xa0\0x", b"head\xb0\0\0\0",
        b"head\xb0\0\0\0\x02x", b"head\xb0\xff\xff\xff\xffx", bytearray(b"head\xa0\0"),
    ],
)  # fmt: skip
def test_other_messages_are_left(compiled: ArrivalFunctions, data: bytes) -> None:
    assert compiled.take_apart(Message, KNOWN, data, None) is None


def _encode(**ids: Any) -> bytes:
    return encode_message(codec.Message(subject="s", reply_to="r", section=Section.DATA, body=b"", **ids))


def _known(head: bytes) -> tuple[IdForm, tuple[Any, ...]]:
    """The form of an encoded message without content, and what `take_apart` needs to know of it."""
    form = IdForm.of(head[:-2])
    assert form is not None
    return form, ((form.ids, *form.place), *KNOWN[1:])


#: The large list has sizes of 4 bytes.
HEADS = [
    _encode(correlation_id="two"),
    _encode(message_id="one", correlation_id="two"),
    _encode(message_id="m" * 200, correlation_id="c" * 200),
]


@given(st.sampled_from(HEADS), st.binary(max_size=4), st.integers(0, 500), st.integers(0, 4), st.binary(max_size=3))
@example(HEADS[0], b"", 0, 0, b"")
@example(HEADS[1], b"\xc3", 20, 1, b"x")
@example(HEADS[2], b"", 0, 0, b"xy")
def test_messages_with_ids_are_those_that_the_form_finds(
    head: bytes, noise: bytes, at: int, cut: int, content: bytes
) -> None:
    functions = arrival_functions()
    if functions is None:
        pytest.skip("not compiled (scripts/c_extensions.py)")
    form, known = _known(head)
    data = head[:-1] + bytes((len(content),)) + content
    changed = data[:at] + noise + data[at + cut :]
    found = form.find(changed)
    message = functions.take_apart(Message, known, changed, None)
    place = len(changed) if found is None else found[1] + 2
    if found is not None and changed[found[1] : place] == bytes((0xA0, len(changed) - place)):
        assert [vars(message)[name] for name in form.ids] == found[0]
        assert message.content == changed[place:]
        assert message.properties == {"a": 1}
    else:
        assert message is None


def test_nothing_is_kept_of_messages_with_ids(compiled: ArrivalFunctions) -> None:
    form, known = _known(HEADS[1])
    kept = [form, known, known[0], known[4], *known[0][:4]]
    before = [sys.getrefcount(each) for each in kept]
    for data in (HEADS[1], HEADS[1][:-4], HEADS[1].replace(b"two", b"t\xffo"), HEADS[0]):
        for _ in range(3):
            compiled.take_apart(Message, known, data, None)
    assert [sys.getrefcount(each) for each in kept] == before


def test_text_that_is_none_is_left(compiled: ArrivalFunctions) -> None:
    known = (*KNOWN[:3], True, KNOWN[4])
    assert compiled.take_apart(Message, known, b"head\xa0\x02\xc3\xa4", None).content == "\u00e4"
    assert compiled.take_apart(Message, known, b"head\xa0\x01\xc3", None) is None


def test_wrong_arguments_are_refused(compiled: ArrivalFunctions) -> None:
    functions: Any = compiled
    places = compiled.places(ReceivedDelivery, ("receiver", "data", "number"))
    calls: list[Callable[[], object]] = [
        lambda: functions.places(ReceivedDelivery, ["data"]),
        lambda: functions.places(ReceivedDelivery, ("settle",)),
        lambda: functions.places(ReceivedDelivery, ("keeps_outcome",)),
        lambda: functions.make(ReceivedDelivery, places, (), [(1, 2)]),
        lambda: functions.make(ReceivedDelivery, places, (1,), [(1, 2), 3]),
        lambda: functions.make(ReceivedDelivery, places, (1,), ((1, 2),)),
        lambda: functions.take_apart(Message, KNOWN[:4], b"", None),
        lambda: functions.take_apart(Message, (*KNOWN[:4], {"properties": None}), b"head\xa0\0", None),
        lambda: functions.take_apart(Message, KNOWN, b""),
        *(
            functools.partial(functions.take_apart, Message, (form, *KNOWN[1:]), b"", None)
            for form in (
                (),
                (("id",), b"", (), b"", 0, False),
                ((), b"", (), b"", "", False),
                (["id"], b"", (b"",), b"", 0, False),
                (("id",), b"", ("",), b"", 0, False),
                (("id",) * 3, b"", (b"",) * 3, b"", 0, False),
                (("id",), "", (b"",), b"", 0, False),
                (("id",), b"", (b"",), None, 0, False),
            )
        ),
    ]
    for call in calls:
        with pytest.raises(TypeError):
            call()
    with pytest.raises(AttributeError, match="unknown"):
        compiled.places(ReceivedDelivery, ("unknown",))
