"""Schemas as JSON Schema."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from qmf_codegen import Format
from qmf_codegen.formats import json_schema
from support.generated import pump_station
from support.schemas import schemas

from qmf.schema import TYPES, ClassSchema, EventSchema, Property, Schema, Statistic


def definitions(schema: Schema) -> dict[str, Any]:
    found = json.loads(json_schema.document(schema, "x.xml"))["$defs"]
    assert isinstance(found, dict)
    return found


def one(*, statistics: tuple[Statistic, ...] = (), properties: tuple[Property, ...] = ()) -> dict[str, Any]:
    item = ClassSchema(package="p", name="C", properties=properties, statistics=statistics)
    found = definitions(Schema(package="p", classes=(item,)))["C"]
    assert isinstance(found, dict)
    return found


@pytest.mark.parametrize(
    ("type_name", "expected"),
    [
        ("uint8", {"type": "integer", "minimum": 0, "maximum": 255}),
        ("int64", {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}),
        ("absTime", {"type": "integer", "minimum": -(2**63), "maximum": 2**63 - 1}),
        ("bool", {"type": "boolean"}),
        ("float", {"type": "number"}),
        ("sstr", {"type": "string", "maxLength": 255, "x-qmf-max-octets": 255}),
        ("uuid", {"type": "string", "format": "uuid"}),
        ("map", {"type": "object"}),
        ("list", {"type": "array"}),
        ("objId", {"$ref": "#/$defs/_ObjectId"}),
    ],
)
def test_types(type_name: str, expected: dict[str, object]) -> None:
    found = one(properties=(Property(name="x", type=TYPES[type_name], optional=True),))["properties"]["x"]
    annotations = {"x-qmf-type": type_name, "x-qmf-access": "RO", "x-qmf-optional": True}
    assert found == expected | annotations


def test_bounds_and_annotations() -> None:
    number = Property(name="n", type=TYPES["uint8"], minimum=3, unit="octet", desc="A number", index=True)
    text = Property(name="t", type=TYPES["sstr"], max_len=5)
    ratio = Property(name="r", type=TYPES["double"], minimum=0.5, maximum=float("inf"))
    found = one(properties=(number, text, ratio))
    assert found["required"] == ["n", "t", "r"]
    assert found["properties"]["n"] == {
        "type": "integer",
        "minimum": 3,
        "maximum": 255,
        "description": "A number",
        "x-qmf-type": "uint8",
        "x-qmf-unit": "octet",
        "x-qmf-access": "RO",
        "x-qmf-index": True,
    }
    assert found["properties"]["t"]["maxLength"] == 5
    assert (found["properties"]["r"]["minimum"], "maximum" in found["properties"]["r"]) == (0.5, False)


def test_statistics_are_there_by_their_wire_names() -> None:
    found = one(statistics=(Statistic(name="h", type=TYPES["hilo8"]), Statistic(name="m", type=TYPES["mmaTime"])))
    values = found["properties"]
    assert list(values) == ["h", "hHigh", "hLow", "mCount", "mMin", "mMax", "mAvg"]
    assert values["hHigh"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 255,
        "x-qmf-type": "hilo8",
        "x-qmf-statistic": "h",
    }
    assert {values[name]["x-qmf-type"] for name in ("mCount", "mMin", "mMax", "mAvg")} == {"mmaTime"}
    assert "required" not in found


def test_methods_and_events() -> None:
    found = json.loads(pump_station(Format.JSON_SCHEMA))["$defs"]
    start = found["pump"]["x-qmf-methods"]["start"]
    assert list(start["inputs"]["properties"]) == ["speed"]
    assert start["inputs"]["properties"]["speed"]["default"] == 1500
    assert "required" not in start["inputs"]
    assert start["outputs"]["required"] == ["reached"]
    assert found["overPressure"]["x-qmf-severity"] == "crit"
    assert found["overPressure"]["required"] == ["pump", "pressure"]


def test_an_event_named_like_a_class() -> None:
    schema = Schema(
        package="p",
        classes=(ClassSchema(package="p", name="x"),),
        events=(EventSchema(package="p", name="x"), EventSchema(package="p", name="xEvent")),
    )
    assert list(definitions(schema)) == ["x", "xEvent", "xEventEvent", "_ObjectId"]


@pytest.mark.slow
@given(schema=schemas())
def test_any_schema_becomes_json_that_names_everything(schema: Schema) -> None:
    found = definitions(schema)
    assert len(found) == len(list(schema)) + 1
    for item in schema.classes:
        names = {field.name for field in item.properties}
        names |= {entry.name for statistic in item.statistics for entry in statistic.entries}
        assert set(found[item.name]["properties"]) == names
        assert found[item.name]["description" if item.desc is not None else "title"] == (
            item.name if item.desc is None else item.desc
        )
