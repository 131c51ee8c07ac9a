"""Iterating over receivers: what is fetched, and what ends it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from messaging.conftest import MakeQueue, Target
from support.waiting import until, wait_until

from qmf.messaging import Connection, MessagingError, Receiver, Session, aio


def contents(receiver: Receiver) -> list[object]:
    return [message.content for message in receiver]


@pytest.mark.parametrize("capacity", [0, 1, 10])
@pytest.mark.parametrize("closed", ["receiver", "session", "connection"])
def test_it_ends_when_the_program_closes(broker: Target, queue: MakeQueue, closed: str, capacity: int) -> None:
    address = queue()
    with broker.Connection.establish(broker.url, timeout=10) as connection, ThreadPoolExecutor(1) as pool:
        session = connection.session()
        sender, receiver = session.sender(address), session.receiver(address, capacity=capacity)
        found: list[object] = []
        ended = pool.submit(lambda: found.extend(message.content for message in receiver))
        for number in range(5):
            sender.send(number_text(number))
        wait_until(lambda: len(found) == 5)
        session.acknowledge()
        ends: dict[str, Receiver | Session] = {"receiver": receiver, "session": session}
        ends.get(closed, connection).close()
        ended.result(10)
        assert found == [number_text(number) for number in range(5)]
        assert contents(receiver) == []


def number_text(number: int) -> str:
    return f"message {number}"


def test_it_can_be_left_and_begun_again(session: Session, queue: MakeQueue) -> None:
    address = queue()
    sender, receiver = session.sender(address), session.receiver(address)
    for text in "abc":
        sender.send(text)
    for message in receiver:
        assert message.content == "a"
        break
    assert next(receiver).content == "b"
    assert receiver.fetch(timeout=10).content == "c"
    session.acknowledge()


def lose(connection: Connection | aio.Connection) -> object:
    """What makes the receiver fail: the loss of its connection."""
    return connection.detach()


def test_the_loss_of_the_connection_is_an_error(broker: Target, queue: MakeQueue) -> None:
    with broker.Connection.establish(broker.url, timeout=10) as connection, ThreadPoolExecutor(1) as pool:
        receiver = connection.session().receiver(queue())
        found = pool.submit(contents, receiver)
        lose(connection)
        with pytest.raises(MessagingError, match="detached"):
            found.result(10)


@pytest.mark.parametrize("closed", ["receiver", "session", "connection"])
def test_with_asyncio_it_ends_when_the_program_closes(broker: Target, queue: MakeQueue, closed: str) -> None:
    async def check() -> None:
        address = queue()
        async with broker.AsyncConnection(broker.url) as connection:
            session = await connection.session()
            sender, receiver = await session.sender(address), await session.receiver(address, capacity=2)
            found: list[object] = []

            async def collect() -> None:
                async for message in receiver:
                    await message.accept()
                    found.append(message.content)

            task = asyncio.create_task(collect())
            for text in "abc":
                await sender.send(text)
            await until(lambda: len(found) == 3)
            ends: dict[str, aio.Receiver | aio.Session | aio.Connection] = {"receiver": receiver, "session": session}
            await ends.get(closed, connection).close()
            await asyncio.wait_for(task, 10)
            assert found == ["a", "b", "c"]

    asyncio.run(check())


def test_with_asyncio_the_loss_of_the_connection_is_an_error(broker: Target, queue: MakeQueue) -> None:
    async def check() -> None:
        async with broker.AsyncConnection(broker.url) as connection, connection.session() as session:
            receiver = await session.receiver(queue())
            fetching = asyncio.ensure_future(anext(receiver))
            await asyncio.sleep(0)
            await connection.detach()
            with pytest.raises(MessagingError, match="detached"):
                await asyncio.wait_for(fetching, 10)

    asyncio.run(check())


async def opened(connection: aio.Connection, address: str) -> list[aio.Session | aio.Sender | aio.Receiver]:
    """A session, a sender and a receiver, entered as contexts; those that are open when they are left."""
    async with connection.session() as session:
        async with session.sender(address) as sender, session.receiver(address) as receiver:
            await sender.send("a")
            await (await receiver.fetch(timeout=10)).accept()
            assert not any(item.closed for item in (session, sender, receiver))
        assert (session.closed, sender.closed, receiver.closed) == (False, True, True)
    return [session, sender, receiver]


def test_with_asyncio_all_are_contexts(broker: Target, queue: MakeQueue) -> None:
    async def check() -> None:
        async with broker.AsyncConnection.establish(broker.url, timeout=10) as connection:
            assert connection.opened()
            assert all(item.closed for item in await opened(connection, queue()))
        assert not connection.opened()

    asyncio.run(check())


@pytest.mark.parametrize("start", [asyncio.create_task, asyncio.ensure_future, lambda work: work])
def test_what_opens_is_a_coroutine(broker: Target, start: Callable[..., object]) -> None:
    async def check() -> None:
        async with broker.AsyncConnection(broker.url) as connection:
            session = await start(connection.session())  # type: ignore[misc]
            assert isinstance(session, aio.Session)
            await session.close()

    asyncio.run(check())


def test_a_context_that_cannot_be_opened_raises(broker: Target) -> None:
    async def check() -> None:
        async with broker.AsyncConnection(broker.url) as connection, connection.session() as session:
            with pytest.raises(MessagingError, match="mode"):
                async with session.receiver("q; {mode: peek}"):
                    raise AssertionError("it was entered")

    asyncio.run(check())
