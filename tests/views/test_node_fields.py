"""The columns of queues and exchanges."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from qmf.models.broker.schema import EXCHANGE, QUEUE
from qmf.schema import ClassSchema
from qmf.views.node_fields import EXCHANGE_FIELDS, QUEUE_FIELDS, FieldKind, NodeField


@pytest.mark.parametrize(("schema", "fields"), [(QUEUE, QUEUE_FIELDS), (EXCHANGE, EXCHANGE_FIELDS)])
def test_the_values_are_those_of_the_schema(schema: ClassSchema, fields: Sequence[NodeField]) -> None:
    named = {item.name for item in schema.properties} | {item.name for item in schema.statistics}
    assert {field.value for field in fields} <= named


def test_flags_and_sizes_are_left_out_first() -> None:
    spare = [field.heading for field in EXCHANGE_FIELDS if field.spare]
    assert spare == ["dur", "byteIn", "byteOut", "byteDrop"]
    assert NodeField("bind", "bindingCount", FieldKind.NUMBER, spare=True).spare
