"""The published API against scripted agents on a memory bus."""

from __future__ import annotations

import asyncio
import re
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.recording import RecordingConsole
from support.scripted_agent import ALARM, PACKAGE, WIDGET, ScriptedAgent, part, widget

from qmf.bus import Backoff, Bus, MemoryBus, MemoryExchange
from qmf.console import Agent, Broker, ClassKey, Console, DebugConsole, Event, LoopThread, Object, ObjectId, Session
from qmf.console.broker_options import BrokerOptions
from qmf.errors import (
    CallerError,
    ConnectError,
    ConstraintError,
    DisconnectedError,
    NotFoundError,
    RemoteError,
    RequestTimeout,
)
from qmf.protocol import ExceptionResponse, MethodRequest, MethodResponse, QueryRequest


class World:
    """Scripted agents on a loop of their own, and sessions on their bus."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.exchange = MemoryExchange()
        self.loop = LoopThread("test-agents")
        self.agents: list[ScriptedAgent] = []
        self.sessions: list[Session] = []
        self.reconnect: list[bool] = []
        self.monkeypatch = monkeypatch

        def make_bus(options: BrokerOptions, *, reconnect: bool) -> Bus:
            self.reconnect.append(reconnect)
            return MemoryBus(self.exchange, reconnect=reconnect, backoff=Backoff(first=0.001, limit=0.01))

        monkeypatch.setattr(BrokerOptions, "make_bus", make_bus)
        monkeypatch.setattr("qmf.console.broker_connection.FIRST_DELAY", 0.001)

    def agent(self, name: str = "example.org:widgets:1", **options: Any) -> ScriptedAgent:
        async def start() -> ScriptedAgent:
            return await ScriptedAgent(self.exchange, name, **options).start()

        agent = self.loop.run(start())
        self.agents.append(agent)
        return agent

    def session(self, console: Console | None = None, **options: Any) -> Session:
        # Long enough for the agents there are, however busy the machine; no longer where there is none to wait for.
        self.monkeypatch.setattr("qmf.console.broker_connection.SETTLE", 3.0 if self.agents else 0.01)
        self.monkeypatch.setattr("qmf.console.aio.agents.tracker.QUIET", 0.01 if len(self.agents) < 2 else 0.15)
        session = Session(console, **options)
        self.sessions.append(session)
        return session

    def close(self) -> None:
        for session in self.sessions:
            session.close()
        for agent in self.agents:
            self.loop.run(agent.bus.close())
        self.loop.stop()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    made = World(monkeypatch)
    yield made
    made.close()


@pytest.fixture
def qpidd(world: World) -> ScriptedAgent:
    agent = world.agent(qpidd=True)
    agent.objects = [widget("w")]
    return agent


def started_since(before: list[threading.Thread]) -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread not in before]


def first(session: Session, **arguments: Any) -> Object:
    return session.getObjects(_class="widget", **arguments)[0]


def test_a_broker_is_added_and_deleted(world: World, qpidd: ScriptedAgent) -> None:
    session = world.session()
    assert repr(session) == "QMF Console Session Manager (brokers: 0)"
    broker = session.addBroker("user/secret@somewhere:1234")
    assert broker.isConnected()
    assert repr(broker) == "Broker connected at: somewhere:1234"
    assert (str(broker.getUrl()), broker.getFullUrl()) == ("somewhere:1234", "amqp://user/secret@somewhere:1234")
    assert (broker.getError(), broker.getBrokerBank(), broker.getSessionId()[:15]) == (None, 1, "direct-console.")
    assert (broker.host, broker.port, broker.authUser, broker.session) == ("somewhere", 1234, "user", session)
    assert session.brokers == [broker]
    assert world.reconnect == [False]
    with pytest.raises(CallerError, match=r"AMQP 1\.0"):
        broker.getAmqpSession()
    session.delBroker(broker)
    assert repr(broker) == "Disconnected Broker"
    assert session.brokers == []
    with pytest.raises(NotFoundError):
        session.delBroker(broker)


def test_guest_is_left_out_of_the_full_url(world: World) -> None:
    broker = world.session().addBroker("guest/guest@h")
    assert broker.getFullUrl() == "amqp://h:5672"
    assert broker.getFullUrl(noAuthIfGuestDefault=False) == "amqp://guest/guest@h:5672"


def test_an_unreachable_broker_raises(world: World) -> None:
    world.exchange.stop()
    session = world.session()
    with pytest.raises(ConnectError, match="the exchange is stopped"):
        session.addBroker()
    assert session.brokers == []
    world.exchange.start()
    assert session.addBroker().isConnected()


def test_a_session_ends_with_its_block_and_can_begin_again(world: World) -> None:
    before = threading.enumerate()
    with world.session() as session:
        session.addBroker()
        assert started_since(before) == ["qmf-console"]
    assert started_since(before) == []
    session.close()
    assert session.addBroker().isConnected()
    session.close()


def test_without_a_broker_calls_say_what_to_do(world: World) -> None:
    session = world.session()
    for call in (session.getPackages, lambda: session.getObjects(_class="widget"), lambda: session.getClasses("x")):
        with pytest.raises(CallerError, match="no broker: call addBroker first"):
            call()
    assert session.getAgents() == []


def test_agents(world: World, qpidd: ScriptedAgent) -> None:
    other = world.agent()
    session = world.session()
    broker = session.addBroker()
    agents = {agent.getAgentBank(): agent for agent in session.getAgents()}
    assert set(agents) == {"0", other.info.name}
    mine = agents["0"]
    assert repr(mine) == "Agent(v2) at bank 1.0 (BrokerAgent)"
    assert repr(agents[other.info.name]) == f"Agent(v2) at bank 1.{other.info.name} (QMFv2 Agent)"
    assert (mine.getBroker(), mine.session, mine.broker, mine.getBrokerBank()) == (broker, session, broker, 1)
    assert (mine.isV2, mine.epoch, mine.label) == (True, 1, "BrokerAgent")
    assert (mine.getV2RoutingKey(), agents[other.info.name].getV2RoutingKey()) == ("broker", other.info.name)
    assert broker.getAgent(1, 0) is broker.getBrokerAgent() is mine
    assert broker.getAgent(1, "nobody") is None
    assert session.getAgents(broker) == list(agents.values()) or len(session.getAgents(broker)) == 2


def test_packages_classes_and_schemas(world: World, qpidd: ScriptedAgent) -> None:
    session = world.session()
    session.addBroker()
    assert session.getPackages() == [PACKAGE]
    keys = session.getClasses(PACKAGE)
    assert {(key.getClassName(), key.getType()) for key in keys} == {("widget", "_data"), ("widgetAlarm", "_event")}
    assert session.getClasses("nothing") == []
    (key,) = [item for item in keys if item.getClassName() == "widget"]
    assert session.getSchema(key) is session.getSchema(ClassKey(repr(key)))
    assert [item.name for item in session.getSchema(key).getMethods()] == ["echo", "link", "stop"]
    with pytest.raises(NotFoundError):
        session.getSchema(ClassKey(f"a:b({ALARM.hash})"))


def test_an_object_has_all_the_published_getters(world: World, qpidd: ScriptedAgent) -> None:
    session = world.session()
    broker = session.addBroker()
    qpidd.objects = [widget("w", epoch=2, update=5)]
    obj = first(session)
    oid = obj.getObjectId()
    assert oid is not None
    assert repr(obj) == f"{PACKAGE}:widget[0-2-1-0-w] w"
    assert (obj.getIndex(), oid.getObject(), oid.getSequence()) == ("w", "w", 2)
    assert (obj.getBroker(), obj.getAgent()) == (broker, broker.getBrokerAgent())
    assert obj.getClassKey() == ClassKey(WIDGET.key)
    assert obj.getSchema().getKey() == obj.getClassKey()
    assert repr(obj.getMethods()) == "[echo(sequence, body), link(target, force), stop()]"
    assert obj.getTimestamps() == (5, 1, 0)
    assert (obj.isDeleted(), obj.isManaged(), obj.getV2RoutingKey()) == (False, True, "broker")
    assert [(str(item), value) for item, value in obj.getProperties()] == [
        ("name", "w"),
        ("level", 5),
        ("enabled", True),
    ]
    assert [str(item) for item, _ in obj.getStatistics()][-4:] == [
        "delaySamples",
        "delayMin",
        "delayMax",
        "delayAverage",
    ]
    assert (obj.name, obj.label, obj.delayAverage, obj.delayAvg) == ("w", None, 20, 20)
    assert {"name", "echo", "getIndex"} <= set(dir(obj))
    with pytest.raises(AttributeError, match="did you mean name"):
        _ = obj.nmae
    with pytest.raises(AttributeError, match="name has access RC: only its agent changes it"):
        obj.name = "v"
    with pytest.raises(AttributeError, match="did you mean level"):
        obj.leval = 3


def test_assigning_to_a_read_write_property_sets_it_at_the_agent(world: World, qpidd: ScriptedAgent) -> None:
    session = world.session()
    session.addBroker()
    obj = first(session)
    qpidd.methods["_set_properties"] = lambda _: MethodResponse()
    obj.level = 3
    (asked,) = [item.content for item in qpidd.asked if isinstance(item.content, MethodRequest)]
    assert (asked.method, dict(asked.arguments)) == ("_set_properties", {"level": 3})
    assert obj.level == 3
    with pytest.raises(ConstraintError, match="must be 1 to 9"):
        obj.level = 10
    qpidd.methods["_set_properties"] = lambda _: ExceptionResponse(text="not today", code=6)
    with pytest.raises(RemoteError, match="not today"):
        obj.level = 4
    assert obj.level == 3


def test_get_objects_selects(world: World, qpidd: ScriptedAgent) -> None:
    other = world.agent()
    other.objects = [widget("x"), widget("y", level=9)]
    session = world.session()
    broker = session.addBroker()
    obj = first(session, name="y")
    assert obj.level == 9
    assert len(session.getObjects(_class="widget")) == 3
    assert len(session.getObjects(_class="Widget", _package=PACKAGE)) == 3
    assert len(session.getObjects(_key=obj.getClassKey(), _broker=broker)) == 3
    assert [item.name for item in session.getObjects(_schema=obj.getSchema(), _agent=obj.getAgent())] == ["x", "y"]
    assert [item.name for item in session.getObjects(_objectId=obj.getObjectId())] == ["y"]
    agent = obj.getAgent()
    assert agent is not None
    assert [item.name for item in agent.getObjects(_class="widget", level=9)] == ["y"]
    with pytest.raises(NotFoundError, match="agent"):
        session.getObjects(_objectId=ObjectId.create("a:b:c", "x"))


def test_get_objects_tells_when_nobody_answers(world: World) -> None:
    agent = world.agent()
    agent.mute = {QueryRequest}
    session = world.session()
    session.addBroker()
    with pytest.raises(RequestTimeout):
        session.getObjects(_class="widget", _package=PACKAGE, _timeout=0.01)


def test_two_brokers_are_one_session(world: World) -> None:
    agent = world.agent()
    agent.objects = [widget("w")]
    session = world.session()
    one, two = session.addBroker("one"), session.addBroker("two")
    assert len(session.getAgents()) == 2
    assert len(session.getAgents(one)) == 1
    found = session.getObjects(_class="widget")
    assert {obj.getBroker() for obj in found} == {one, two}
    (obj,) = session.getObjects(_class="widget", _broker=two)
    assert obj.getBroker() is two
    assert session.getPackages() == [PACKAGE]
    with pytest.raises(CallerError, match="not reached through that broker"):
        session.getObjects(_class="widget", _broker=one, _agent=obj.getAgent())


def test_update_and_merge(world: World, qpidd: ScriptedAgent) -> None:
    session = world.session()
    session.addBroker()
    old = first(session)
    qpidd.objects = [widget("w", level=6, update=9), widget("v")]
    new = first(session)
    assert old.level == 5
    old.mergeUpdate(new)
    assert (old.level, old.getTimestamps()[0]) == (6, 9)
    with pytest.raises(CallerError, match="different objects"):
        old.mergeUpdate(first(session, name="v"))
    qpidd.objects = [widget("w", level=7)]
    old.update()
    assert old.level == 7
    qpidd.objects = []
    with pytest.raises(NotFoundError):
        old.update()


def test_references_are_dereferenced(world: World, qpidd: ScriptedAgent) -> None:
    qpidd.objects = [widget("w", parent={"_object_name": "p"}), widget("p")]
    session = world.session()
    session.addBroker()
    child = first(session, name="w")
    assert repr(child.parent) == "0-0-1-0-p"
    assert child._parent_.name == "p"
    assert child._parent_._parent_ is None
    with pytest.raises(AttributeError, match="name is not a reference"):
        _ = child._name_
    assert [obj.name for obj in session.getObjects(_class="widget", parent=child.parent)] == ["w"]
    qpidd.objects = qpidd.objects[:1]
    assert child._parent_ is None


def test_methods(world: World, qpidd: ScriptedAgent) -> None:
    session = world.session()
    session.addBroker()
    obj = first(session)
    for result in (obj.echo(1, "x"), obj.echo(1, body="x"), obj.echo(sequence=1, body="x", _timeout=5)):
        assert repr(result) == "OK (0) - {'sequence': 1, 'body': 'x'}"
        assert (result.status, result.text, result.body, result.nothing) == (0, "OK", "x", None)
    qpidd.methods["stop"] = lambda _: ExceptionResponse(text="jammed", code=7)
    assert repr(obj.stop()) == "jammed (7) - {}"
    qpidd.methods["stop"] = lambda _: ExceptionResponse(text="jammed")
    assert obj.stop().status == 7
    with pytest.raises(ConstraintError):
        obj.echo(1)
    with pytest.raises(NotFoundError):
        obj.echo(1, boddy="x")
    qpidd.mute = {MethodRequest}
    with pytest.raises(RequestTimeout):
        obj.echo(1, "x", _timeout=0.01)
    other = first(session)
    qpidd.mute = set()
    qpidd.methods["link"] = lambda _: ExceptionResponse(text="seen", code=1)
    assert obj.link(other).status == obj.link(other.getObjectId(), force=True).status == 1


def test_asynchronous_methods_answer_to_the_console(world: World, qpidd: ScriptedAgent) -> None:
    console = RecordingConsole()
    session = world.session(console)
    broker = session.addBroker()
    obj = first(session)
    numbers = [obj.echo(number, "x", _async=True) for number in range(3)]
    assert len(set(numbers)) == 3
    answers = console.wait("methodResponse", 3)
    assert {number: result.sequence for _, number, result in answers} == dict(zip(numbers, range(3), strict=True))
    assert answers[0][0] is broker
    with pytest.raises(ConstraintError):
        obj.echo(1, _async=True)
    qpidd.mute = {MethodRequest}
    late = obj.echo(1, "x", _async=True, _timeout=0.01)
    _, number, result = console.wait("methodResponse", 4)[3]
    assert (number, result.status) == (late, 7)
    assert "no answer to method echo" in result.text


def test_asynchronous_methods_need_a_console(world: World, qpidd: ScriptedAgent) -> None:
    session = world.session()
    session.addBroker()
    with pytest.raises(CallerError, match=r"echo\(_async=True\) needs a Session with a console"):
        first(session).echo(1, "x", _async=True)


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


def test_a_callback_may_call_back_and_an_error_in_it_harms_nobody(
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


def test_notifiable_is_called_with_objects_and_then_completion(world: World, qpidd: ScriptedAgent) -> None:
    session = world.session()
    broker = session.addBroker()
    agent = broker.getBrokerAgent()
    assert agent is not None
    told: list[dict[str, Any]] = []
    done = threading.Event()

    def notify(**news: Any) -> None:
        told.append(news)
        if "qmf_object" not in news:
            done.set()

    assert agent.getObjects(notify, _class="widget") == []
    assert done.wait(5)
    assert [next(iter(item)) for item in told] == ["qmf_object", "qmf_complete"]
    done.clear()
    qpidd.mute = {QueryRequest}
    agent.getObjects(notify, _class="widget", _timeout=0.01)
    assert done.wait(5)
    assert "no answer" in told[-1]["qmf_exception"]
    with pytest.raises(CallerError, match="must be callable"):
        agent.getObjects(5, _class="widget")  # type: ignore[arg-type]


def test_make_object_makes_an_unmanaged_object(world: World, qpidd: ScriptedAgent) -> None:
    session = world.session()
    session.addBroker()
    obj = session.makeObject(ClassKey(WIDGET.key), name="new", level=3)
    assert (obj.name, obj.level, obj.enabled, obj.label, obj.turns) == ("new", 3, False, None, 0)
    assert (obj.isManaged(), obj.getObjectId(), obj.getAgent(), obj.getBroker()) == (False, None, None, None)
    assert repr(obj) == f"{PACKAGE}:widget[unmanaged] "
    obj.level = 4
    assert obj.level == 4
    with pytest.raises(AttributeError, match="did you mean level"):
        obj.levl = 4
    for call in (obj.update, obj.stop, obj.getV2RoutingKey):
        with pytest.raises(CallerError, match="not managed"):
            call()
    with pytest.raises(ConstraintError, match="must be 1 to 9"):
        session.makeObject(ClassKey(WIDGET.key), level=77)
    with pytest.raises(NotFoundError, match="did you mean name"):
        session.makeObject(ClassKey(WIDGET.key), nmae="x")
    session.getPackages()
    with pytest.raises(NotFoundError, match="class"):
        session.makeObject(ClassKey(ALARM.key))


# -- managed connections


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


# -- selecting what is received


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


# -- threads


def test_ctrl_c_gives_up_the_call_and_leaves_the_session_usable(world: World, qpidd: ScriptedAgent) -> None:
    session = world.session()
    session.addBroker()
    obj = first(session)
    main = threading.main_thread().ident
    assert main is not None

    def interrupt(request: MethodRequest) -> ExceptionResponse:
        qpidd.mute = {MethodRequest}
        signal.pthread_kill(main, signal.SIGINT)
        raise RuntimeError("no answer")

    qpidd.methods["stop"] = interrupt
    with pytest.raises(KeyboardInterrupt):
        obj.stop()
    qpidd.mute = set()
    assert obj.echo(1, "x").status == 0


def test_a_blocking_call_on_the_loop_is_refused(world: World, qpidd: ScriptedAgent) -> None:
    session = world.session()
    broker = session.addBroker()

    async def inside() -> None:
        session.getAgents()

    with pytest.raises(CallerError, match="event loop"):
        broker.connection.run(inside())


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
