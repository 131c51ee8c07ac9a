"""Callbacks of the published API: which are called, and on which thread."""

from __future__ import annotations

import re
import threading

import pytest
from console.world import World, first, started_since
from support.recording import RecordingConsole
from support.scripted_agent import ALARM, PACKAGE, ScriptedAgent, part, widget

from qmf.broker import EmbeddedBroker
from qmf.console import Agent, Broker, ClassKey, Console, DebugConsole, Event, Session


def test_every_callback_is_made(world: World, qpidd: ScriptedAgent) -> None:
    console = RecordingConsole()
    session = world.session(console)
    broker = session.addBroker()
    assert console.wait("brokerConnected") == [(broker,)]
    ((agent,),) = console.wait("newAgent")
    assert agent is broker.getBrokerAgent()
    assert console.wait("brokerInfo") == [(broker,)]
    assert broker.getBrokerId() is not None
    assert console.wait("newPackage") == [(PACKAGE,)]
    kinds = {key.getClassName(): kind for kind, key in console.wait("newClass", 2)}
    assert kinds == {"widget": 1, "widgetAlarm": 2}
    world.loop.run(qpidd.publish(widget("w")))
    ((_, record),) = console.wait("objectProps")
    assert record.name == "w"
    assert len(console.wait("objectStats")) == 1
    world.loop.run(qpidd.publish(part("w", {"turns": 9})))
    _, record = console.wait("objectStats", 2)[1]
    assert (record.turns, record.name, len(console.of("objectProps"))) == (9, "w", 1)
    world.loop.run(qpidd.raise_event({"name": "a b", "level": 3, "since": 0}))
    ((_, event),) = console.wait("event")
    printed = "Thu Jan 29 19:53:19 2009 WARN  org.example.widgets:widgetAlarm broker=localhost:5672 "
    assert repr(event) == printed + 'name="a b" level=3 since="Thu Jan  1 00:00:00 1970"'
    assert (event.getArguments()["level"], event.getTimestamp(), event.severity) == (3, 1_233_258_799_000_000_000, 4)
    assert (event.getClassKey(), event.isV2) == (ClassKey(ALARM.key), True)
    assert event.getSchema().kind == 2
    assert (event.agent, event.broker, event.session) == (agent, broker, session)
    world.loop.run(qpidd.heartbeat())
    assert console.wait("heartbeat") == [(agent, qpidd.info.timestamp)]
    qpidd.restart()
    world.loop.run(qpidd.heartbeat())
    assert console.wait("delAgent") == [(agent,)]
    assert len(console.wait("newAgent", 2)) == 2
    session.delBroker(broker)
    assert console.wait("brokerDisconnected") == [(broker,)]
    assert len(console.of("delAgent")) == 2


def test_a_callback_may_call_the_session_and_its_error_is_logged(
    world: World, qpidd: ScriptedAgent, caplog: pytest.LogCaptureFixture
) -> None:
    found: list[str] = []
    done = threading.Event()

    class Calling(Console):
        def newAgent(self, agent: Agent) -> None:
            found.extend(obj.name for obj in agent.getObjects(_class="widget"))
            raise ZeroDivisionError("oops")

        def brokerInfo(self, broker: Broker) -> None:
            done.set()

    world.session(Calling()).addBroker()
    assert done.wait(5)
    assert found == ["w"]
    assert "callback newAgent failed" in caplog.text


def test_a_callback_may_close_the_session(world: World, qpidd: ScriptedAgent) -> None:
    done = threading.Event()
    sessions: list[Session] = []
    ready = threading.Event()

    class Closing(Console):
        def newAgent(self, agent: Agent) -> None:
            ready.wait(5)
            sessions[0].close()
            done.set()

    before = threading.enumerate()
    session = world.session(Closing())
    sessions.append(session)
    session.addBroker()
    ready.set()
    assert done.wait(5)
    assert "qmf-console" not in started_since(before)


@pytest.mark.slow
def test_the_embedded_broker_is_identified_and_its_agent_has_the_bank_of_a_broker() -> None:
    console = RecordingConsole()
    with EmbeddedBroker(management=3600.0) as embedded, Session(console) as session:
        broker = session.addBroker(embedded.url)
        assert console.wait("brokerInfo") == [(broker,)]
        (vhost,) = session.getObjects(_class="vhost")
        assert str(broker.getBrokerId()) == vhost.federationTag
        ((agent,),) = console.wait("newAgent")
        assert agent.getAgentBank() == "0"


def test_options_choose_the_callbacks(world: World, qpidd: ScriptedAgent) -> None:
    console = RecordingConsole()
    world.session(console, rcvObjects=False, rcvEvents=False, rcvHeartbeats=False).addBroker()
    console.wait("newClass", 2)

    async def talk() -> None:
        await qpidd.publish(widget("w"))
        await qpidd.raise_event({"name": "w"})
        await qpidd.heartbeat()
        qpidd.restart()
        await qpidd.heartbeat()

    world.loop.run(talk())
    console.wait("delAgent")
    assert not {"objectProps", "objectStats", "event", "heartbeat"} & {name for name, _ in console.calls}


def test_the_debug_console_prints_everything(
    world: World, qpidd: ScriptedAgent, capsys: pytest.CaptureFixture[str]
) -> None:
    session = world.session(DebugConsole())
    session.addBroker()
    obj = first(session)
    obj.echo(1, "x", _async=True)
    printed = ""

    def seen(word: str) -> bool:
        nonlocal printed
        printed += capsys.readouterr().out
        return word in printed

    deadline = threading.Event()
    for _ in range(500):
        if seen("methodResponse:") and seen("brokerInfo:"):
            break
        deadline.wait(0.01)
    session.close()
    printed += capsys.readouterr().out
    for name in ("brokerConnected", "newAgent", "newPackage", "newClass", "brokerInfo", "methodResponse", "delAgent"):
        assert re.search(rf"^{name}: ", printed, re.MULTILINE), printed


def test_event_is_what_the_console_gets() -> None:
    assert Event.__doc__ is not None
