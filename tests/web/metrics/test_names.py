"""Names, units and types of metrics."""

from __future__ import annotations

import itertools
import re

import pytest
from support.shelf import store_schema

from qmf.models.acl.schema import SCHEMA as ACL
from qmf.models.broker.schema import SCHEMA as BROKER
from qmf.models.host.schema import SCHEMA as HOST
from qmf.schema import TYPES, ClassSchema, Schema, Statistic
from qmf.web.metrics.followed_classes import with_known_types
from qmf.web.metrics.names import MetricFamily, MetricType, families_of, snake_case, unit_of


def families(schema: ClassSchema) -> dict[str, MetricFamily]:
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
        "_high_items": MetricType.GAUGE,
        "_low_items": MetricType.GAUGE,
        "_sold_items": MetricType.COUNTER,
        "_weight_bytes": MetricType.GAUGE,
        "_open": MetricType.GAUGE,
        "_waiting_samples": MetricType.GAUGE,
        "_waiting_min_seconds": MetricType.GAUGE,
        "_waiting_max_seconds": MetricType.GAUGE,
        "_waiting_mean_seconds": MetricType.GAUGE,
    }
    assert found[f"{begin}_high_items"].help == "Items on it, highest in the interval"
    assert found[f"{begin}_waiting_mean_seconds"].help == "Time that people wait, mean in the interval"


def test_what_equals_other_statistics_goes_down_as_well() -> None:
    (queue,) = (item for item in BROKER.classes if item.name == "Queue")
    found = families(queue)
    begin = "org_apache_qpid_broker_queue"
    assert found[f"{begin}_depth_messages"].type is MetricType.GAUGE
    assert found[f"{begin}_enqueues_messages"].type is MetricType.COUNTER
    assert found[f"{begin}_flow_stopped"].type is MetricType.GAUGE


@pytest.mark.parametrize("schema", [ACL, BROKER, HOST], ids=lambda schema: schema.package)
def test_no_name_says_a_word_twice(schema: Schema) -> None:
    owners: dict[str, str] = {}
    for item in schema.classes:
        for family in families_of(item):
            # None is of two classes, though short ones could meet.
            assert owners.setdefault(family.name, item.name) == item.name
            words = [_STEMS.get(word, word.removesuffix("s")) for word in family.series.split("_")]
            assert not [one for one, two in itertools.pairwise(words) if one == two]
            assert words.count(_STEMS.get(family.unit, family.unit.removesuffix("s"))) <= 1


_STEMS = {"msg": "message", "byte": "byte", "txn": "transaction", "processes": "process"}


@pytest.mark.parametrize(
    ("statistics", "names"),
    [
        # A short name that another one has already gives way to the whole one.
        (("stopped bool", "stoppedCount count32 item"), ["p_c_stopped", "p_c_stopped_items"]),
        (("items uint32 item", "itemCount uint32 item"), ["p_c_items", "p_c_item_count_items"]),
        (("total count32", "totalCount count32"), ["p_c_total", "p_c_count"]),
        (("msgTotalIn count32 message", "byteTotalIn count32 octet"), ["p_c_in_messages", "p_c_in_bytes"]),
        (("cCount count32", "c uint32"), ["p_c_count", "p_c_c"]),
    ],
)
def test_short_names(statistics: tuple[str, ...], names: list[str]) -> None:
    members = [(*text.split(), None)[:3] for text in statistics]
    schema = ClassSchema(
        package="p",
        name="c",
        statistics=tuple(
            Statistic(name=name, type=TYPES[kind], unit=unit) for name, kind, unit in members if name and kind
        ),
    )
    assert list(families(schema)) == names


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
