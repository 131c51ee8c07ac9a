"""What operators look for of brokers' classes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from qmf.models.broker.schema import BROKER, CONNECTION, EXCHANGE, QUEUE
from qmf.models.host.schema import PROCESS
from qmf.schema import ClassSchema
from qmf.views.broker_fields import (
    CONNECTION_FIELDS,
    EXCHANGE_FIELDS,
    QUEUE_COMPUTED,
    QUEUE_FIELDS,
    TOTAL_FIELDS,
    FieldKind,
    NodeField,
    TotalField,
    important_values,
    is_queue,
)


@pytest.mark.parametrize(
    ("schema", "fields"), [(QUEUE, QUEUE_FIELDS), (EXCHANGE, EXCHANGE_FIELDS), (CONNECTION, CONNECTION_FIELDS)]
)
def test_the_values_are_those_of_the_schema(schema: ClassSchema, fields: Sequence[NodeField]) -> None:
    named = {item.name for item in schema.properties} | {item.name for item in schema.statistics}
    assert {field.value for field in fields if field.kind not in (FieldKind.AGE, FieldKind.IDLE)} <= named


def test_each_tool_has_its_own_headings_of_connections() -> None:
    assert [field.heading for field in CONNECTION_FIELDS if field.heading] == (
        ["connection", "process", "pid", "mech", "user", "protocol", "since", "msgIn", "msgOut"]
    )
    assert [field.published for field in CONNECTION_FIELDS if field.published] == (
        ["connection", "cproc", "cpid", "mech", "auth", "connected", "idle", "msgIn", "msgOut"]
    )


@pytest.mark.parametrize(
    ("schema", "fields"), [(BROKER, TOTAL_FIELDS), (QUEUE, [item for item in TOTAL_FIELDS if item.of_queues])]
)
def test_totals_are_statistics_of_brokers_and_of_queues(schema: ClassSchema, fields: Sequence[TotalField]) -> None:
    named = {item.name for item in schema.statistics}
    assert {name for field in fields for name in (field.messages, field.octets) if name} <= named


def test_flags_and_sizes_are_left_out_first() -> None:
    spare = [field.heading for field in EXCHANGE_FIELDS if field.spare]
    assert spare == ["dur", "byteIn", "byteOut", "byteDrop"]
    assert NodeField("bind", "bindingCount", FieldKind.NUMBER, spare=True).spare


@pytest.mark.parametrize("schema", [BROKER, CONNECTION, EXCHANGE, QUEUE])
def test_what_matters_is_a_statistic_of_the_class(schema: ClassSchema) -> None:
    assert important_values(schema)
    assert set(important_values(schema)) <= {item.name for item in schema.statistics}


def test_other_classes_are_not_known() -> None:
    assert [is_queue(schema) for schema in (QUEUE, EXCHANGE, PROCESS)] == [True, False, False]
    assert important_values(PROCESS) == ()


@pytest.mark.parametrize(
    ("values", "computed"),
    [
        ({}, [None, None, None, None]),
        ({"consumerCount": 0, "msgDepth": 0}, ["idle", 0, None, 0]),
        ({"consumerCount": 0, "msgDepth": 7, "unackedMessages": 3}, ["no consumer", 4, 3, 0]),
        ({"consumerCount": 2, "msgDepth": 7, "acquires": 9, "msgTotalDequeues": 4}, ["running", 2, 5, 2]),
        ({"flowStopped": True, "consumerCount": 1}, ["flow stopped", None, None, 1]),
    ],
)
def test_what_is_computed_of_a_queue(values: dict[str, object], computed: list[object]) -> None:
    assert [item.read(values) for item in QUEUE_COMPUTED] == computed
