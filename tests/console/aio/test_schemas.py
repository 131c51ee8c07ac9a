"""The schema cache; and discovery of schemas at scripted agents, by QMFv2 and QMFv1."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import attrs
import pytest
from console.aio.objects.remotes import AGENT
from console.conftest import MakeAgent, MakeClient
from support.growth import growth
from support.scripted_agent import ALARM, PACKAGE, WIDGET, part, widget
from support.waiting import until

from qmf.console.aio import (
    AgentUpdated,
    ClassSeen,
    ClassUsed,
    Notification,
    ObjectUpdated,
    PackageSeen,
)
from qmf.console.aio.agents import Agent, info_from_name
from qmf.console.aio.schemas import RETRY_AFTER, AnySchema, SchemaCache
from qmf.errors import (
    ConstraintError,
    NotFoundError,
)
from qmf.protocol import (
    ExceptionResponse,
    QueryRequest,
    SchemaRequest,
    V1Message,
    What,
)
from qmf.schema import ClassKey


def ignore(_: Notification) -> None:
    return


async def test_versions_of_a_class_live_side_by_side() -> None:
    other = attrs.evolve(WIDGET, hash=ALARM.hash)

    async def fetch(key: ClassKey, agents: tuple[str, ...]) -> AnySchema:
        return WIDGET if key.hash == WIDGET.hash else other

    cache = SchemaCache(fetch, ignore)
    assert await cache.get(WIDGET.key) is WIDGET
    assert await cache.get(other.key) is other
    assert cache.classes(PACKAGE) == sorted([WIDGET.key, other.key])
    assert cache.resolve(None, "WIDGET") == [WIDGET.key, other.key]


async def test_cancelling_one_request_for_a_schema_does_not_cancel_the_others() -> None:
    ready = asyncio.Event()
    asked: list[tuple[str, ...]] = []

    async def fetch(key: ClassKey, agents: tuple[str, ...]) -> AnySchema:
        asked.append(agents)
        await ready.wait()
        return WIDGET

    cache = SchemaCache(fetch, ignore)
    cache.saw(WIDGET.key, Agent(info_from_name(AGENT)))
    one, two = (asyncio.create_task(cache.get(WIDGET.key)) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    await asyncio.sleep(0)
    ready.set()
    assert await two is WIDGET
    assert asked == [(AGENT,)]


async def test_a_failure_is_remembered_for_a_while() -> None:
    now = 0.0

    async def fetch(key: ClassKey, agents: tuple[str, ...]) -> AnySchema:
        raise NotFoundError("schema", str(key))

    cache = SchemaCache(fetch, ignore, lambda: now)
    assert cache.worth_asking(WIDGET.key)
    with pytest.raises(NotFoundError):
        await cache.get(WIDGET.key)
    assert not cache.worth_asking(WIDGET.key)
    now = RETRY_AFTER + 1
    assert cache.worth_asking(WIDGET.key)
    assert not cache.worth_asking(attrs.evolve(WIDGET.key, hash=None))


async def test_an_event_key_that_leaves_its_kind_out_is_found() -> None:
    async def fetch(key: ClassKey, agents: tuple[str, ...]) -> AnySchema:
        return ALARM

    cache = SchemaCache(fetch, ignore)
    cache.saw(ALARM.key, Agent(info_from_name(AGENT)))
    assert await cache.get(ClassKey(PACKAGE, "widgetAlarm", hash=ALARM.hash)) is ALARM
    with pytest.raises(NotFoundError, match="class"):
        await cache.get(ClassKey(PACKAGE, "other", hash=ALARM.hash))


async def test_packages_and_classes_are_listed_by_v2_and_v1(make_agent: MakeAgent, make_client: MakeClient) -> None:
    modern = await make_agent()
    qpidd = await make_agent(qpidd=True)
    qpidd.schemas = [attrs.evolve(WIDGET, package="org.apache.qpid.broker", name="queue", hash=ALARM.hash)]
    client, heard = await make_client()
    assert list(await client.packages()) == ["org.apache.qpid.broker", PACKAGE]
    keys = await client.classes()
    assert list(keys) == sorted([*(item.key for item in modern.schemas), qpidd.schemas[0].key])
    assert list(await client.classes("org.apache.qpid.broker")) == [qpidd.schemas[0].key]
    assert {item.package for item in heard.of(PackageSeen)} == set(client.known_packages)
    assert {item.class_key for item in heard.of(ClassSeen)} == set(client.known_classes())
    asked = len(modern.asked)
    await client.classes()
    assert len(modern.asked) == asked  # its list is known until it announces a change


async def test_a_new_schema_timestamp_makes_the_list_stale(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    client, heard = await make_client()
    assert len(await client.classes()) == 2
    agent.schemas.append(attrs.evolve(WIDGET, name="gadget", hash=None))
    agent.info = attrs.evolve(agent.info, schema_updated=5)
    await agent.heartbeat()
    await until(lambda: heard.of(AgentUpdated))
    assert len(await client.classes()) == 3


@pytest.mark.parametrize("qpidd", [False, True])
async def test_concurrent_requests_for_a_schema_share_one_fetch(
    make_agent: MakeAgent, make_client: MakeClient, qpidd: bool
) -> None:
    agent = await make_agent(qpidd=qpidd)
    client, _ = await make_client()
    await client.classes()
    found = await asyncio.gather(*(client.schema(WIDGET.key) for _ in range(5)))
    assert all(schema is found[0] for schema in found)
    v2 = [item for item in agent.asked if isinstance(item.content, QueryRequest) and item.content.what is What.SCHEMA]
    v1 = [item for item in agent.asked_v1 if isinstance(item, SchemaRequest)]
    assert len(v2) + len(v1) == 1
    assert bool(v1) is qpidd
    assert client.known_schema(WIDGET.key) is found[0]


async def test_a_schema_without_hash_is_the_version_seen_last(make_agent: MakeAgent, make_client: MakeClient) -> None:
    await make_agent()
    client, _ = await make_client()
    with pytest.raises(NotFoundError, match="class"):
        await client.schema(ClassKey(PACKAGE, "widget"))
    await client.classes()
    assert (await client.schema(ClassKey(PACKAGE, "widget"))) == WIDGET
    with pytest.raises(NotFoundError, match=r"did you mean org.example.widgets:widget"):
        await client.schema(ClassKey(PACKAGE, "wigdet"))


async def test_an_old_agent_is_asked_for_schemas_by_v1(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(capability=0)
    agent.objects = [widget("w")]
    client, _ = await make_client()
    # It takes v1 requests under its own name.
    (obj,) = await client.objects("widget", package=PACKAGE)
    assert obj.schema is not None
    assert [type(frame) for frame in agent.asked_v1] == [SchemaRequest]


async def test_without_schema_values_are_shown_as_they_came(
    make_agent: MakeAgent, make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    agent.schemas = []
    client, _ = await make_client()
    (obj,) = await client.objects(class_key=attrs.evolve(WIDGET.key, hash=None))
    assert obj.schema is None
    assert obj["name"] == "w"
    assert "no schema for org.example.widgets:widget" in caplog.text
    with pytest.raises(ConstraintError, match="must be given arguments by name"):
        await obj.call("echo", 1, "x")
    assert dict(await obj.call("echo", sequence=1, body="x")) == {"sequence": 1, "body": "x"}


async def test_discovery_reports_classes(make_agent: MakeAgent, make_client: MakeClient) -> None:
    await make_agent()
    qpidd = await make_agent(qpidd=True)
    qpidd.schemas = [attrs.evolve(WIDGET, package="org.apache.qpid.broker", hash=ALARM.hash)]
    _, heard = await make_client(discover=True)
    await until(lambda: len(heard.of(ClassSeen)) == 3)
    assert {item.package for item in heard.of(PackageSeen)} == {PACKAGE, "org.apache.qpid.broker"}


async def test_a_failed_discovery_is_tried_again_at_the_next_heartbeat(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent()
    agent.mute = {QueryRequest}
    _, heard = await make_client(discover=True, timeout=0.01)
    agent.mute = set()

    async def beat() -> bool:
        await agent.heartbeat()
        return bool(heard.of(ClassSeen))

    async with asyncio.timeout(5):
        while not await beat():
            await asyncio.sleep(0.005)


async def test_a_schema_that_is_refused_by_v2_is_asked_for_by_v1(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    refusal = ExceptionResponse(text="Query is Invalid")
    agent.script = lambda item: refusal if isinstance(item, QueryRequest) and item.what is What.SCHEMA else None
    client, _ = await make_client()
    (obj,) = await client.objects("widget", package=PACKAGE)
    assert obj.schema is not None
    assert [type(item) for item in agent.asked_v1] == [SchemaRequest]


async def test_a_schema_that_no_agent_sends_is_not_requested_again_at_once(
    make_agent: MakeAgent, make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    agent = await make_agent()
    agent.mute = {V1Message}
    agent.schemas = []
    client, heard = await make_client(timeout=0.02)
    await agent.publish(part("w", {"name": "w"}))
    await until(lambda: len(heard.of(ObjectUpdated)) == 1)
    asked = client.counts.asked
    await agent.publish(part("w", {"name": "w"}))
    await until(lambda: len(heard.of(ObjectUpdated)) == 2)
    assert client.counts.asked == asked
    assert "its values stay untyped" in caplog.text


async def test_the_use_of_a_class_is_reported_for_each_agent(make_agent: MakeAgent, make_client: MakeClient) -> None:
    one = await make_agent("example.org:widgets:1")
    _, heard = await make_client(discover=True)
    await until(lambda: len(heard.of(ClassUsed)) == 2)
    other = await make_agent("example.org:widgets:2")
    await other.heartbeat()
    await until(lambda: len(heard.of(ClassUsed)) == 4)
    assert {(item.class_key, item.agent.name) for item in heard.of(ClassUsed)} == {
        (key, agent.info.name) for key in (WIDGET.key, ALARM.key) for agent in (one, other)
    }
    assert len(heard.of(ClassSeen)) == 2


def test_classes_are_looked_up_without_looking_at_all() -> None:
    async def fetch(key: ClassKey, agents: tuple[str, ...]) -> AnySchema:
        raise NotFoundError("schema", str(key))

    def prepare(count: int) -> Callable[[], object]:
        cache = SchemaCache(fetch, ignore)

        def work() -> None:
            for number in range(count):
                agent = Agent(info_from_name(f"example.org:crowd:{number}"))
                key = ClassKey(PACKAGE, f"class{number}")
                cache.saw(key, agent)
                assert cache.resolve(PACKAGE, f"CLASS{number}", agent.name) == [key]
                assert cache.keys_used_by(agent.name) == [key]
            for number in range(count):
                cache.forget_agent(f"example.org:crowd:{number}")
                assert cache.keys_used_by(f"example.org:crowd:{number}") == []

        return work

    assert growth(prepare) < 9
