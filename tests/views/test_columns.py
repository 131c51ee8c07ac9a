"""Which statistics are worth a column."""

from __future__ import annotations

import attrs
import pytest

from qmf.models.broker import schema as broker
from qmf.models.federation import schema as federation
from qmf.models.forwarding import schema as forwarding
from qmf.schema import ClassSchema
from qmf.views.columns import important_statistics


@pytest.mark.parametrize(
    ("schema", "first"),
    [
        (broker.BROKER, ["queueCount", "msgDepth", "msgTotalEnqueues", "msgTotalDequeues"]),
        (broker.CONNECTION, ["msgsFromClient", "msgsToClient", "bytesFromClient", "bytesToClient"]),
        (broker.EXCHANGE, ["bindingCount", "msgReceives", "msgRoutes", "msgDrops"]),
        (broker.QUEUE, ["msgDepth", "consumerCount", "msgTotalEnqueues", "msgTotalDequeues"]),
    ],
)
def test_of_a_known_class_what_matters_comes_first_even_if_it_is_zero(schema: ClassSchema, first: list[str]) -> None:
    values = {item.name: 0 for item in schema.statistics}
    other = schema.statistics[-1].name
    assert important_statistics([schema], [values, values]) == first
    # As brokers send the name of the class.
    lower = attrs.evolve(schema, name=schema.name.lower())
    assert important_statistics([lower], [values, {**values, other: 1}])[:4] == first
    assert important_statistics([schema], [values], 2) == first[:2]


def test_of_routes_between_brokers_state_and_lag_matter() -> None:
    shown = important_statistics([federation.ROUTE], [{"losses": 1, "unforwarded": 0}, {"losses": 2}], 11)
    assert shown == [
        *("place", "state", "backlog", "behind", "transfers", "rate", "lastError", "since", "credit", "inDoubt"),
        "losses",
    ]


@pytest.mark.parametrize("schema", [forwarding.RELAY, forwarding.QUEUE_LINK])
def test_of_what_forwards_messages_the_state_matters_and_then_what_has_passed(schema: ClassSchema) -> None:
    shown = important_statistics([schema], [{item.name: 0 for item in schema.statistics}])
    assert (shown[0], shown[-2:]) == ("state", ["lastError", "since"])
    assert {"waiting", "passed"} & {*shown}


def test_what_a_version_of_a_known_class_does_not_have_is_left_out() -> None:
    older = attrs.evolve(broker.QUEUE, statistics=broker.QUEUE.statistics[:7])
    assert important_statistics([older], [])[:3] == ["msgDepth", "msgTotalEnqueues", "msgTotalDequeues"]
