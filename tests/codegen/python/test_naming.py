"""Names of constants, classes and members."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from qmf_codegen.python.naming import RESERVED, MemberNames, constant, names_of, plain_names
from support.schemas import NAMES

from qmf.schema import TYPES, ClassSchema, Direction, EventSchema, Method, Property, Schema
from qmf.schema.model import Argument

BOOL = TYPES["bool"]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Filesystem", "FILESYSTEM"),
        ("HaBroker", "HA_BROKER"),
        ("queueThresholdExceeded", "QUEUE_THRESHOLD_EXCEEDED"),
        ("ACLFile", "ACL_FILE"),
        ("reloadACL", "RELOAD_ACL"),
        ("TopicPolicy2nd", "TOPIC_POLICY2ND"),
        ("some_name", "SOME_NAME"),
        ("x", "X"),
    ],
)
def test_constants(name: str, expected: str) -> None:
    assert constant(name) == expected


def schema(classes: list[str], events: list[str]) -> Schema:
    return Schema(
        package="p",
        classes=tuple(ClassSchema(package="p", name=name) for name in classes),
        events=tuple(EventSchema(package="p", name=name) for name in events),
    )


def test_classes_and_events_side_by_side() -> None:
    names = names_of(schema(["queue", "Alarm", "event"], ["alarm", "AlarmEvent", "full"]))
    assert names.classes == {"queue": "Queue", "Alarm": "Alarm", "event": "Event_"}
    assert names.events == {"alarm": "AlarmEvent", "AlarmEvent": "AlarmEventEvent", "full": "Full"}
    assert names.constants == ["QUEUE", "ALARM", "EVENT", "ALARM_EVENT", "ALARM_EVENT_EVENT", "FULL"]


def test_constants_that_the_module_has_anyway() -> None:
    assert names_of(schema(["Uuid", "schema", "types", "Package"], [])).constants == [
        "UUID_",
        "SCHEMA_",
        "TYPES_",
        "PACKAGE_",
    ]


def test_results() -> None:
    output = Argument(name="x", type=BOOL, direction=Direction.OUT)
    item = ClassSchema(
        package="p",
        name="Thing",
        methods=(Method(name="probe", arguments=(output,)), Method(name="stop")),
    )
    taken = ClassSchema(package="p", name="ThingProbeResult")
    assert names_of(Schema(package="p", classes=(item, taken))).members["Thing"].results == {
        "probe": "ThingProbeResult_"
    }


def members(fields: list[str], methods: list[str]) -> MemberNames:
    item = ClassSchema(
        package="p",
        name="A",
        properties=tuple(Property(name=name, type=BOOL) for name in fields),
        methods=tuple(Method(name=name) for name in methods),
    )
    return names_of(Schema(package="p", classes=(item,))).members["A"]


@pytest.mark.parametrize(
    ("fields", "methods", "field_names", "method_names"),
    [
        (["name", "type"], ["close"], ["name", "type"], ["close"]),
        (["class", "str", "self"], ["import"], ["class_", "str_", "self_"], ["import_"]),
        (["close"], ["close"], ["close"], ["close_"]),
        (["class", "class_"], [], ["class__", "class_"], []),
        ([], ["import", "import_"], [], ["import_", "import__"]),
        ([], ["x", "x_"], [], ["x_", "x__"]),
        (["x_"], ["x"], ["x__"], ["x_"]),
        (["class"], ["class_"], ["class___"], ["class_"]),
    ],
)
def test_members(fields: list[str], methods: list[str], field_names: list[str], method_names: list[str]) -> None:
    names = members(fields, methods)
    assert [names.fields[name] for name in fields] == field_names
    assert [names.methods[name] for name in methods] == method_names


NAME_LISTS = st.lists(NAMES, max_size=8, unique=True)


def found(name: str, attributes: set[str]) -> str:
    """The attribute that the runtime base finds for `name`, by its rule."""
    return f"{name}_" if f"{name}_" in attributes else name


@given(fields=NAME_LISTS, methods=NAME_LISTS)
def test_members_are_unique_usable_and_found_again(fields: list[str], methods: list[str]) -> None:
    names = members(fields, methods)
    python = [*names.fields.values(), *names.methods.values()]
    assert len(set(python)) == len(fields) + len(methods)
    assert RESERVED.isdisjoint(python)
    assert {name: found(name, set(python)) for name in methods} == names.methods


@given(names=NAME_LISTS)
def test_fields_of_events_are_unique_usable_and_found_again(names: list[str]) -> None:
    python = plain_names(names)
    assert len(set(python.values())) == len(names)
    assert RESERVED.isdisjoint(python.values())
    assert {name: found(name, set(python.values())) for name in names} == python


@given(classes=st.lists(NAMES, max_size=6, unique_by=str.lower), events=NAME_LISTS)
def test_classes_and_constants_are_unique(classes: list[str], events: list[str]) -> None:
    names = names_of(schema(classes, events))
    python = [*names.classes.values(), *names.events.values()]
    assert len(set(python)) == len(set(names.constants)) == len(classes) + len(events)
    assert RESERVED.isdisjoint(python)
