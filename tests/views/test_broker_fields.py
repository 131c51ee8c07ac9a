"""What operators look for of brokers' classes."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from qmf.models.broker.schema import BROKER, CONNECTION, EXCHANGE, QUEUE
from qmf.models.host.schema import PROCESS
from qmf.schema import ClassSchema
from qmf.views.broker_fields import (
    EXCHANGE_FIELDS,
    QUEUE_COMPUTED,
    QUEUE_FIELDS,
    FieldKind,
    NodeField,
    important_values,
    is_queue,
)


@pytest.mark.parametrize(("schema", "fields"), [(QUEUE, QUEUE_FIELDS), (EXCHANGE, EXCHANGE_FIELDS)])
def test_the_values_are_those_of_the_schema(schema: ClassSchema, fields: Sequence[NodeField]) -> None:
    named = {item.name for item in schema.properties} | {item.name for item in schema.statistics}
    assert {field.value for field in fields} <= named


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
