"""What a sender's link does with messages that can leave at once, and with those that can't."""

from __future__ import annotations

import asyncio

import pytest
from bus.peer import Peer, serving

from qmf.bus.engine.events import Delivery, EngineEvent, LinkRequested
from qmf.bus.engine.values import Outcome
from qmf.bus.transport import AmqpTransport
from qmf.messaging import Empty, InsufficientCapacity, TargetCapacityExceeded
from qmf.messaging.aio import Connection
from qmf.messaging.contents import decode


class _Peer:
    """Grants links with little credit, and gives some more for each message that it accepts."""

    def __init__(self, credit: int, *, silent: bool = False) -> None:
        self.credit = credit
        self.silent = silent
        self.waiting: list[Delivery] = []

    def __call__(self, peer: Peer, event: EngineEvent) -> None:
        if isinstance(event, LinkRequested):
            peer.grant(event.link, self.credit)
        elif isinstance(event, Delivery):
            self.waiting.append(event)
            if not self.silent:
                self.answer(peer)

    def answer(self, peer: Peer, outcome: Outcome = Outcome.ACCEPTED) -> None:
        """Answer the first message that waits for it."""
        event = self.waiting.pop(0)
        assert event.delivery_tag is not None
        peer.engine.decisions.settle(event.link, event.delivery_tag, outcome, "amqp:resource-limit-exceeded")
        peer.engine.links.add_credit(event.link, 1)
        peer.transport.flush_soon()


@pytest.mark.parametrize("credit", [1, 2, 7, 100])
async def test_messages_leave_in_order_whatever_is_in_their_way(credit: int) -> None:
    async with serving(_Peer(credit)) as peers, Connection(peers.url) as connection:
        sender = await (await connection.session()).sender("node")
        for number in range(40):
            await sender.send(str(number), sync=number % 5 == 4)
        await sender.sync()
        texts = [decode(body).content for body in peers.all[0].bodies]
    assert texts == [str(number) for number in range(40)]


async def test_programs_that_wait_for_answers_get_their_own() -> None:
    script = _Peer(10, silent=True)
    async with serving(script) as peers, Connection(peers.url) as connection:
        sender = await (await connection.session()).sender("node")
        first, second = (asyncio.ensure_future(sender.send(text)) for text in ("first", "second"))
        while len(script.waiting) < 2:
            await asyncio.sleep(0)
        script.answer(peers.all[0])
        await first
        assert not second.done()
        script.answer(peers.all[0], Outcome.REJECTED)
        with pytest.raises(TargetCapacityExceeded):
            await second
        assert sender.unsettled() == 0


async def test_capacity_counts_messages_that_left_at_once() -> None:
    script = _Peer(10, silent=True)
    async with serving(script) as peers, Connection(peers.url) as connection:
        sender = await (await connection.session()).sender("node", capacity=2)
        await sender.send("first", sync=False)
        await sender.send("second", sync=False)
        with pytest.raises(InsufficientCapacity):
            await sender.send("third", sync=False, timeout=0.01)
        while len(script.waiting) < 2:
            await asyncio.sleep(0)
        script.answer(peers.all[0])
        await sender.send("third", sync=False, timeout=10)
        sender.capacity = 0
        with pytest.raises(InsufficientCapacity, match="capacity of the sender to 'node' is 0"):
            await sender.send("fourth")
        while script.waiting or sender.unsettled():
            if script.waiting:
                script.answer(peers.all[0])
            await asyncio.sleep(0)


async def test_the_refusal_of_an_earlier_message_is_raised_before_another_leaves() -> None:
    script = _Peer(10, silent=True)
    async with serving(script) as peers, Connection(peers.url) as connection:
        sender = await (await connection.session()).sender("node")
        await sender.send("first", sync=False)
        while not script.waiting:
            await asyncio.sleep(0)
        script.answer(peers.all[0], Outcome.REJECTED)
        while sender.unsettled():
            await asyncio.sleep(0)
        with pytest.raises(TargetCapacityExceeded):
            await sender.send("second", sync=False)
        assert not script.waiting
        script.silent = False
        await sender.send("third")
        assert len(peers.all[0].bodies) == 2


async def test_a_request_after_a_wait_for_messages_leaves_before_the_program_goes_on(
    embedded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    writes: list[AmqpTransport] = []

    def write_now(transport: AmqpTransport) -> None:
        writes.append(transport)
        write(transport)

    write = AmqpTransport.write_now
    monkeypatch.setattr(AmqpTransport, "write_now", write_now)
    async with Connection(embedded) as connection:
        session = await connection.session()
        sender, receiver = await session.sender("#"), await session.receiver("#", capacity=10)
        for _ in range(2):
            with pytest.raises(Empty):
                await receiver.fetch(timeout=0.01)
            writes.clear()
            await sender.send("request", sync=False)
            assert len(writes) == 1
            await sender.send("no request", sync=False)
            assert len(writes) == 1  # of many, several leave together
            await session.sync()
