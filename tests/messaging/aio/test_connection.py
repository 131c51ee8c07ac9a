"""The asyncio form of the API, which the synchronous one is built on."""

from __future__ import annotations

import asyncio

import pytest

from qmf.messaging import ConnectionError, Empty, Message
from qmf.messaging.aio import Connection


async def test_messages_are_sent_and_received(embedded: str) -> None:
    async with Connection(embedded) as connection:
        session = await connection.session()
        sender = await session.sender("aio; {create: always, node: {type: queue}}")
        receiver = await session.receiver("aio", capacity=5)
        await asyncio.gather(*(sender.send(Message(str(number))) for number in range(5)))
        assert {(await receiver.fetch(10)).content for _ in range(5)} == set("01234")
        await session.acknowledge()
        with pytest.raises(Empty):
            await receiver.fetch(0)


async def test_a_connection_that_is_open_can_be_used_as_a_block(embedded: str) -> None:
    async with await Connection.establish(embedded, timeout=10) as connection:
        assert connection.attached()
        with pytest.raises(ConnectionError, match="open already"):
            await connection.open()
    assert not connection.opened()


async def test_a_cancelled_fetch_loses_no_message(embedded: str) -> None:
    async with Connection(embedded) as connection:
        session = await connection.session()
        sender = await session.sender("cancelled; {create: always, node: {type: queue}}")
        receiver = await session.receiver("cancelled")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await receiver.fetch()
        await sender.send("kept")
        assert (await receiver.fetch(10)).content == "kept"
        await session.acknowledge()
