"""Links on which a client sends, against a scripted peer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest
from bus.peer import serving
from bus.scripted import DATA, ScriptedBroker
from support.recording import BusEvents, message
from support.waiting import until

from qmf.bus import AmqpBus, LinkLost
from qmf.bus.client.bus_link import MAX_REATTACHMENTS
from qmf.bus.client.sender_link import MAX_BATCH
from qmf.bus.engine.deliveries import Deliveries
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome
from qmf.errors import DisconnectedError, LinkError, NetworkError


@pytest.mark.parametrize("outcome", [Outcome.REJECTED, Outcome.RELEASED, Outcome.MODIFIED])
async def test_a_refused_message_raises_with_confirm_and_is_reported_to_watchers_otherwise(outcome: Outcome) -> None:
    script = ScriptedBroker()
    script.outcome = outcome
    condition = "amqp:not-allowed" if outcome is Outcome.REJECTED else f"amqp:{outcome.value}"
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        with pytest.raises(LinkError) as caught:
            await bus.send(DATA, confirm=True)
        assert caught.value.condition == condition
        assert events.of(LinkLost) == []
        await bus.send(DATA)
        lost = await events.wait(LinkLost)
        assert isinstance(lost, LinkLost)
        assert (lost.address, lost.condition, lost.reopened) == ("", condition, True)
        await bus.close()


async def test_try_send_reports_why_a_message_was_refused_or_lost() -> None:
    script = ScriptedBroker()
    outcomes: list[NetworkError | None] = []
    async with serving(script) as peers:
        bus = AmqpBus(peers.url, reconnect=False)
        events = BusEvents(bus)
        await bus.open()
        assert not bus.try_send(DATA, outcomes.append)  # there is no link yet
        await bus.send(DATA, confirm=True)
        script.outcome = Outcome.REJECTED
        assert bus.try_send(DATA, outcomes.append)
        await until(lambda: outcomes, "the refusal")
        assert isinstance(outcomes[0], LinkError)
        assert outcomes[0].condition == "amqp:not-allowed"
        script.silent = True
        assert bus.try_send(DATA, outcomes.append)
        await until(lambda: len(peers.all[0].bodies) == 3, "the message")
        peers.all[0].transport.abort()
        await until(lambda: len(outcomes) == 2, "the end")
        assert isinstance(outcomes[1], DisconnectedError)
        assert events.of(LinkLost) == []
        await bus.close()


async def test_try_send_does_not_overtake_messages_that_wait() -> None:
    script = ScriptedBroker()
    script.credit = 1
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(DATA, confirm=True)
        waiting = asyncio.create_task(bus.send(DATA))
        await asyncio.sleep(0)
        assert not bus.try_send(DATA, lambda _: None)
        peer = peers.all[0]
        peer.engine.links.add_credit(peer.links[0], 5)
        peer.transport.flush_soon()
        await waiting
        assert bus.try_send(DATA, lambda _: None)
        await until(lambda: len(peer.bodies) == 3, "all messages")
        await bus.close()


async def test_messages_of_one_turn_leave_together_and_in_order() -> None:
    script = ScriptedBroker()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(DATA, confirm=True)
        outcomes: list[NetworkError | None] = []
        sent = [message("somewhere", "x", str(number)) for number in range(50)]
        for data in sent[:40]:
            assert bus.try_send(data, outcomes.append)
        await bus.send(sent[40])
        for data in sent[41:]:
            assert bus.try_send(data, outcomes.append)
        assert outcomes == []
        await bus.close()  # waits for outcomes
        assert outcomes == [None] * 49
        assert peers.all[0].bodies == [DATA, *sent]


async def test_many_messages_of_one_turn_leave_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    script = ScriptedBroker()
    together: list[int] = []
    send_all = Deliveries.send_all

    def counting(self: Deliveries, link: Link, messages: list[bytes], start: int, backlog: int) -> Sequence[int]:
        together.append(len(messages))
        return send_all(self, link, messages, start, backlog)

    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(DATA, confirm=True)
        monkeypatch.setattr(Deliveries, "send_all", counting)
        for _ in range(2 * MAX_BATCH + 3):
            assert bus.try_send(DATA, lambda _: None)
        assert together == [MAX_BATCH, MAX_BATCH]
        await until(lambda: len(peers.all[0].bodies) == 2 * MAX_BATCH + 4, "all messages")
        assert together == [MAX_BATCH, MAX_BATCH, 3]
        await bus.close()


async def test_try_send_takes_what_there_is_credit_for() -> None:
    script = ScriptedBroker()
    script.credit = 5
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(DATA, confirm=True)
        outcomes: list[NetworkError | None] = []
        assert [bus.try_send(DATA, outcomes.append) for _ in range(6)] == [True] * 4 + [False] * 2
        await until(lambda: len(outcomes) == 4, "the outcomes")
        assert len(peers.all[0].bodies) == 5
        await bus.close()


async def test_messages_of_a_turn_in_which_the_connection_ends_fail() -> None:
    async with serving(ScriptedBroker()) as peers:
        bus = AmqpBus(peers.url, reconnect=False)
        await bus.open()
        await bus.send(DATA, confirm=True)
        outcomes: list[NetworkError | None] = []
        peers.all[0].transport.abort()
        sent = 0
        while bus.connected:
            sent += bus.try_send(DATA, outcomes.append)
            await asyncio.sleep(0)
        assert len(outcomes) == sent
        assert isinstance(outcomes[-1], DisconnectedError)
        await bus.close()


async def test_messages_of_a_turn_in_which_the_link_is_detached_are_sent_on_the_next_one() -> None:
    script = ScriptedBroker()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(DATA, confirm=True)
        peer, outcomes, sent = peers.all[0], list[NetworkError | None](), 0
        peer.engine.links.detach(peer.links[0], "amqp:precondition-failed", "no more")
        peer.transport.flush_soon()
        while len(peer.links) == 1:
            sent += bus.try_send(DATA, outcomes.append)
            await asyncio.sleep(0)
        await until(lambda: len(outcomes) == sent, "all outcomes")
        assert {type(outcome) for outcome in outcomes} <= {LinkError, type(None)}
        await bus.send(DATA, confirm=True)
        await bus.close()


async def test_a_detached_link_is_attached_again_and_that_is_reported() -> None:
    script = ScriptedBroker()
    script.detach = 1
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        with pytest.raises(LinkError, match="bad message"):
            await bus.send(DATA, confirm=True)
        await bus.send(DATA, confirm=True)
        assert events.of(LinkLost) == [LinkLost("", "amqp:precondition-failed", "bad message", reopened=True)]
        assert len(peers.all) == 1
        await bus.close()


async def test_a_link_that_is_detached_every_time_is_attached_after_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.bus.client.sender_link.PAUSE", 0.3)
    script = ScriptedBroker()
    script.detach = MAX_REATTACHMENTS + 2
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        loop = asyncio.get_running_loop()
        times = []
        for _ in range(MAX_REATTACHMENTS + 2):
            with pytest.raises(LinkError):
                await bus.send(DATA, confirm=True)
            times.append(loop.time())
        await bus.send(DATA, confirm=True)
        times.append(loop.time())
        # Half of the pause: on a busy machine the error before it may have been seen late.
        assert times[-1] - times[-2] > 0.15
        assert times[-2] - times[-3] > 0.15
        assert len(script.requests) == MAX_REATTACHMENTS + 3
        await bus.close()


async def test_while_a_link_is_refused_messages_fail_at_once_and_it_is_tried_again_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qmf.bus.client.sender_link.PAUSE", 0.1)
    script = ScriptedBroker()
    script.refuse = 1
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        with pytest.raises(LinkError, match="not you"):
            await bus.send(DATA, confirm=True)
        with pytest.raises(LinkError, match="not you"):
            await bus.send(DATA, confirm=True)
        await bus.send(DATA)
        assert len(script.requests) == 1
        assert events.of(LinkLost) == [LinkLost("", "amqp:unauthorized-access", "not you", reopened=False)]
        await asyncio.sleep(0.11)
        await bus.send(DATA, confirm=True)
        assert len(script.requests) == 2
        await bus.close()


async def test_sending_waits_for_credit() -> None:
    script = ScriptedBroker()
    script.credit = 2
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(DATA, confirm=True)
        await bus.send(DATA, confirm=True)
        third = asyncio.create_task(bus.send(DATA, confirm=True))
        fourth = asyncio.create_task(bus.send(message("somewhere", "x", "fourth"), confirm=True))
        await asyncio.sleep(0.03)
        assert not third.done()
        third.cancel()
        (peer,) = peers.all
        peer.engine.links.add_credit(peer.links[0], 1)
        peer.transport.flush_soon()
        await fourth
        assert third.cancelled()
        assert len(peer.bodies) == 3
        assert b"fourth" in peer.bodies[-1]
        await bus.close()


async def test_messages_that_wait_for_credit_or_confirmation_fail_when_the_connection_is_lost() -> None:
    script = ScriptedBroker()
    script.credit = 1
    script.silent = True
    async with serving(script) as peers:
        bus = AmqpBus(peers.url, reconnect=False)
        await bus.open()
        tasks = [asyncio.create_task(bus.send(DATA, confirm=True)) for _ in range(3)]
        await until(lambda: peers.all[0].bodies, "the first message")
        peers.all[0].transport.abort()
        for result in await asyncio.gather(*tasks, return_exceptions=True):
            assert isinstance(result, DisconnectedError)
        await bus.close()
