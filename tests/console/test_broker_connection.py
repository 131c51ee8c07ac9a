"""Connections to brokers: managed ones come back, others stay lost."""

from __future__ import annotations

import asyncio

import pytest
from console.world import World, first
from support.recording import RecordingConsole
from support.scripted_agent import PACKAGE, ScriptedAgent, widget

from qmf.errors import (
    CallerError,
    DisconnectedError,
    NotFoundError,
)


def test_a_managed_connection_is_made_as_soon_as_it_can_be(world: World, qpidd: ScriptedAgent) -> None:
    console = RecordingConsole()
    world.exchange.stop()
    session = world.session(console, manageConnections=True)
    broker = session.addBroker()
    assert console.wait("brokerConnectionFailed")[0] == (broker,)
    assert not broker.isConnected()
    assert "the exchange is stopped" in str(broker.getError())
    with pytest.raises(CallerError, match=r"not connected: localhost:5672: .*the exchange is stopped"):
        session.getObjects(_class="widget")
    world.exchange.start()
    console.wait("brokerConnected")
    assert broker.getError() is None
    assert world.reconnect[-1] is True


def test_a_managed_connection_comes_back_and_knows_its_agents_again(world: World, qpidd: ScriptedAgent) -> None:
    console = RecordingConsole()
    session = world.session(console, manageConnections=True)
    broker = session.addBroker()
    console.wait("newAgent")
    world.exchange.drop("cable cut")
    assert console.wait("brokerDisconnected") == [(broker,)]
    assert len(console.of("delAgent")) == 1
    console.wait("brokerConnected", 2)
    assert broker.isConnected()
    world.loop.run(_beating(qpidd, console))
    assert len(first(session).getProperties()) == 3


async def _beating(agent: ScriptedAgent, console: RecordingConsole) -> None:
    async with asyncio.timeout(5):
        while len(console.of("newAgent")) < 2:
            if agent.bus.connected:
                await agent.heartbeat()
            await asyncio.sleep(0.005)


def test_bindings_made_while_disconnected_are_caught_up_with(world: World, qpidd: ScriptedAgent) -> None:
    console = RecordingConsole()
    session = world.session(console, manageConnections=True, userBindings=True)
    session.addBroker()
    console.wait("brokerConnected")
    world.exchange.stop("maintenance")
    console.wait("brokerDisconnected")
    session.bindClass(PACKAGE, "widget")
    world.exchange.start()
    console.wait("brokerConnected", 2)
    world.loop.run(_publishing(qpidd, console))
    assert console.of("objectProps")[0][1].name == "w"


async def _publishing(agent: ScriptedAgent, console: RecordingConsole) -> None:
    async with asyncio.timeout(5):
        while not console.of("objectProps"):
            if agent.bus.connected:
                await agent.publish(widget("w"))
            await asyncio.sleep(0.005)


def test_an_unmanaged_connection_stays_lost(world: World, qpidd: ScriptedAgent) -> None:
    console = RecordingConsole()
    session = world.session(console)
    broker = session.addBroker()
    obj = first(session)
    world.exchange.drop("cable cut")
    console.wait("brokerDisconnected")
    assert broker.getError() == "cable cut"
    assert broker.getAgents() == []
    with pytest.raises(CallerError, match="not connected: localhost:5672: cable cut"):
        session.getObjects(_class="widget")
    with pytest.raises((DisconnectedError, NotFoundError)):
        obj.update()
