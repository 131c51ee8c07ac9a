"""Which calls are confirmed, and which look dangerous."""

from __future__ import annotations

from pathlib import Path

import pytest

from qmf.schema import TYPES, Argument, Direction, Method, parse_schema
from qmf.web.pages.views.method_effects import is_dangerous, needs_confirmation

ROOT = Path(__file__).resolve().parents[4]


@pytest.mark.parametrize(
    ("name", "asks", "dangerous"),
    [
        ("getTimestampConfig", False, False),
        ("echo", False, False),
        ("list", False, False),
        ("purge", True, True),
        ("getaway", True, False),
        ("reset", True, True),
        ("deleteQueue", True, True),
        ("queueDelete", True, True),
        ("QUEUE_DELETE", True, True),
        ("setAutoDelete", True, False),
        ("getDeleted", False, False),
        ("undelete", True, False),
        ("add", True, False),
        ("_", True, False),
    ],
)
def test_calls_that_may_change_something_are_confirmed(name: str, asks: bool, dangerous: bool) -> None:
    output = Argument(name="y", type=TYPES["uint8"], direction=Direction.OUT)
    method = Method(name=name, arguments=(output,))
    assert (needs_confirmation(method), is_dangerous(method)) == (asks, dangerous)


def test_the_dangerous_methods_of_a_broker() -> None:
    schema = parse_schema((ROOT / "schemas/broker.xml").read_bytes(), "broker.xml")
    found = {f"{item.name}.{method.name}" for item in schema.classes for method in item.methods if is_dangerous(method)}
    assert {"Queue.purge", "Queue.reroute", "Broker.delete", "Broker.shutdown", "Broker.queueMoveMessages"} <= found
    assert {"Connection.close", "Session.detach"} <= found
    assert found.isdisjoint({"Broker.echo", "Broker.create", "Broker.getLogLevel", "Broker.setLogLevel"})
