"""Python types and descriptors in generated code."""

from __future__ import annotations

import pytest
from qmf_codegen.python.types import (
    agent_descriptor,
    agent_input_type,
    console_descriptor,
    console_input_type,
    settable_type,
    value_type,
)

from qmf.schema import TYPES, Access, Argument, Property, Reference, Statistic

REF = Property(name="ref", type=TYPES["objId"], access=Access.RW, references=Reference(None, "C"))


@pytest.mark.parametrize(
    ("item", "agent", "console"),
    [
        (Property(name="p", type=TYPES["sstr"]), "Attribute[str]", "Attribute[str]"),
        (Property(name="p", type=TYPES["uint8"], optional=True), "Attribute[int | None]", "Attribute[int | None]"),
        (Property(name="p", type=TYPES["map"]), "Attribute[Mapping[str, object]]", "Attribute[Mapping[str, object]]"),
        (REF, "ReferenceAttribute", "Attribute[ObjectId | None]"),
        (Property(name="p", type=TYPES["objId"], optional=True), "ReferenceAttribute", "Attribute[ObjectId | None]"),
        (Statistic(name="s", type=TYPES["uuid"]), "Attribute[UUID]", "Attribute[UUID]"),
        (Statistic(name="s", type=TYPES["bool"]), "Attribute[bool]", "Attribute[bool]"),
        (Statistic(name="s", type=TYPES["count8"]), "CounterAttribute", "Attribute[int]"),
        (Statistic(name="s", type=TYPES["hilo8"]), "HiLoAttribute", "HiLoAttribute"),
        (Statistic(name="s", type=TYPES["mmaTime"]), "MmaAttribute", "MmaAttribute"),
    ],
)
def test_descriptors(item: Property | Statistic, agent: str, console: str) -> None:
    assert (agent_descriptor(item), console_descriptor(item)) == (agent, console)


def test_types_of_values() -> None:
    assert value_type(TYPES["objId"]) == "ObjectId | None"
    assert value_type(TYPES["sstr"], optional=True) == "str | None"
    assert value_type(TYPES["count64"]) == "int"
    assert agent_input_type(Argument(name="a", type=TYPES["objId"])) == "Ref"
    assert agent_input_type(Argument(name="a", type=TYPES["list"])) == "Sequence[object]"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (Property(name="p", type=TYPES["uint8"]), "int | Unset"),
        (Property(name="p", type=TYPES["uint8"], optional=True), "int | Unset | None"),
        (REF, "Ref | Unset"),
    ],
)
def test_properties_that_may_be_set(item: Property, expected: str) -> None:
    assert settable_type(item) == expected


def test_references_are_sent_as_objects_and_received_as_ids() -> None:
    argument = Argument(name="a", type=TYPES["objId"])
    assert (console_input_type(argument), value_type(argument.type)) == ("Ref", "ObjectId | None")
