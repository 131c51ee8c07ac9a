"""The broker in a thread."""

from __future__ import annotations

import asyncio

import pytest

from qmf.broker import EmbeddedBroker, ListenError
from qmf.bus import AmqpBus


def test_an_embedded_broker_reports_that_it_cannot_listen_and_can_be_closed() -> None:
    with EmbeddedBroker() as first:
        second = EmbeddedBroker(port=first.port)
        with pytest.raises(ListenError, match="address already in use"):
            second.start()
        second.close()
        first.start()  # is running already


def test_an_embedded_broker_can_be_started_again() -> None:
    broker = EmbeddedBroker()
    for _ in range(2):
        broker.start()
        assert broker.url == f"amqp://127.0.0.1:{broker.port}"
        asyncio.run(_open_and_close(broker.url))
        broker.close()
        broker.close()


async def _open_and_close(url: str) -> None:
    bus = AmqpBus(url)
    await bus.open()
    await bus.close()
