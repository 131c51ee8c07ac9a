"""Ids by which Artemis knows a message that comes again."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from qmf.broker.federation.duplicate_ids import DUPLICATE_ID, DuplicateIds, without_own_id
from qmf.broker.nodes.entries import Entry
from qmf.broker.nodes.message import Message, read_message
from qmf.codec import Message as Written
from qmf.codec import Section, decode_message, encode_message

IDS = DuplicateIds("qmf-link-1", "run")


def message(body: str = "x", properties: Mapping[str, object] | None = None) -> Message:
    data = encode_message(Written(body=body, section=Section.VALUE, application_properties=dict(properties or {})))
    return read_message(data, 0.0)


def entry(content: Message, position: int = 1, record: int | None = None) -> Entry:
    made = Entry(content, position, len(content.data))
    made.record = record
    return made


def id_of(ids: DuplicateIds, of: Entry) -> object:
    return decode_message(ids.add(of, of.message.data)).application_properties[DUPLICATE_ID]


def test_a_message_keeps_its_id_and_all_else() -> None:
    content = message(properties={"colour": "red"})
    sent = decode_message(IDS.add(entry(content, record=7), content.data))
    assert (sent.body, sent.application_properties["colour"]) == ("x", "red")
    first = sent.application_properties[DUPLICATE_ID]
    assert str(first).startswith("qmf:qmf-link-1:7:")
    assert DUPLICATE_ID not in content.headers
    assert id_of(DuplicateIds("qmf-link-1", "another run"), entry(content.after_failure(), 9, record=7)) == first


def test_a_message_that_is_not_stored_has_an_id_until_the_broker_ends() -> None:
    content = message()
    first = id_of(IDS, entry(content, 3))
    assert id_of(IDS, entry(content.after_failure(), 3)) == first
    others = [
        id_of(IDS, entry(content, 4)),
        id_of(IDS, entry(message("another"), 3)),
        id_of(DuplicateIds("qmf-link-1", "another run"), entry(content, 3)),
        id_of(DuplicateIds("qmf-link-2", "run"), entry(content, 3)),
    ]
    assert len({first, *others}) == 5


@pytest.mark.parametrize("given", ["mine", b"\xff\x00", 4])
def test_the_id_of_a_publisher_is_kept(given: object) -> None:
    content = message(properties={DUPLICATE_ID: given})
    assert IDS.add(entry(content), content.data) == content.data


def test_the_id_of_another_link_is_replaced() -> None:
    content = message(properties={DUPLICATE_ID: "qmf:qmf-link-0:1:00000000"})
    assert id_of(IDS, entry(content, record=7)) == id_of(IDS, entry(content, record=7)) != content.headers[DUPLICATE_ID]
    assert str(id_of(IDS, entry(content, record=7))).startswith("qmf:qmf-link-1:7:")


def test_the_name_elsewhere_in_a_message_is_none() -> None:
    content = message(DUPLICATE_ID)
    assert str(id_of(IDS, entry(content, record=7))).startswith("qmf:")


@pytest.mark.parametrize("header", [b"\x00\x53\x70\xd0\x00\x00\x00\x05\x00\x00\x00\x01\x41", b"\x00\x53\x70\x45", b""])
def test_a_header_in_any_form_is_no_part_of_the_id(header: bytes) -> None:
    plain = message()
    counted = entry(read_message(header + plain.data, 0.0).after_failure(), record=7)
    assert id_of(IDS, entry(read_message(header + plain.data, 0.0), record=7)) == id_of(IDS, counted)


def test_what_the_broker_cannot_read_stays_as_it_is() -> None:
    content = read_message(b"\x00\x01\x02", 0.0, 0x1234)
    assert IDS.add(entry(content), content.data) == content.data
    malformed = message().data.replace(b"\x00\x53\x77", b"\x00\x53\x74")  # application properties that are no map
    assert IDS.add(entry(message()), malformed) == malformed


@pytest.mark.parametrize("properties", [{}, {"colour": "red"}])
def test_a_message_that_comes_back_has_no_id_of_a_link(properties: Mapping[str, object]) -> None:
    content = message(properties=properties)
    sent = IDS.add(entry(content, record=7), content.data)
    assert decode_message(without_own_id(sent)) == decode_message(content.data)
    assert without_own_id(content.data) is content.data


@pytest.mark.parametrize("given", ["mine", b"x\xff", 4])
def test_a_message_that_comes_keeps_the_id_of_its_publisher(given: object) -> None:
    data = message(DUPLICATE_ID, {DUPLICATE_ID: given}).data
    assert without_own_id(data) is data
    broken = data[:-9]
    assert without_own_id(broken) is broken
    assert without_own_id(data, 7) is data
