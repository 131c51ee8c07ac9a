"""Agents and objects of the published API, with scripted agents."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from console.world import World, first
from support.recording import RecordingConsole
from support.scripted_agent import ALARM, PACKAGE, WIDGET, ScriptedAgent, widget

from qmf.console import ClassKey
from qmf.errors import (
    CallerError,
    ConstraintError,
    NotFoundError,
    RemoteError,
    RequestTimeout,
)
from qmf.protocol import ExceptionResponse, MethodRequest, MethodResponse, QueryRequest


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


def test_notifiable_is_called_with_objects_and_then_completion(world: World, qpidd: ScriptedAgent) -> None:
    session = world.session()
    broker = session.addBroker()
    agent = broker.getBrokerAgent()
    assert agent is not None
    notified: list[dict[str, Any]] = []
    done = threading.Event()

    def notify(**arguments: Any) -> None:
        notified.append(arguments)
        if "qmf_object" not in arguments:
            done.set()

    assert agent.getObjects(notify, _class="widget") == []
    assert done.wait(5)
    assert [next(iter(item)) for item in notified] == ["qmf_object", "qmf_complete"]
    done.clear()
    qpidd.mute = {QueryRequest}
    agent.getObjects(notify, _class="widget", _timeout=0.01)
    assert done.wait(5)
    assert "no answer" in notified[-1]["qmf_exception"]
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
