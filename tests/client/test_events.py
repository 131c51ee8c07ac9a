"""Events of brokers, read from messages without a broker."""

from __future__ import annotations

import pytest

from qmf.client import BrokerEvent, EventHelper
from qmf.errors import ProtocolError
from qmf.messaging import Message

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
