"""The links on which a connection sends, by exchange."""

from __future__ import annotations

import pytest
from bus.peer import serving
from bus.scripted import GrantingBroker, ScriptedBroker
from support.recording import message

from qmf.bus import AmqpBus
from qmf.bus.client.sender_links import MAX_SENDER_LINKS
from qmf.bus.engine.values import Terminus


async def test_without_anonymous_relay_each_destination_has_its_own_link() -> None:
    script = ScriptedBroker()
    async with serving(script, capabilities=()) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        for to in ("one", "two", "one"):
            await bus.send(message(to, "key"), confirm=True)
        assert script.requests == [Terminus("one"), Terminus("two")]
        await bus.close()


async def test_without_anonymous_relay_links_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.bus.client.sender_links.MAX_SENDER_LINKS", 3)
    script = ScriptedBroker()
    async with serving(script, capabilities=()) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        for to in ("a", "b", "c", "a", "d", "b"):
            await bus.send(message(to, "key"), confirm=True)
        assert [node.address for node in script.requests if node] == ["a", "b", "c", "d", "b"]
        await bus.close()


async def test_refused_links_do_not_displace_good_ones() -> None:
    script = GrantingBroker()
    async with serving(script, capabilities=()) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(message("there", "k", "x"), confirm=True)
        for number in range(3 * MAX_SENDER_LINKS):
            await bus.send(message(f"gone-{number}", "k", "x"))
        before = script.links
        await bus.send(message("there", "k", "x"), confirm=True)
        assert script.links == before
        await bus.close()
