"""Schemas invented by hypothesis, written as XML, read back to the same model."""

from __future__ import annotations

import pytest
from hypothesis import given
from support.schemas import schemas, to_xml, without_hashes

from qmf.schema import Schema, parse_schema

pytestmark = pytest.mark.slow


@given(schema=schemas())
def test_a_written_schema_reads_back_to_the_same_model(schema: Schema) -> None:
    warnings: list[object] = []
    assert without_hashes(parse_schema(to_xml(schema), "invented.xml", warnings.append)) == schema
    assert warnings == []


@given(schema=schemas())
def test_groups_give_the_same_members_but_other_hashes(schema: Schema) -> None:
    plain = parse_schema(to_xml(schema), "plain.xml")
    grouped = parse_schema(to_xml(schema, grouped=True), "grouped.xml")
    assert without_hashes(grouped) == without_hashes(plain)
    assert all(a.hash != b.hash for a, b in zip(plain.classes, grouped.classes, strict=True))
    assert [event.hash for event in plain.events] == [event.hash for event in grouped.events]


@given(schema=schemas())
def test_the_hash_does_not_depend_on_layout(schema: Schema) -> None:
    text = to_xml(schema)
    commented = text.replace(b"\n<", b"\n\n<!-- a comment -->\n  <")
    assert parse_schema(commented, "b.xml") == parse_schema(text, "a.xml")
