"""Class fields: names, types and groups of values, and updates merged by them."""

from __future__ import annotations

import attrs
import pytest
from console.aio.objects.remotes import FIELDS
from support.scripted_agent import WIDGET, part, widget

from qmf.console.aio import (
    ClassFields,
)
from qmf.console.aio.objects.class_fields import merge
from qmf.schema import TYPES, ClassSchema, Statistic


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("name", "name"),
        ("turns", "turns"),
        ("loadHigh", "loadHigh"),
        ("delayCount", "delayCount"),
        ("delaySamples", "delayCount"),
        ("delayAverage", "delayAvg"),
        ("delayAvg", "delayAvg"),
    ],
)
def test_fields_are_found_by_all_their_names(name: str, key: str) -> None:
    field = FIELDS.field(name)
    assert field is not None
    assert field.key == key


def test_groups_and_types_of_fields() -> None:
    assert list(FIELDS.statistics) == [
        "turns",
        *("load", "loadHigh", "loadLow"),
        *("delayCount", "delayMin", "delayMax", "delayAvg"),
    ]
    assert FIELDS.statistics["delayMin"].type.name == "deltaTime"
    assert FIELDS.statistics["delayCount"].type.name == "uint64"
    assert FIELDS.optional == {"label", "parent"}
    assert FIELDS.field("delay") is None


def test_a_property_keeps_its_name_before_an_expanded_statistic() -> None:
    schema = attrs.evolve(WIDGET, statistics=(Statistic(name="na", type=TYPES["hilo8"]),), properties=WIDGET.properties)
    clash = ClassFields(attrs.evolve(schema, properties=(attrs.evolve(WIDGET.properties[0], name="naHigh"),)))
    field = clash.field("naHigh")
    assert field is not None
    assert field.type.name == "sstr"


def test_a_property_update_without_an_optional_property_unsets_it() -> None:
    old = widget("w", label="x", update=1)
    assert merge(old, part("w", {"name": "w", "level": 2}), FIELDS).values.get("label") is None
    assert merge(old, part("w", {"turns": 2}), FIELDS).values["label"] == "x"
    assert merge(old, part("w", {"turns": 2}), FIELDS).update_ts == 1
    assert merge(old, part("w", {"level": 2}), None).values["label"] == "x"


def test_the_fields_hold_their_class() -> None:
    assert isinstance(FIELDS.schema, ClassSchema)
