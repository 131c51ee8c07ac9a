"""The same over WebSocket, on the brokers that have it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from messaging.conftest import MakeQueue, Target
from support.brokers import EMBEDDED

from qmf.broker import EmbeddedBroker
from qmf.messaging import Connection

pytestmark = pytest.mark.only("embedded", "artemis")


@pytest.fixture
def url(broker: Target) -> Iterator[str]:
    if broker.name != EMBEDDED:
        yield broker.url.replace("amqp://", "ws://")
        return
    with EmbeddedBroker(ws_port=0) as own:
        assert own.ws_url is not None
        yield own.ws_url


def test_messages_of_all_sizes(url: str, queue: MakeQueue) -> None:
    address = f"{queue().partition(';')[0]}; {{create: always, node: {{type: queue}}}}"
    with Connection.establish(url, timeout=10) as connection:
        session = connection.session(transactional=True)
        sender, receiver = session.sender(address), session.receiver(address, capacity=10)
        contents = ["a", "b" * 70_000, "c" * 1_000_000]
        for content in contents:
            sender.send(content, sync=False)
        session.commit()
        assert [receiver.fetch(timeout=10).content for _ in contents] == contents
        session.acknowledge()
        session.commit()
