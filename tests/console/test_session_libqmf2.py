"""Both APIs against real libqmf2 agents, one on each of its client protocols, on a real qpidd.

The agents are ``tests/interop/widget_agent.cpp``; `support.libqmf2` describes the environment variables.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from support.examples import examples
from support.libqmf2 import PROTOCOLS, URL, address, compiled, driven, needs_libqmf2
from support.recording import Notifications, RecordingConsole
from support.waiting import until

from qmf.bus import AmqpBus
from qmf.console import LoopThread, Session
from qmf.console.aio import Client, ClientOptions, EventRaised, FollowMode, OrderKey, RemoteObject
from qmf.console.aio.core import ClientCore
from qmf.console.aio.objects.object_query import ObjectQuery, compile_filter
from qmf.errors import ConstraintError, NotFoundError, RemoteError
from qmf.schema import ClassSchema, EventSchema, Severity

PACKAGE = "org.example.widgets"
NAMES = ["example.org:widget-agent:inst010", "example.org:widget-agent:inst10"]

pytestmark = [pytest.mark.slow, needs_libqmf2]


@pytest.fixture(scope="module", autouse=True)
def agents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The agents, on both protocols."""
    program = str(compiled("widget_agent", tmp_path_factory.mktemp("libqmf2")))
    instances = [name.rpartition(":")[2] for name in NAMES]
    with contextlib.ExitStack() as running:
        for protocol, instance in zip(PROTOCOLS, instances, strict=True):
            running.enter_context(driven(program, address(), protocol, instance))
        yield


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Client(URL, timeout=10, settle=2) as client:
        await until(lambda: {agent.name for agent in client.agents} >= set(NAMES))
        yield client


@pytest.fixture(params=NAMES, ids=["amqp0-10", "amqp1.0"])
def name(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


async def widgets(client: Client, name: str, **options: Any) -> list[RemoteObject]:
    return list(await client.objects("widget", package=PACKAGE, agent=name, **options))


async def test_the_agent_tells_of_itself(client: Client, name: str) -> None:
    agent = client.agent(name)
    assert (agent.epoch, agent.knows_schema_queries, agent.supports_subscriptions) == (1, True, False)
    assert agent.info.attributes["site"] == "lab"
    assert agent.info.heartbeat_interval == 5


async def test_schemas(client: Client, name: str) -> None:
    keys = {key.name: key for key in await client.classes(PACKAGE)}
    assert set(keys) == {"widget", "widgetAlarm"}
    schema = await client.schema(keys["widget"])
    assert isinstance(schema, ClassSchema)
    assert [(item.name, item.type.name) for item in schema.properties] == [
        ("name", "lstr"),
        ("count", "int64"),
        ("ratio", "double"),
        ("enabled", "bool"),
        ("opts", "map"),
        ("tags", "list"),
    ]
    count = schema.property("count")
    assert count is not None
    assert (count.unit, count.desc) == ("item", "Count")
    echo = schema.method("echo")
    assert echo is not None
    assert [(item.name, item.direction.value) for item in echo.arguments] == [
        ("sequence", "IO"),
        ("text", "I"),
        ("reply", "O"),
    ]
    alarm = await client.schema(keys["widgetAlarm"])
    assert isinstance(alarm, EventSchema)
    assert [item.name for item in alarm.arguments] == ["name", "level"]


async def test_objects_come_in_parts_and_typed(client: Client, name: str) -> None:
    found = {obj.name: obj for obj in await widgets(client, name)}
    assert set(found) == {f"widget-{number}" for number in range(20)}
    obj = found["widget-7"]
    assert (obj.count, obj.ratio, obj.enabled, obj.opts, obj.tags) == (7, 3.5, False, {"k": "v", "n": 7}, ["a", 2])
    (again,) = await client.objects(object_id=obj.object_id)
    assert again == obj
    await again.update()
    assert await client.objects("WIDGET", agent=name)  # its own spelling is found out


async def test_agents_and_qpidd_know_no_limit_and_the_console_keeps_to_it(client: Client, name: str) -> None:
    some = await client.objects("widget", package=PACKAGE, agent=name, limit=3)
    assert (len(some), some.total) == (3, None)
    order = [OrderKey("count", descending=True)]
    first = await client.objects("widget", package=PACKAGE, agent=name, limit=3, order=order, select=["count"])
    assert ([obj.count for obj in first], first.total) == ([19, 18, 17], 20)
    containing = await client.objects("widget", package=PACKAGE, agent=name, limit=3, text="IDGET-1")
    assert ([obj.name for obj in containing], containing.total) == (["widget-1", "widget-10", "widget-11"], 11)
    of_broker = await client.objects("exchange", agent="broker", limit=2, order=[OrderKey("name")])
    everything = await client.objects("exchange", agent="broker")
    assert [obj.name for obj in of_broker] == sorted(obj.name for obj in everything)[:2]
    assert of_broker.total == len(everything)


async def test_methods(client: Client, name: str) -> None:
    (obj,) = await widgets(client, name, where={"name": "widget-3"})
    assert dict(await obj.echo(5, "hi")) == {"sequence": 5, "reply": "HI"}
    assert dict(await obj.call("echo", text="täxt", sequence=1))["sequence"] == 1
    with pytest.raises(RemoteError, match="widget jammed"):
        await obj.fail()
    with pytest.raises(ConstraintError):
        await obj.echo("five", "hi")
    with pytest.raises(NotFoundError, match="echo"):
        await obj.call("ecko", 1, "x")
    found = await asyncio.gather(*(obj.echo(number, str(number)) for number in range(300)))
    assert [item.sequence for item in found] == list(range(300))


async def test_events(client: Client, name: str) -> None:
    heard = Notifications()
    client.listen(heard.append)
    await until(lambda: [item for item in heard.of(EventRaised) if item.event.agent.name == name])
    event = next(item.event for item in heard.of(EventRaised) if item.event.agent.name == name)
    assert (event.level, event.arguments["name"]) == (Severity.CRIT, "widget-1")
    assert isinstance(event.arguments["level"], int)
    assert event.schema is not None


async def test_following_polls(client: Client, name: str) -> None:
    async with client.follow("widget", package=PACKAGE, agent=name, interval=0.2) as found:
        assert found.sources == {name: FollowMode.POLLING}
        assert len(found) == 20
        changes = [await anext(found) for _ in range(20)]
        assert {item.object.name for item in changes} == {f"widget-{number}" for number in range(20)}
        asked = client.counts.answered
        await until(lambda: client.counts.answered >= asked + 3)
        assert len(found) == 20
        assert found.failures == {}


def test_a_script_of_the_published_api(name: str) -> None:
    console = RecordingConsole()
    with Session(console) as session:
        session.addBroker(URL)
        console.wait("newAgent", 3)
        (agent,) = [item for item in session.getAgents() if item.getAgentBank() == name]
        found = session.getObjects(_class="widget", _package=PACKAGE, _agent=agent, name="widget-3")
        (obj,) = found
        assert repr(obj.echo(5, "hi")) in (
            "OK (0) - {'reply': 'HI', 'sequence': 5}",
            "OK (0) - {'sequence': 5, 'reply': 'HI'}",
        )
        assert obj.fail().status != 0
        assert "widget jammed" in obj.fail().text
        assert obj.count == 3
        (key,) = [item for item in session.getClasses(PACKAGE) if item.getClassName() == "widget"]
        assert [str(item) for item in session.getSchema(key).getMethods()] == ["echo(sequence, text)", "fail()"]
        seq = obj.echo(6, "later", _async=True)
        results = {number: result for _, number, result in console.wait("methodResponse")}
        assert results[seq].reply == "LATER"
        console.wait("event", 3)
        assert any(f"CRIT  {PACKAGE}:widgetAlarm" in repr(event) for _, event in console.of("event"))
        console.wait("heartbeat")


# -- predicates


_names = st.sampled_from(["name", "count", "ratio", "enabled", "missing"])
_values = st.one_of(
    st.integers(-3, 25),
    st.sampled_from([0.0, 3.5, 2.0, -1.5]),
    st.booleans(),
    st.sampled_from(["widget-3", "widget-11", "5", "True", "x", ""]),
)
_operands = st.one_of(_names, _values.map(lambda value: ["quote", value]))
_simple = st.one_of(
    st.tuples(st.sampled_from(["lt", "le", "gt", "ge"]), _names, _operands).map(list),
    # Of numbers, the texts that are compared differ between languages (`prepare` never sends such).
    st.tuples(
        st.sampled_from(["eq", "ne"]),
        st.sampled_from(["name", "count", "enabled"]),
        _values.map(lambda v: ["quote", v]),
    )
    .filter(lambda item: not isinstance(item[2][1], float))
    .map(list),
    st.tuples(st.just("exists"), _names).map(list),
    st.sampled_from([["true"], ["false"]]),
)
_predicates: st.SearchStrategy[Any] = st.recursive(
    _simple,
    lambda inner: st.tuples(st.sampled_from(["and", "or", "not"]), st.lists(inner, min_size=1, max_size=3)).map(
        lambda parts: [parts[0], *parts[1]]
    ),
    max_leaves=4,
)


@pytest.fixture(scope="module")
def shared(agents: None) -> Iterator[tuple[LoopThread, ClientCore, list[RemoteObject]]]:
    loop = LoopThread("test-libqmf2")
    core = ClientCore(AmqpBus(URL or ""), ClientOptions(settle=2))

    async def begin() -> list[RemoteObject]:
        await core.open(10)
        await until(lambda: {agent.name for agent in core.agents} >= set(NAMES))
        return await core.requests.query(core.agents.find(NAMES[0]), ObjectQuery("widget", PACKAGE), ())

    everything = loop.run(begin())
    yield loop, core, everything
    loop.run(core.close())
    loop.stop()


@examples(125, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(predicate=_predicates)
def test_our_evaluation_is_that_of_libqmf2(
    shared: tuple[LoopThread, ClientCore, list[RemoteObject]], predicate: Any
) -> None:
    loop, core, everything = shared
    _, fits = compile_filter(predicate, [])
    expected = sorted(obj.name for obj in everything if fits(obj))
    for name in NAMES:
        wanted = ObjectQuery("widget", PACKAGE)
        found = loop.run(core.requests.query(core.agents.find(name), wanted, predicate, 5))
        assert sorted(obj.name for obj in found) == expected, name
