"""The published API against scripted agents on a memory bus."""

from __future__ import annotations

import signal
import threading

import pytest
from console.world import World, first, started_since
from support.scripted_agent import ALARM, PACKAGE, ScriptedAgent, widget

from qmf.console import ClassKey, ObjectId
from qmf.errors import (
    CallerError,
    ConnectError,
    NotFoundError,
    RequestTimeout,
)
from qmf.protocol import ExceptionResponse, MethodRequest, QueryRequest


def test_a_session_tells_whether_agents_are_being_found(world: World) -> None:
    world.agent()
    session = world.session()
    broker = session.addBroker()
    assert not session.isFindingAgents()
    assert not session.isFindingAgents(broker)
    session.delBroker(broker)
    assert not session.isFindingAgents()
    with pytest.raises(CallerError, match="not connected"):
        session.isFindingAgents(broker)


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


def test_get_objects_raises_when_no_agent_answers(world: World) -> None:
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
