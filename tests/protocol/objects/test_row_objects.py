"""Blocks of rows become objects."""

from __future__ import annotations

import struct

import pytest
from protocol.objects.decoding import AGENT, CODES, COLUMNS, KEY, ROWS, block, read, thing

from qmf.codec import (
    amqp010,
)
from qmf.errors import DecodeError, ProtocolError
from qmf.protocol import (
    Envelope,
    ObjectData,
    ObjectDecoder,
    ObjectId,
    ObjectsIndication,
    ObjectsResponse,
    decode,
    encode,
)
from qmf.protocol.objects.general import ROW_FORM, block_to_map, object_to_map
from qmf.protocol.objects.row_objects import RowObjects


@pytest.mark.parametrize("reader", [None, ObjectDecoder()], ids=["general", "reader"])
@pytest.mark.parametrize("kind", [ObjectsResponse, ObjectsIndication])
def test_a_block_becomes_objects(
    kind: type[ObjectsResponse] | type[ObjectsIndication], reader: ObjectDecoder | None
) -> None:
    envelope = decode(encode(Envelope(content=kind([thing(7)], [block(COLUMNS, CODES, ROWS)]))), reader)
    assert isinstance(envelope, Envelope)
    content = envelope.content
    assert isinstance(content, kind)
    assert not content.blocks
    first, *others = content.objects
    assert first == thing(7)
    assert others == [
        ObjectData(
            values={"count": number, "name": "text"},
            object_id=ObjectId(f"w{number}", AGENT, 3),
            class_key=KEY,
            update_ts=3,
            create_ts=2,
            delete_ts=1,
        )
        for number in range(3)
    ]


def test_objects_of_a_block_alone_are_made_when_they_are_asked_for() -> None:
    content = read(ObjectDecoder(), ObjectsResponse([], [block(COLUMNS, CODES, ROWS)])).content
    assert isinstance(content, ObjectsResponse)
    found = content.objects
    assert isinstance(found, RowObjects)
    assert len(found) == 3
    assert found.class_key == KEY
    assert [item.values["count"] for item in found] == [0, 1, 2]
    assert found[1] == found[1:][0] == list(found)[1]
    assert found[-1].object_id == ObjectId("w2", AGENT, 3)
    assert found == list(found)
    assert found != list(found)[1:]
    assert found != 5
    assert repr(found) == repr(list(found))
    with pytest.raises(IndexError):
        found[3]
    with pytest.raises(TypeError):
        hash(found)


def test_blocks_and_objects_keep_their_order() -> None:
    rows = block(COLUMNS, CODES, ROWS)
    items = [block_to_map(rows), object_to_map(thing(7)), block_to_map(rows), block_to_map(rows)]
    data = encode(Envelope(content=ObjectsResponse(())), body=amqp010.encode_list(items))
    reader = ObjectDecoder()
    for _ in range(2):
        envelope = decode(data, reader)
        assert envelope == decode(data)
        assert isinstance(envelope, Envelope)
        assert isinstance(envelope.content, ObjectsResponse)
        names = [item.object_id.object_name[-2:] for item in envelope.content.objects if item.object_id]
        assert names == ["w0", "w1", "w2", "w7", "w0", "w1", "w2", "w0", "w1", "w2"]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"_row_form": ROW_FORM + 1}, "_row_form is 2, not 1"),
        ({"_row_form": "x"}, "_row_form"),
        ({"_schema_id": {}}, "_schema_id"),
        ({"_columns": ["count"]}, "2 type codes for 1 columns"),
        ({"_columns": [1, 2]}, "_columns"),
        ({"_codes": 5}, "_codes"),
        ({"_rows": None}, "_rows is missing"),
        ({"_rows": ROWS[:-1]}, "row at offset"),
        ({"_rows": ROWS + b"\x00"}, "row at offset"),
    ],
)
def test_broken_blocks_are_refused(changes: dict[str, object], words: str) -> None:
    fields = {**block_to_map(block(COLUMNS, CODES, ROWS)), **changes}
    data = encode(Envelope(content=ObjectsResponse(())), body=amqp010.encode_list([fields]))
    for reader in (None, ObjectDecoder()):
        with pytest.raises((DecodeError, ProtocolError), match=words):
            decode(data, reader)


def test_rows_that_happen_to_be_text_are_bytes_again() -> None:
    fixed = struct.pack(">1sqqq?I", b"\x01", 1, 2, 0, True, 1)
    rows = (len(fixed) + 1).to_bytes(4, "big") + fixed + b"n"
    assert rows.isascii()
    content = read(ObjectDecoder(), ObjectsResponse([], [block(("flag",), b"\x08", rows)])).content
    assert isinstance(content, ObjectsResponse)
    assert content.objects[0].values == {"flag": True}
