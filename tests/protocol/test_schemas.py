"""Schemas on the wire, in QMFv2's maps and QMFv1's frames."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.schemas import schemas

from qmf.codec import EncodeError, decode_message
from qmf.errors import ProtocolError
from qmf.protocol import (
    BodyForm,
    Envelope,
    SchemaResponse,
    SchemasResponse,
    decode,
    decode_frames,
    encode,
    encode_frames,
    schema_from_map,
    schema_to_map,
)
from qmf.schema.model import (
    Access,
    Argument,
    ClassSchema,
    Direction,
    EventSchema,
    Method,
    Property,
    Schema,
    Severity,
    Statistic,
)
from qmf.schema.types import TYPES, TYPES_BY_CODE, Style

HASH = UUID(int=77)


# -- QMFv2 -------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@given(schema=schemas(), hash=st.none() | st.uuids())
def test_nothing_is_lost_between_our_own_peers(schema: Schema, hash: UUID | None) -> None:
    items = [attrs.evolve(item, hash=hash) for item in schema]
    assert [schema_from_map(schema_to_map(item)) for item in items] == items


@pytest.mark.slow
@pytest.mark.parametrize("form", BodyForm)
@given(schema=schemas())
def test_nothing_is_lost_in_messages(form: BodyForm, schema: Schema) -> None:
    items = list(schema)
    envelope = Envelope(content=SchemasResponse(items))
    try:
        data = encode(envelope, form=form)
    except EncodeError as error:
        assume("longer than 255 bytes" not in str(error))  # keys in a default that is a map
        raise
    assert decode(data) == envelope


THING = ClassSchema(
    package="org.example",
    name="Thing",
    hash=HASH,
    properties=(
        Property(name="id", type=TYPES["sstr"], access=Access.RC, index=True, max_len=20),
        Property(name="parent", type=TYPES["objId"], optional=True, parent_ref=True),
    ),
    statistics=(
        Statistic(name="depth", type=TYPES["hilo32"], unit="message", desc="Depth"),
        Statistic(name="delay", type=TYPES["mmaTime"], desc="Delay"),
        Statistic(name="total", type=TYPES["count64"]),
    ),
    methods=(
        Method(
            name="reset",
            arguments=(
                Argument(name="hard", type=TYPES["bool"], default=False),
                Argument(name="done", type=TYPES["uint8"], direction=Direction.OUT, maximum=5),
            ),
        ),
    ),
)


def test_statistics_are_sent_as_properties_that_others_understand() -> None:
    sent: Any = schema_to_map(THING)["_properties"]
    assert [(item["_name"], item["_type"], item.get("_subtype")) for item in sent] == [
        ("id", "TYPE_STRING", None),
        ("parent", "TYPE_MAP", "reference"),
        ("depth", "TYPE_INT", None),
        ("depthHigh", "TYPE_INT", None),
        ("depthLow", "TYPE_INT", None),
        ("delayCount", "TYPE_INT", "deltatime"),
        ("delayMin", "TYPE_INT", "deltatime"),
        ("delayMax", "TYPE_INT", "deltatime"),
        ("delayAvg", "TYPE_INT", "deltatime"),
        ("total", "TYPE_INT", None),
    ]
    assert sent[3] == {
        "_name": "depthHigh",
        "_type": "TYPE_INT",
        "_access": "RO",
        "_dir": "I",
        "_unit": "message",
        "_desc": "Depth (High)",
        "_qmf_type": "uint32",
        "_group": "statistic",
    }
    assert "_index" not in sent[1]


def without_our_keys(node: Any) -> Any:
    """A schema map as a peer would send it who knows none of our keys."""
    known = [
        "_name",
        "_type",
        "_subtype",
        "_access",
        "_dir",
        "_unit",
        "_desc",
        "_index",
        "_schema_id",
        "_properties",
        "_methods",
        "_arguments",
    ]
    known += ["_default_severity", "_package_name", "_class_name", "_hash"]
    if isinstance(node, dict):
        return {key: without_our_keys(item) for key, item in node.items() if key in known}
    return [without_our_keys(item) for item in node] if isinstance(node, list) else node


def test_without_our_keys_types_are_the_widest() -> None:
    found = schema_from_map(without_our_keys(schema_to_map(THING)))
    assert isinstance(found, ClassSchema)
    assert found.statistics == ()
    assert [(item.name, item.type.name) for item in found.properties[:3]] == [
        ("id", "lstr"),
        ("parent", "objId"),
        ("depth", "int64"),
    ]
    assert found.properties[5].type.name == "deltaTime"
    assert [(arg.name, arg.type.name, arg.direction) for arg in found.methods[0].arguments] == [
        ("hard", "bool", Direction.IN),
        ("done", "int64", Direction.OUT),
    ]


@pytest.mark.parametrize(
    ("word", "subtype", "type_name"),
    [
        ("TYPE_VOID", None, "lstr"),
        ("TYPE_BOOL", None, "bool"),
        ("TYPE_INT", None, "int64"),
        ("TYPE_INT", "timestamp", "absTime"),
        ("TYPE_INT", "abstime", "absTime"),
        ("TYPE_INT", "duration", "deltaTime"),
        ("TYPE_INT", "deltatime", "deltaTime"),
        ("TYPE_INT", "celsius", "int64"),
        ("TYPE_FLOAT", None, "double"),
        ("TYPE_STRING", None, "lstr"),
        ("TYPE_MAP", None, "map"),
        ("TYPE_MAP", "data", "map"),
        ("TYPE_MAP", "reference", "objId"),
        ("TYPE_LIST", None, "list"),
        ("TYPE_UUID", None, "uuid"),
    ],
)
def test_types_of_other_peers(word: str, subtype: str | None, type_name: str) -> None:
    fields: dict[str, object] = {"_name": "x", "_type": word}
    if subtype is not None:
        fields["_subtype"] = subtype
    found = schema_from_map({"_schema_id": {"_class_name": "c"}, "_properties": [fields]})
    assert isinstance(found, ClassSchema)
    assert found.properties == (Property(name="x", type=TYPES[type_name]),)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        # Our word for the type counts only where it agrees with the one that everybody knows.
        ({"_name": "x", "_type": "TYPE_INT", "_qmf_type": "uint8"}, Statistic(name="x", type=TYPES["uint8"])),
        ({"_name": "x", "_type": "TYPE_BOOL", "_qmf_type": "uint8"}, Statistic(name="x", type=TYPES["bool"])),
        ({"_name": "x", "_type": "TYPE_INT", "_qmf_type": "uint7"}, Statistic(name="x", type=TYPES["int64"])),
        # Values of statistics that nobody claims are statistics of their own.
        ({"_name": "xHigh", "_type": "TYPE_INT"}, Statistic(name="xHigh", type=TYPES["int64"])),
        ({"_name": "x", "_type": "TYPE_INT", "_qmf_type": "mma32"}, Statistic(name="x", type=TYPES["uint32"])),
        (
            {"_name": "xAvg", "_type": "TYPE_INT", "_qmf_type": "mma32", "_qmf_name": "x"},
            Statistic(name="xAvg", type=TYPES["uint32"]),
        ),
    ],
)
def test_odd_statistics_are_kept(fields: dict[str, object], expected: Statistic) -> None:
    found = schema_from_map({"_schema_id": {"_class_name": "c"}, "_properties": [fields | {"_group": "statistic"}]})
    assert isinstance(found, ClassSchema)
    assert found.statistics == (expected,)


@pytest.mark.parametrize(
    ("number", "expected"), [(0, Severity.EMERG), (7, Severity.DEBUG), (8, None), (2**32 - 1, None)]
)
def test_a_severity_out_of_range_counts_as_none(number: int, expected: Severity | None) -> None:
    key = {"_class_name": "e", "_type": "_event"}
    found = schema_from_map({"_schema_id": key, "_default_severity": number})
    assert isinstance(found, EventSchema)
    assert found.severity is expected


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"_schema_id": None}, "_schema_id is missing"),
        ({"_schema_id": {}}, "_class_name is missing"),
        ({"_properties": {}}, "_properties is a map, not a list"),
        ({"_properties": [5]}, "_properties of c is an integer"),
        ({"_properties": [{"_type": "TYPE_INT"}]}, "_name is missing"),
        ({"_properties": [{"_name": "x"}]}, "_type is missing"),
        ({"_properties": [{"_name": "x", "_type": "TYPE_X"}]}, "_type of x is 'TYPE_X'"),
        (
            {"_properties": [{"_name": "x", "_type": "TYPE_INT", "_access": "RX"}]},
            "_access is 'RX', not RC or RW or RO",
        ),
        ({"_properties": [{"_name": "x", "_type": "TYPE_INT", "_min": "1"}]}, "_min is a string, not a number"),
        ({"_properties": [{"_name": "x", "_type": "TYPE_INT", "_index": "y"}]}, "_index is a string, not a boolean"),
        ({"_methods": [5]}, "_methods is an integer"),
        ({"_methods": [{}]}, "_name is missing"),
        ({"_methods": [{"_name": "m", "_arguments": [5]}]}, "_arguments of m is an integer"),
        (
            {"_methods": [{"_name": "m", "_arguments": [{"_name": "a", "_type": "TYPE_INT", "_dir": "X"}]}]},
            "_dir is 'X', not I or O or IO",
        ),
        (
            {"_schema_id": {"_class_name": "c", "_type": "_event"}, "_default_severity": "4"},
            "_default_severity is a string, not an integer",
        ),
    ],
)
def test_broken_schemas_name_the_key(change: dict[str, object], words: str) -> None:
    with pytest.raises(ProtocolError, match=words):
        schema_from_map({"_schema_id": {"_class_name": "c"}} | change)


# -- QMFv1 -------------------------------------------------------------------------------------------------------------


def as_v1(item: ClassSchema | EventSchema) -> ClassSchema | EventSchema:
    """What QMFv1 can tell of a schema."""
    if isinstance(item, EventSchema):
        arguments = tuple(attrs.evolve(arg, direction=Direction.IN, default=None) for arg in item.arguments)
        return attrs.evolve(item, severity=None, desc=None, arguments=arguments)
    return attrs.evolve(
        item,
        name=item.key.name,
        desc=None,
        properties=tuple(attrs.evolve(prop, parent_ref=False, general_reference=False) for prop in item.properties),
        statistics=tuple(
            attrs.evolve(
                stat,
                type=TYPES_BY_CODE[stat.type.code] if stat.type.style is Style.COUNT else stat.type,
                assign=None,
            )
            for stat in item.statistics
        ),
    )


@pytest.mark.slow
@given(schema=schemas(), hash=st.uuids())
def test_qmfv1_keeps_what_it_can(schema: Schema, hash: UUID) -> None:
    frames = []
    for item in (attrs.evolve(item, hash=hash) for item in schema):
        frame = SchemaResponse(item, 5)
        try:
            (decoded,) = decode_frames(encode_frames([frame]))
        except EncodeError as error:
            assume("longer than 255 bytes" not in str(error))
            raise
        assert decoded == SchemaResponse(as_v1(item), 5)
        frames.append(frame)
    assert len(decode_frames(encode_frames([*frames, *frames]) if frames else b"AM2B\0\0\0\0")) == max(
        1, 2 * len(frames)
    )


def v1_statistics(*items: Statistic) -> tuple[Statistic, ...]:
    """Statistics after a trip through QMFv1."""
    (frame,) = decode_frames(encode_frames([SchemaResponse(attrs.evolve(THING, statistics=items))]))
    assert isinstance(frame, SchemaResponse)
    assert isinstance(frame.schema, ClassSchema)
    return frame.schema.statistics


def plain(name: str, desc: str | None = None, type_name: str = "uint32") -> Statistic:
    return Statistic(name=name, type=TYPES[type_name], desc=desc)


@pytest.mark.parametrize(
    "items",
    [
        (plain("x"), plain("xHigh")),
        (plain("x"), plain("xLow"), plain("xHigh")),
        (plain("x"), plain("xHigh", type_name="uint64"), plain("xLow")),
        (plain("x", "A"), plain("xHigh", "B"), plain("xLow", "C")),
        (plain("xSamples"), plain("xMin"), plain("xMax")),
        (plain("Samples"), plain("Min"), plain("Max"), plain("Average")),
        (
            plain("xSamples", type_name="uint8"),
            *(plain(f"x{end}", type_name="uint8") for end in ("Min", "Max", "Average")),
        ),
        (plain("x", type_name="int32"), plain("xHigh", type_name="int32"), plain("xLow", type_name="int32")),
    ],
)
def test_what_only_looks_like_a_statistic_stays_apart(items: tuple[Statistic, ...]) -> None:
    assert v1_statistics(*items) == items


def test_statistics_next_to_each_other_are_told_apart() -> None:
    items = (
        plain("a", type_name="hilo8"),
        plain("aHighest"),
        plain("b", "B", type_name="mma32"),
        plain("c", "", type_name="hilo64"),
        plain("d", type_name="mma64"),
    )
    assert v1_statistics(*items) == items


@pytest.mark.parametrize(
    ("type_name", "sent", "found"),
    [
        ("uint8", 5, 5),
        ("uint8", "0x10", 16),
        ("bool", "true", True),
        ("bool", "perhaps", None),
        ("sstr", "5", "5"),
        ("sstr", 5, None),
        ("map", {"a": 1}, {"a": 1}),
    ],
)
def test_defaults_may_be_text(type_name: str, sent: object, found: object) -> None:
    argument = Argument(name="a", type=TYPES[type_name], default=sent)
    schema = attrs.evolve(THING, methods=(Method(name="m", arguments=(argument,)),))
    (frame,) = decode_frames(encode_frames([SchemaResponse(schema)]))
    assert isinstance(frame, SchemaResponse)
    assert isinstance(frame.schema, ClassSchema)
    assert frame.schema.methods[0].arguments[0].default == found


def test_a_severity_goes_out_as_a_number() -> None:
    event = EventSchema(package="p", name="e", severity=Severity.ALERT)
    message = decode_message(encode(Envelope(content=SchemasResponse([event])), form=BodyForm.VALUE))
    body: Any = message.body
    assert body[0]["_default_severity"] == 1
    assert schema_from_map(body[0]) == event
