"""Clients that want to be the only connection of their container, by frames."""

from __future__ import annotations

import asyncio

import pytest
from broker.raw_clients import AMQP, connect, frame, usable
from broker.visible_broker import VisibleBroker

from qmf.broker import Broker
from qmf.codec import Described, UInt32, UInt64
from qmf.codec.amqp10 import decode
from qmf.codec.types import Symbol

SOLE = "sole-connection-for-container"
OPEN, CLOSE, BEGIN = 0x10, 0x18, 0x11


class Peer:
    """A client that writes frames and reads them."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def read(self, code: int) -> list[object]:
        """The fields of the next frame of this kind."""
        async with asyncio.timeout(30):
            while True:
                head = await self.reader.readexactly(8)
                if head == AMQP:
                    continue
                body = await self.reader.readexactly(int.from_bytes(head[:4]) - 8)
                if body and isinstance(performative := decode(body)[0], Described) and performative.descriptor == code:
                    assert isinstance(performative.value, list)
                    return performative.value

    async def error(self) -> Described:
        """The error of the broker's close; the client answers it."""
        (error, *_) = await self.read(CLOSE)
        assert isinstance(error, Described)
        self.writer.write(frame(Described(UInt64(CLOSE), [])))
        return error

    async def works(self) -> None:
        """The connection can be used."""
        self.writer.write(frame(Described(UInt64(BEGIN), [None, UInt32(0), UInt32(9), UInt32(9)])))
        await self.read(BEGIN)


async def peer(broker: Broker, container: str = "one", *, sole: bool = True, policy: int | None = None) -> Peer:
    """A client that has sent its open."""
    made = Peer(*await connect(broker))
    properties = None if policy is None else {Symbol("sole-connection-enforcement-policy"): UInt32(policy)}
    desired = Symbol(SOLE) if sole else None
    fields = [container, None, None, None, None, None, None, None, desired, properties]
    made.writer.write(AMQP + frame(Described(UInt64(OPEN), fields)))
    return made


def failed(opening: list[object]) -> bool:
    properties = opening[9]
    assert isinstance(properties, dict)
    return properties.get("amqp:connection-establishment-failed") is True


async def refused(made: Peer) -> None:
    assert failed(await made.read(OPEN))
    error = await made.error()
    assert isinstance(error.value, list)
    assert error.value[0] == "amqp:invalid-field"
    assert error.value[1] == "container 'one' has a connection, and may have one only"
    assert error.value[2] == {"invalid-field": "container-id"}
    made.writer.close()


async def granted(made: Peer) -> None:
    opening = await made.read(OPEN)
    assert not failed(opening)
    assert isinstance(opening[7], list)
    assert SOLE in opening[7]
    await made.works()


@pytest.mark.parametrize(("first", "second"), [(True, True), (True, False), (False, True)])
async def test_a_second_connection_is_refused(first: bool, second: bool) -> None:
    async with VisibleBroker(port=0) as broker:
        one = await peer(broker, sole=first)
        await granted(one)
        await refused(await peer(broker, sole=second))
        await refused(await peer(broker, sole=second, policy=0))
        other = await peer(broker, "another", sole=second)
        await granted(other)
        await one.works()
        # Once it has closed its connection it can make another one.
        one.writer.write(frame(Described(UInt64(CLOSE), [])))
        await one.read(CLOSE)
        again = await peer(broker)
        await granted(again)
        for made in (one, other, again):
            made.writer.close()
        await usable(broker)


async def test_nothing_is_refused_where_nobody_asks() -> None:
    async with VisibleBroker(port=0) as broker:
        made = [await peer(broker, sole=False) for _ in range(3)]
        for each in made:
            await granted(each)
            each.writer.close()


async def test_the_existing_connection_is_closed_where_that_is_asked_for() -> None:
    async with VisibleBroker(port=0) as broker:
        one = await peer(broker)
        await granted(one)
        two = await peer(broker, policy=1)
        await granted(two)
        error = await one.error()
        assert isinstance(error.value, list)
        assert error.value[0] == "amqp:resource-locked"
        assert error.value[2] == {"sole-connection-enforcement": True}
        one.writer.close()
        await refused(await peer(broker))  # the end of the first one does not end the second one's claim
        await two.works()
        two.writer.close()
