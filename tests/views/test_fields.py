"""The fields of a class, and sorting by them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from shell.fakes import FILESYSTEM

from qmf.views.fields import COMMON_FIELDS, fields_of, find_field, sort_by


def test_the_fields_of_a_class() -> None:
    fields = fields_of(FILESYSTEM)
    assert fields["bytesRead"].counter
    assert fields["openFilesHigh"].element == "openFiles"
    assert not fields["label"].is_number
    assert fields["parent"].is_reference
    assert getattr(find_field([FILESYSTEM], "LATENCY"), "name", "") == "latencyAvg"


@given(st.lists(st.one_of(st.none(), st.integers(), st.floats(allow_nan=False), st.text()), max_size=20))
def test_sorting_takes_any_values(values: list[object]) -> None:
    for down in (False, True):
        result = sort_by(values, lambda value: value, descending=down)
        assert sorted(map(repr, result)) == sorted(map(repr, values))
        missing = values.count(None)
        assert all(value is None for value in result[len(result) - missing :])


def test_each_value_of_a_statistic_has_its_own_type_and_unit() -> None:
    fields = fields_of(FILESYSTEM)
    assert [(name, item.type.name, item.unit) for name, item in fields.items() if item.element == "latency"] == [
        ("latencyCount", "uint64", "sample"),
        ("latencyMin", "deltaTime", "nanosecond"),
        ("latencyMax", "deltaTime", "nanosecond"),
        ("latencyAvg", "deltaTime", "nanosecond"),
    ]
    assert [item.name for item in fields.values() if item.element == "latency" and item.is_main] == ["latencyAvg"]
    assert [item.name for item in fields.values() if item.element == "openFiles" and item.is_main] == ["openFiles"]


def test_texts_are_sorted_in_natural_order_behind_numbers() -> None:
    values = ["eth10", None, 7, "Eth2", 2.5, True]
    assert sort_by(values, lambda value: value) == [True, 2.5, 7, "Eth2", "eth10", None]
    assert sort_by(values, lambda value: value, descending=True) == ["eth10", "Eth2", 7, 2.5, True, None]


def test_agents_are_not_asked_to_compare_averages() -> None:
    fields = fields_of(FILESYSTEM)
    assert {fields[name].wire_name for name in ("latencyMax", "openFiles", "label")} == {
        "latencyMax",
        "openFiles",
        "label",
    }
    assert fields["latencyAvg"].wire_name == ""
    assert COMMON_FIELDS["created"].wire_name == ""
