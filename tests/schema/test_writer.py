"""Schemas written as XML read back to the same model, and losses are listed."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from support.schemas import APACHE, SHIPPED, schemas, without_hashes

from qmf.protocol import ObjectId
from qmf.schema import (
    TYPES,
    Argument,
    ClassSchema,
    EventSchema,
    Property,
    Schema,
    Severity,
    Statistic,
    format_value,
    losses,
    parse_schema,
    parse_value,
    read_schema,
    to_xml,
)

PATHS = [*sorted(SHIPPED.glob("*.xml")), *sorted(APACHE.glob("*.xml"))]


def again(schema: Schema) -> Schema:
    return parse_schema(to_xml(schema).encode(), "again.xml")


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_real_schemas_read_back_to_the_same_model(path: Path) -> None:
    schema = read_schema(path)
    assert without_hashes(again(schema)) == without_hashes(schema)
    assert list(losses(schema)) == []


@pytest.mark.parametrize("path", sorted(SHIPPED.glob("*.xml")), ids=lambda path: path.name)
def test_shipped_schemas_keep_their_hashes(path: Path) -> None:
    schema = read_schema(path)
    new = again(schema)
    changed = {a.name for a, b in zip(schema.classes, new.classes, strict=True) if a.hash != b.hash}
    # One has a default in hexadecimal: the model has the number, not how it was written.
    assert changed == ({"Link"} if path.name == "broker.xml" else set())
    assert [item.hash for item in new.events] == [item.hash for item in schema.events]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.name)
def test_the_canonical_form_stays_as_it_is(path: Path) -> None:
    first = to_xml(read_schema(path))
    assert to_xml(parse_schema(first.encode(), "first.xml")) == first


@pytest.mark.slow
@given(schema=schemas())
def test_invented_schemas_read_back_to_the_same_model(schema: Schema) -> None:
    assert without_hashes(again(schema)) == schema
    assert list(losses(schema)) == []


def test_the_form() -> None:
    schema = Schema(
        package="org.example",
        classes=(
            ClassSchema(package="org.example", name="Empty"),
            ClassSchema(
                package="org.example",
                name="Thing",
                properties=(Property(name="name", type=TYPES["sstr"], index=True, max_len=9, desc='a <b> & "c"\n'),),
            ),
        ),
        events=(EventSchema(package="org.example", name="gone", severity=Severity.WARN),),
    )
    assert to_xml(schema).splitlines() == [
        '<schema package="org.example">',
        "",
        '  <class name="Empty"/>',
        "",
        '  <class name="Thing">',
        '    <property name="name" type="sstr" access="RO" index="y" maxLen="9"'
        ' desc="a &lt;b&gt; &amp; &quot;c&quot;&#10;"/>',
        "  </class>",
        "",
        '  <event name="gone" sev="warn"/>',
        "</schema>",
    ]


def test_losses_are_listed_and_left_out() -> None:
    name, other = Argument(name="a", type=TYPES["sstr"]), Argument(name="a", type=TYPES["uint8"])
    odd = Argument(name="x", type=TYPES["map"], default={"id": UUID(int=1)}, desc="bell \x07")
    reference = Property(name="ref", type=TYPES["objId"])
    schema = Schema(
        package="p",
        classes=(
            ClassSchema(
                package="p",
                name="C",
                properties=(reference,),
                statistics=(Statistic(name="last", type=TYPES["objId"]),),
            ),
        ),
        events=(
            EventSchema(package="p", name="e", arguments=(name, odd)),
            EventSchema(package="p", name="f", severity=Severity.CRIT, arguments=(other,)),
        ),
    )
    assert list(losses(schema)) == [
        "unknown severities, written as inform: e",
        "event f: argument a is written as defined by another event",
        "event e.x: the description has characters that XML cannot express",
        "event e.x: the default {'id': UUID('00000000-0000-0000-0000-000000000001')} cannot be written",
        "unknown classes of references, written as any class: C.ref, C.last",
    ]
    read = again(schema)
    assert read.events[0].severity is Severity.INFORM
    assert [item.type.name for item in read.events[1].arguments] == ["sstr"]
    assert read.classes[0].properties[0].general_reference
    assert read.events[0].arguments[1].desc == "bell \ufffd"


@pytest.mark.parametrize(
    ("type_name", "value", "text"),
    [
        ("uint8", 7, "7"),
        ("bool", True, "true"),
        ("bool", False, "false"),
        ("sstr", " x ", " x "),
        ("double", 1e300, "1e+300"),
        ("double", 5.0, "5"),
        ("double", 0.1, "0.1"),
        ("double", float("-inf"), "-inf"),
        ("uuid", UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        ("map", {"a": [1, None]}, '{"a": [1, null]}'),
        ("list", [], "[]"),
    ],
)
def test_values_as_text(type_name: str, value: object, text: str) -> None:
    assert format_value(value) == text
    assert parse_value(TYPES[type_name], text) == value


@pytest.mark.parametrize("value", [None, b"bytes", ObjectId("x"), [b"bytes"], {"x": float("nan")}, object()])
def test_values_that_no_text_stands_for(value: object) -> None:
    with pytest.raises(ValueError, match=r"cannot|JSON"):
        format_value(value)
