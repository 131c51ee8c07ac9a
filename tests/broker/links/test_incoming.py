"""Messages that clients send."""

from __future__ import annotations

import pytest
from broker.raw_clients import TOPIC
from support.recording import message

from qmf.broker import Broker
from qmf.bus import AmqpBus
from qmf.errors import LinkError


async def test_a_malformed_message_is_rejected() -> None:
    async with Broker(port=0) as broker:
        bus = AmqpBus(broker.url)
        await bus.open()
        with pytest.raises(LinkError) as caught:
            await bus.send(b"\xff garbage", confirm=True)
        assert caught.value.condition == "amqp:decode-error"
        assert broker.counters.rejected == 1
        await bus.close()


async def test_a_message_above_the_limit_is_refused_and_the_bus_goes_on() -> None:
    async with Broker(port=0, max_message=10_000) as broker:
        bus = AmqpBus(broker.url)
        await bus.open()
        with pytest.raises(LinkError) as caught:
            await bus.send(message(TOPIC, "x", "y" * 200_000), confirm=True)
        assert caught.value.condition == "amqp:link:message-size-exceeded"
        assert "10000 bytes" in caught.value.description
        await bus.send(message(TOPIC, "x", "y" * 9_000), confirm=True)
        await bus.close()
