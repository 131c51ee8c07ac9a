"""Forms from schemas: their fields, checks, and what is confirmed."""

from __future__ import annotations

from uuid import UUID

import pytest
from support.shelf import store_schema

from qmf.console.aio import ObjectId
from qmf.errors import CallerError
from qmf.schema import TYPES, Argument, ClassSchema, Method
from qmf.web.pages.views.method_form import (
    FormField,
    FormFieldKind,
    arguments_text,
    changed_values,
    entered_values,
    form_of,
    property_form,
)


def shelf() -> ClassSchema:
    return next(item for item in store_schema().classes if item.name == "Shelf")


def field(kind: str, **more: object) -> FormField:
    item = Argument(name="x", type=TYPES[kind], **more)  # type: ignore[arg-type]
    return form_of(Method(name="m", arguments=(item,)))[0]


def test_the_fields_of_a_method() -> None:
    method = shelf().method("add")
    assert method is not None
    count, at = form_of(method)
    assert (count.name, count.kind, count.desc, count.optional) == ("count", FormFieldKind.NUMBER, "How many", False)
    assert count.hint == "uint32, at least 1"
    assert (at.kind, at.initial, at.optional) == (FormFieldKind.TIME, "1", True)
    assert entered_values([count, at], {"count": "0x10", "at": "2026-05-01T12:00:00+00:00"}) == {
        "count": 16,
        "at": 1_777_636_800_000_000_000,
    }
    assert entered_values([count, at], {"count": "3", "at": ""}) == {"count": 3}
    with pytest.raises(CallerError, match="count: must be at least 1"):
        entered_values([count, at], {"count": "0"})


@pytest.mark.parametrize(
    ("kind", "looks", "text", "value"),
    [
        ("bool", FormFieldKind.BOOL, "true", True),
        ("sstr", FormFieldKind.TEXT, "", ""),
        ("lstr", FormFieldKind.LONG_TEXT, "a\nb", "a\nb"),
        ("deltaTime", FormFieldKind.DURATION, "1.5s", 1_500_000_000),
        ("deltaTime", FormFieldKind.DURATION, "17", 17),
        ("double", FormFieldKind.NUMBER, "1e3", 1000.0),
        ("uuid", FormFieldKind.TEXT, "00000000-0000-0000-0000-000000000007", UUID(int=7)),
        ("map", FormFieldKind.JSON, '{"a": [1]}', {"a": [1]}),
        ("list", FormFieldKind.JSON, "[1, 2]", [1, 2]),
        ("objId", FormFieldKind.REFERENCE, "agent|queue:a b", ObjectId("queue:a b", "agent")),
        ("objId", FormFieldKind.REFERENCE, "http://host/object/v:p:1/a~2Fb?x=1", ObjectId("a/b", "v:p:1")),
    ],
)
def test_texts_become_values(kind: str, looks: FormFieldKind, text: str, value: object) -> None:
    found = field(kind)
    assert found.kind is looks
    assert found.problem(text) == ""
    assert found.value(text) == value


@pytest.mark.parametrize(
    ("kind", "text", "problem"),
    [
        ("uint8", "256", "must be 0 to 255"),
        ("uint8", "x", "not a whole number"),
        ("uint8", "", "must be given"),
        ("bool", "maybe", "neither true nor false"),
        ("uuid", "7", "not a uuid"),
        ("map", "[]", "not a JSON object"),
        ("objId", "queue", "must be the address of the object's page, or agent|name"),
        ("absTime", "yesterday", "must be a time such as 2026-05-01T12:00"),
        ("sstr", "x" * 256, "must be at most 255 bytes long"),
    ],
)
def test_what_is_wrong_is_said(kind: str, text: str, problem: str) -> None:
    assert field(kind).problem(text) == problem


def test_bounds_and_units_are_shown() -> None:
    assert field("uint8").hint == "uint8, 0 to 255"
    assert field("uint16", minimum=1, maximum=1000, unit="message").hint == "uint16, 1 to 1,000, in messages"
    assert field("sstr", max_len=10).hint == "sstr, at most 10 bytes"
    assert field("deltaTime", unit="nanosecond").hint == "deltaTime, such as 5s or 2m"
    assert field("map").hint == "map, a JSON object"


def test_properties_that_were_changed_are_set() -> None:
    fields = property_form(shelf(), {"limit": 5, "label": "old"})
    assert [(item.name, item.initial, item.optional) for item in fields] == [
        ("limit", "5", False),
        ("label", "old", True),
    ]
    assert changed_values(fields, {"limit": "5", "label": "old"}) == {}
    assert changed_values(fields, {"limit": "6", "label": ""}) == {"limit": 6, "label": None}
    with pytest.raises(CallerError, match="limit"):
        changed_values(fields, {"limit": "0"})


@pytest.mark.parametrize("text", ["", "{}", " { } "])
def test_a_map_that_is_left_empty_is_an_empty_map(text: str) -> None:
    found = field("map")
    assert found.initial == "{}"
    assert found.problem(text) == ""
    assert entered_values([found], {"x": text}) == {"x": {}}


def test_a_map_with_a_default_may_be_left_out() -> None:
    found = field("map", default={"a": 1})
    assert (found.initial, found.optional) == ('{"a": 1}', True)
    assert entered_values([found], {"x": ""}) == {}


def test_arguments_are_named_in_a_confirmation() -> None:
    values = {"a": 1, "b": True, "c": "", "d": {"e": 2}, "f": ObjectId("q", "agent")}
    assert arguments_text(values) == [
        ("a", "1"),
        ("b", "true"),
        ("c", "(empty)"),
        ("d", '{"e": 2}'),
        ("f", "agent|q"),
    ]
