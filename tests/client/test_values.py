"""Delays, events and objects without a broker."""

from __future__ import annotations

from itertools import islice

import pytest

from qmf.client import BrokerEvent, BrokerObject, EventHelper, ReconnectDelays
from qmf.errors import ProtocolError
from qmf.messaging import Message


def test_delays_double_until_the_longest() -> None:
    assert list(ReconnectDelays(1, 10, 0)) == [1, 2, 4, 8, 10]
    assert list(ReconnectDelays(1, 10, 2)) == [1, 2, 4, 8, 10, 10, 10]
    endless = ReconnectDelays(5, 5)
    assert list(islice(endless, 3)) == [5, 5, 5]
    assert list(islice(endless, 2)) == [5, 5]


@pytest.mark.parametrize(("shortest", "longest"), [(0, 1), (-1, 1), (2, 1)])
def test_delays_that_make_no_sense(shortest: float, longest: float) -> None:
    with pytest.raises(ValueError, match="waiting times must be positive and in order"):
        ReconnectDelays(shortest, longest)


EVENT = {
    "_values": {"rhost": "127.0.0.1:1", "user": "ann"},
    "_schema_id": {"_package_name": "org.apache.qpid.broker", "_class_name": "clientConnect"},
    "_timestamp": 1_700_000_000_000_000_000,
}


def test_an_event() -> None:
    event = EventHelper().event(Message([EVENT]))
    assert event.name == "org.apache.qpid.broker:clientConnect"
    assert (event.user, event.nothing) == ("ann", None)
    assert event.getAttributes() == EVENT["_values"]
    assert event.getTimestamp() == 1_700_000_000_000_000_000
    assert repr(event).endswith(" 2023 org.apache.qpid.broker:clientConnect rhost=127.0.0.1:1 user=ann")


@pytest.mark.parametrize("content", [None, [], "text", [{"_values": {}}]])
def test_a_message_that_is_no_event(content: object) -> None:
    with pytest.raises(ProtocolError, match="not an event"):
        BrokerEvent(Message(content))


def test_addresses_of_events() -> None:
    helper = EventHelper()
    assert helper.eventAddress() == "qmf.default.topic/agent.ind.event.*.*.*.#"
    assert helper.eventAddress("org.apache.qpid.broker", "bind", "info") == (
        "qmf.default.topic/agent.ind.event.org_apache_qpid_broker.bind.info.#"
    )


def test_an_object_without_values() -> None:
    with pytest.raises(ProtocolError, match="has no values"):
        BrokerObject(None, {"_object_id": {}})  # type: ignore[arg-type]
