"""Which objects and events of a broker are own ones of agents, consoles and tools."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any

import pytest

from qmf._marks import OWN_CONNECTION
from qmf.protocol import ObjectId
from qmf.views.internal import (
    BROKER_PACKAGE,
    has_own_values,
    is_own_event,
    is_own_object,
    may_be_own,
)

OWN = f"qmf-1_qmf-in-{uuid.UUID(int=7)}"
OWN_QUEUE = f"{BROKER_PACKAGE}:queue:{OWN}"


@pytest.mark.parametrize(
    ("class_name", "values", "own"),
    [
        ("queue", {"name": OWN}, True),
        ("queue", {"name": "orders"}, False),
        ("queue", {}, False),
        ("binding", {"queueRef": {"_object_name": OWN_QUEUE}}, True),
        ("binding", {"queueRef": ObjectId(OWN_QUEUE, "broker")}, True),
        ("binding", {"queueRef": OWN}, True),
        ("binding", {"queueRef": None}, False),
        ("subscription", {"name": "s", "queueRef": {"_object_name": OWN_QUEUE}}, True),
        ("incoming", {"name": OWN}, True),
        ("connection", {"remoteProperties": {OWN_CONNECTION: 1}}, True),
        ("connection", {"remoteProperties": None}, False),
        ("exchange", {"name": OWN}, False),
    ],
)
def test_objects(class_name: str, values: Mapping[str, object], own: bool) -> None:
    assert is_own_object(BROKER_PACKAGE, class_name, values) is own
    assert not is_own_object("org.example.shop", class_name, values)
    if may_be_own(BROKER_PACKAGE, class_name):
        assert has_own_values(values) is own


@pytest.mark.parametrize(
    ("class_name", "read"), [("queue", ["name"]), ("binding", ["queueRef"]), ("connection", ["remoteProperties"])]
)
def test_no_more_values_are_read_than_tell(class_name: str, read: list[str]) -> None:
    """Each may have to be decoded, of all objects of a list."""
    asked: list[str] = []

    class Values(dict[str, object]):
        def __getitem__(self, name: str) -> object:
            asked.append(name)
            return super().__getitem__(name)

        def get(self, name: str, default: Any = None) -> Any:
            asked.append(name)
            return super().get(name, default)

    assert not is_own_object(BROKER_PACKAGE, class_name, Values(name="x"))
    assert asked == read


def test_sessions_are_known_by_their_connection() -> None:
    assert is_own_object(BROKER_PACKAGE, "session", {"connectionRef": 5}, lambda value: value == 5)
    assert not is_own_object(BROKER_PACKAGE, "session", {"connectionRef": 5, "name": OWN})
    assert may_be_own(BROKER_PACKAGE, "session")


@pytest.mark.parametrize(
    ("name", "values", "own"),
    [
        ("queueDeclare", {"qName": OWN}, True),
        ("subscribe", {"qName": "orders", "dest": OWN}, True),
        ("clientConnect", {"properties": {OWN_CONNECTION: 1}}, True),
        ("queueDeclare", {"qName": "orders"}, False),
        ("unsubscribe", {"dest": "", "user": ""}, True),
        ("unsubscribe", {"dest": "x", "user": ""}, False),
    ],
)
def test_events(name: str, values: Mapping[str, object], own: bool) -> None:
    assert is_own_event(BROKER_PACKAGE, name, values) is own
    assert not is_own_event("org.example.shop", name, values)
