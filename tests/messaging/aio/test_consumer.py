"""Consumers for asyncio: what `run` does besides what the contract says of both forms."""

from __future__ import annotations

import asyncio
import os
import signal

from qmf.messaging import Message, aio
from qmf.testing import MemoryBroker


def test_signals_stop_it_and_have_their_handlers_back() -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    handled: list[object] = []

    async def check(broker: MemoryBroker) -> None:
        async with await broker.async_connection() as connection:

            async def handle(message: Message) -> None:
                handled.append(message.content)
                os.kill(os.getpid(), signal.SIGTERM)

            consumer: aio.Consumer = aio.Consumer(connection, "q", handle)
            await asyncio.wait_for(consumer.run(), 20)

    with MemoryBroker(queues=["q"]) as broker:
        with broker.connection() as connection:
            connection.session().sender("q").send("a")
        asyncio.run(check(broker))
        assert broker.messages("q") == []
    assert handled == ["a"]
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def test_it_opens_a_connection_that_is_not_open() -> None:
    async def check(broker: MemoryBroker) -> None:
        connection = broker.AsyncConnection("amqp://memory")

        async def handle(_: Message) -> None:
            consumer.stop()

        consumer: aio.Consumer = aio.Consumer(connection, "q", handle)
        await asyncio.wait_for(consumer.run(signals=False), 20)
        assert connection.opened()
        await connection.close()

    with MemoryBroker(queues=["q"]) as broker:
        with broker.connection() as connection:
            connection.session().sender("q").send("a")
        asyncio.run(check(broker))
