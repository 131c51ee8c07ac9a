"""The clients of a broker, and their end."""

from __future__ import annotations

import asyncio

import pytest
from broker.raw_clients import AMQP, OPEN, connect
from support.waiting import until

from qmf.broker import Broker


async def test_a_client_that_does_not_answer_delays_the_end_by_the_time_limit_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qmf.broker.sessions.CLOSE_PATIENCE", 0.05)
    broker = Broker(port=0)
    await broker.start()
    _, writer = await connect(broker)
    writer.write(AMQP + OPEN)
    await until(lambda: broker.connections == 1, "the connection")
    async with asyncio.timeout(2):
        await broker.close()
    assert broker.connections == 0
    writer.close()
