"""Names, units and types of metrics."""

from __future__ import annotations

import re

import pytest
from support.shelf import store_schema

from qmf.models.broker.schema import SCHEMA as BROKER
from qmf.models.host.schema import SCHEMA as HOST
from qmf.schema import TYPES, ClassSchema, Schema, Statistic
from qmf.web.metrics.known_types import with_known_types
from qmf.web.metrics.names import Family, MetricType, families_of, snake_case, unit_of


def families(schema: ClassSchema) -> dict[str, Family]:
    return {family.name: family for family in families_of(schema)}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("msgTotalEnqueues", "msg_total_enqueues"),
        ("HTTPRequests", "http_requests"),
        ("discardsTtl", "discards_ttl"),
        ("org.example.Store", "org_example_store"),
        ("load1", "load_1"),
        ("2fast", "_2_fast"),
        ("_", "value"),
    ],
)
def test_names_are_in_snake_case(name: str, text: str) -> None:
    assert snake_case(name) == text


@pytest.mark.parametrize(
    ("unit", "kind", "name", "divisor"),
    [
        ("octet", "uint64", "bytes", 1),
        ("nanosecond", "uint64", "seconds", 10**9),
        (None, "deltaTime", "seconds", 10**9),
        (None, "absTime", "timestamp_seconds", 10**9),
        ("percent", "float", "ratio", 100),
        ("message", "uint32", "messages", 1),
        ("octet/second", "uint64", "bytes_per_second", 1),
        ("switch", "uint32", "switches", 1),
        ("query", "uint32", "queries", 1),
        (None, "uint32", "", 1),
    ],
)
def test_units(unit: str | None, kind: str, name: str, divisor: int) -> None:
    found = unit_of(unit, TYPES[kind])
    assert (found.name, found.divisor) == (name, divisor)


def test_types_follow_the_style() -> None:
    found = families(store_schema().classes[1])
    begin = "org_example_store_shelf"
    assert {name.removeprefix(begin): family.type for name, family in found.items()} == {
        "_limit_items": MetricType.GAUGE,
        "_built_timestamp_seconds": MetricType.GAUGE,
        "_items": MetricType.GAUGE,
        "_items_high_items": MetricType.GAUGE,
        "_items_low_items": MetricType.GAUGE,
        "_sold_items": MetricType.COUNTER,
        "_weight_bytes": MetricType.GAUGE,
        "_open": MetricType.GAUGE,
        "_waiting_seconds": MetricType.SUMMARY,
    }
    assert [sample.suffix for sample in found[f"{begin}_waiting_seconds"].samples] == ["", "", "_count", "_sum"]
    assert found[f"{begin}_items_high_items"].help == "Items on it, highest in the interval"


def test_what_equals_other_statistics_goes_down_as_well() -> None:
    (queue,) = (item for item in BROKER.classes if item.name == "Queue")
    found = families(queue)
    begin = "org_apache_qpid_broker_queue"
    assert found[f"{begin}_msg_depth_messages"].type is MetricType.GAUGE
    assert found[f"{begin}_msg_total_enqueues_messages"].type is MetricType.COUNTER
    assert found[f"{begin}_flow_stopped"].type is MetricType.GAUGE


@pytest.mark.parametrize("schema", [BROKER, HOST, store_schema()], ids=lambda schema: schema.package)
def test_names_are_valid_and_end_with_their_unit(schema: Schema) -> None:
    for item in schema.classes:
        for family in families_of(item):
            assert re.fullmatch(r"[a-z_][a-z0-9_]*", family.name)
            # The name of a counter's sample ends with _total.
            reserved = (
                "_total",
                "_sum",
                "_bucket",
                "_info",
                *([] if family.type is MetricType.COUNTER else ["_count"]),
            )
            assert not family.name.endswith(reserved)
            assert not family.unit or family.name.endswith(f"_{family.unit}")


def test_styles_that_the_wire_leaves_out_are_known() -> None:
    (queue,) = (item for item in BROKER.classes if item.name == "Queue")
    wire = ClassSchema(
        package=queue.package,
        name="queue",
        statistics=(
            *(
                Statistic(name=entry.v1_name, type=TYPES[item.type.base])
                for item in queue.statistics
                for entry in item.entries
            ),
            Statistic(name="newer", type=TYPES["uint32"]),
        ),
    )
    found = with_known_types(wire)
    assert found.statistics[:-1] == queue.statistics
    assert found.statistics[-1].name == "newer"
    assert with_known_types(queue) is queue
    other = ClassSchema(package="p", name="c", statistics=(Statistic(name="x", type=TYPES["uint32"]),))
    assert with_known_types(other) is other
