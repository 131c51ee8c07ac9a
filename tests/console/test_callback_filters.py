"""Selecting what a session receives."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from console.world import World
from support.recording import RecordingConsole
from support.scripted_agent import ALARM, PACKAGE, WIDGET, ScriptedAgent, widget

from qmf.console import ClassKey, Session
from qmf.errors import (
    CallerError,
)


def test_user_bindings_select_objects_and_events(world: World, qpidd: ScriptedAgent) -> None:
    console = RecordingConsole()
    session = world.session(console, userBindings=True)
    session.bindClass(PACKAGE, "widget")
    session.addBroker()

    async def talk(name: str) -> None:
        await qpidd.publish(widget(name))
        await qpidd.raise_event({"name": name})

    world.loop.run(talk("one"))
    console.wait("objectProps")
    assert console.of("event") == []
    session.bindEventKey(ClassKey(ALARM.key))
    session.bindEvent(PACKAGE)
    session.bindPackage(PACKAGE)
    session.bindClassKey(ClassKey(WIDGET.key))
    world.loop.run(talk("two"))
    console.wait("event")
    console.wait("objectProps", 2)
    world.loop.run(talk("three"))
    assert [event.arguments["name"] for _, event in console.wait("event", 2)] == ["two", "three"]
    assert [record.name for _, record in console.wait("objectProps", 3)] == ["one", "two", "three"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda s: s.bindPackage("x"), "bindPackage: the session needs userBindings=True"),
        (lambda s: s.bindClass("x"), "bindClass: the session needs userBindings=True"),
        (lambda s: s.bindEvent("x"), "bindEvent: the session needs userBindings=True"),
        (lambda s: s.bindAgent("x"), "bindAgent: the session needs userBindings=True"),
        (lambda s: s.addEventFilter(event="x"), "an event needs its package"),
    ],
)
def test_bindings_that_can_not_be_are_refused(world: World, call: Callable[[Session], None], words: str) -> None:
    with pytest.raises(CallerError, match=words):
        call(world.session(RecordingConsole()))


def test_user_bindings_need_what_they_bind(world: World) -> None:
    with pytest.raises(CallerError, match="userBindings=True needs a console"):
        Session(userBindings=True)
    session = world.session(RecordingConsole(), userBindings=True, rcvObjects=False, rcvEvents=False)
    with pytest.raises(CallerError, match="rcvObjects=True"):
        session.bindClass("x")
    with pytest.raises(CallerError, match="rcvEvents=True"):
        session.bindEvent("x")
    with pytest.raises(CallerError, match="labels name QMFv1 agents"):
        session.bindAgent(label="x")
    with pytest.raises(CallerError, match="give a vendor"):
        session.bindAgent()


def test_agents_are_selected_but_never_the_broker(world: World, qpidd: ScriptedAgent) -> None:
    world.agent("example.org:widgets:1")
    world.agent("other.org:things:1")
    console = RecordingConsole()
    session = world.session(console, userBindings=True)
    session.bindAgent("example.org", "*")
    session.addBroker()
    assert {agent.core.vendor for (agent,) in console.wait("newAgent", 2)} == {"apache.org", "example.org"}
    assert len(session.getAgents()) == 3


@pytest.mark.parametrize("add", [Session.addHeartbeatFilter, Session.addAgentFilter])
def test_heartbeat_filters(world: World, add: Callable[..., None]) -> None:
    wanted, other = world.agent("example.org:widgets:1"), world.agent("other.org:things:1")
    console = RecordingConsole()
    session = world.session(console)
    add(session, "example.org", "widgets")
    session.addBroker()
    world.loop.run(other.heartbeat())
    world.loop.run(wanted.heartbeat())
    ((agent, _),) = console.wait("heartbeat")
    assert agent.getAgentBank() == wanted.info.name


def test_event_filters_replace_the_default(world: World, qpidd: ScriptedAgent) -> None:
    console = RecordingConsole()
    session = world.session(console)
    session.addBroker()
    session.addEventFilter(package=PACKAGE, severity="crit")

    async def talk() -> None:
        await qpidd.raise_event({"name": "warn"}, severity=4)
        await qpidd.raise_event({"name": "crit"}, severity=2)

    world.loop.run(talk())
    ((_, event),) = console.wait("event")
    assert event.arguments["name"] == "crit"
