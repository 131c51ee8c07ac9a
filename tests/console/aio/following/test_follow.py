"""Following objects at agents that publish to subscribers, to everybody, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Iterable

import attrs
import pytest
from console.aio.following.reading import ADDED, CHANGED, DELETED, LEFT, LOST, T, asked, read, read_kinds
from console.conftest import MakeAgent, MakeClient
from support.scripted_agent import PACKAGE, ScriptedAgent, part, widget
from support.waiting import until

from qmf.bus import MemoryExchange
from qmf.console.aio import (
    AgentRemoved,
    Client,
    FollowMode,
)
from qmf.console.aio.following.follow import Follower
from qmf.errors import CallerError, ConstraintError, NotFoundError
from qmf.protocol import (
    ObjectData,
    ObjectId,
    SubscribeRequest,
)

#: An agent of each kind, as options of `ScriptedAgent`, and how it is followed.
KINDS: dict[FollowMode, dict[str, bool]] = {
    FollowMode.SUBSCRIPTION: {"subscriptions": True},
    FollowMode.INDICATIONS: {"qpidd": True},
    FollowMode.POLLING: {},
}


async def report(agent: ScriptedAgent, *objects: ObjectData) -> None:
    """Have the agent report a change in its own way."""
    if "_subscriptions" in agent.info.attributes:
        await agent.publish_to_subscribers(*objects)
    elif agent.qpidd:
        await agent.publish(*objects)


def now(agent: ScriptedAgent, objects: Iterable[ObjectData]) -> None:
    agent.objects = list(objects)


@pytest.mark.parametrize("source", FollowMode)
async def test_all_modes_report_the_same(source: FollowMode, make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(**KINDS[source])
    agent.objects = [widget("a", update=1), widget("b", update=1)]
    client, _ = await make_client(data=False)
    async with client.follow("widget", interval=0.01) as widgets:
        assert widgets.sources == {agent.info.name: source}
        assert sorted(obj["name"] for obj in widgets) == ["a", "b"]
        assert await read_kinds(widgets, 2) == [(ADDED, "a"), (ADDED, "b")]

        now(agent, [widget("a", turns=8, update=2), widget("b", update=1)])
        await report(agent, part("a", {"turns": 8}, update=2))
        (change,) = await read(widgets, 1)
        assert (change.kind, change.properties, change.statistics) == (CHANGED, False, True)
        assert (change.object["turns"], change.object["name"], change.merged, change.dropped) == (8, "a", 0, 0)

        now(agent, [widget("a", turns=8, update=2), widget("b", level=6, update=3), widget("c", update=3)])
        await report(agent, part("b", {"name": "b", "level": 6, "enabled": True}, update=3), widget("c", update=3))
        assert await read_kinds(widgets, 2) == [(CHANGED, "b"), (ADDED, "c")]

        now(agent, [widget("a", turns=8, update=2), widget("b", level=6, update=3)])
        await report(agent, widget("c", update=4, delete=4))
        assert await read_kinds(widgets, 1) == [(DELETED, "c")]
        assert sorted(obj["name"] for obj in widgets.objects) == ["a", "b"]
        found = widgets.get(ObjectId("b", agent.info.name))
        assert found is not None
        assert found["level"] == 6
        assert (widgets.merged, widgets.dropped, widgets.failures) == (0, 0, {})


@pytest.mark.parametrize("source", FollowMode)
async def test_a_filter_selects_the_followed_objects(
    source: FollowMode, make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent(**KINDS[source])
    agent.objects = [widget("a", level=5, update=1), widget("b", level=2, update=1)]
    client, _ = await make_client()
    where = ["ge", "level", ["quote", 5]]
    async with client.follow("widget", where=where, interval=0.01) as widgets:
        assert await read_kinds(widgets, 1) == [(ADDED, "a")]
        now(agent, [widget("a", level=5, update=1), widget("b", level=6, update=2)])
        if source is FollowMode.SUBSCRIPTION:
            await agent.publish_to_subscribers(widget("b", level=6, update=2))
        else:
            await report(agent, part("b", {"name": "b", "level": 6, "enabled": True}, update=2))
        assert await read_kinds(widgets, 1) == [(ADDED, "b")]
        assert {str(obj.object_id) for obj in widgets} == {"a", "b"}

        now(agent, [widget("a", level=4, update=3), widget("b", level=6, update=2)])
        if source is FollowMode.SUBSCRIPTION:
            await agent.publish_to_subscribers(attrs.evolve(part("a", {}, update=3), left=True))
        else:
            await report(agent, part("a", {"name": "a", "level": 4, "enabled": True}, update=3))
        assert await read_kinds(widgets, 1) == [(LEFT, "a")]
        assert [str(obj.object_id) for obj in widgets] == ["b"]


@pytest.mark.parametrize("source", [FollowMode.SUBSCRIPTION, FollowMode.INDICATIONS])
async def test_one_that_was_created_and_deleted_is_reported_once(
    source: FollowMode, make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent(**KINDS[source])
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        await report(agent, widget("a", update=1, delete=2))
        (change,) = await read(widgets, 1)
        assert (change.kind, change.object["name"], change.object.timestamps.delete) == (DELETED, "a", 2)
        assert len(widgets) == 0


@pytest.mark.parametrize("source", FollowMode)
async def test_agents_come_restart_and_go(source: FollowMode, make_agent: MakeAgent, make_client: MakeClient) -> None:
    client, heard = await make_client()
    async with client.follow("widget", interval=0.01) as widgets:
        assert widgets.sources == {}
        agent = await make_agent(**KINDS[source])
        agent.objects = [widget("a"), widget("t", epoch=1)]
        await agent.heartbeat()
        assert await read_kinds(widgets, 2) == [(ADDED, "a"), (ADDED, "t")]
        agent.restart()
        agent.subscribers.clear()
        agent.objects = [widget("a"), widget("t", epoch=2)]
        await agent.heartbeat()
        changes = await read(widgets, 2)
        assert [(item.kind, item.object.object_id.agent_epoch) for item in changes] == [(LOST, 1), (ADDED, 2)]
        await until(lambda: len(widgets) == 2)
        await agent.heartbeat(_goodbye=True)
        assert await read_kinds(widgets, 2) == [(LOST, "a"), (LOST, "t")]
        assert (len(widgets), widgets.sources) == (0, {})
    assert len(heard.of(AgentRemoved)) == 1


@pytest.mark.parametrize("source", FollowMode)
async def test_a_lost_connection_loses_all_and_brings_it_back(
    source: FollowMode, make_agent: MakeAgent, make_client: MakeClient, exchange: MemoryExchange
) -> None:
    agent = await make_agent(**KINDS[source])
    agent.objects = [widget("a")]
    client, _ = await make_client()
    async with client.follow("widget", interval=0.01) as widgets:
        assert await read_kinds(widgets, 1) == [(ADDED, "a")]
        exchange.stop()
        assert await read_kinds(widgets, 1) == [(LOST, "a")]
        agent.objects = [widget("b")]
        exchange.start()
        # Whoever of them is back first: an agent says that it is there again.
        await until(lambda: agent.bus.connected and client.connected)
        await agent.heartbeat()
        assert await read_kinds(widgets, 1) == [(ADDED, "b")]
        assert [str(obj.object_id) for obj in widgets] == ["b"]
        await until(lambda: widgets.sources == {agent.info.name: source})
    if source is FollowMode.SUBSCRIPTION:
        await until(lambda: not agent.subscribers)  # that of before the loss, too


async def test_leaving_the_block_cancels_at_the_agent(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    client, _ = await make_client(data=False)
    bound = client.bindings
    async with client.follow("widget", package=PACKAGE, where={"name": "x"}, interval=2.5) as widgets:
        (request,) = asked(agent, SubscribeRequest)
        assert isinstance(request, SubscribeRequest)
        assert request.class_key is not None
        assert (request.class_key.package, request.class_key.name) == (PACKAGE, "widget")
        assert (request.interval, list(request.where)) == (2.5, ["and", ["eq", "name", ["quote", "x"]]])
        assert len(agent.subscribers) == 1
    await until(lambda: not agent.subscribers)
    assert client.bindings == bound
    await widgets.close()
    with pytest.raises(StopAsyncIteration):
        await anext(widgets)


async def test_cancelling_the_reader_cancels_at_the_agent(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    client, _ = await make_client()

    async def endless() -> None:
        async for _ in client.follow("widget"):
            pass

    reading = asyncio.create_task(endless())
    await until(lambda: agent.subscribers)
    reading.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await reading
    gc.collect()
    await until(lambda: not agent.subscribers)


async def test_leaving_a_loop_early_ends_the_work(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.objects = [widget("a")]
    client, _ = await make_client()
    async for change in client.follow("widget"):
        assert change.object["name"] == "a"
        break
    gc.collect()
    await until(lambda: not agent.subscribers)
    assert [item for item in gc.get_objects() if isinstance(item, Follower) and not item.closed] == []


async def test_a_timeout_of_one_step_leaves_the_follow_usable(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(widgets), 0.01)
        await agent.publish_to_subscribers(widget("a"))
        assert await read_kinds(widgets, 1) == [(ADDED, "a")]


async def test_closing_the_client_ends_the_iteration(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    client, _ = await make_client()
    widgets = client.follow("widget")
    reading = asyncio.create_task(anext(widgets))
    await until(lambda: widgets.sources.get(agent.info.name) is FollowMode.SUBSCRIPTION)
    await client.close()
    with pytest.raises(StopAsyncIteration):
        await asyncio.wait_for(asyncio.shield(_result(reading)), 5)
    await until(lambda: not agent.subscribers)


async def _result(task: asyncio.Task[T]) -> T:
    try:
        return await task
    except StopAsyncIteration:
        raise
    except RuntimeError as error:  # a task can't raise StopIteration's kin as they are
        raise StopAsyncIteration from error


async def test_changes_of_one_object_are_merged(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.objects = [widget("a")]
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        await read(widgets, 1)
        for turns in range(100, 600):
            await agent.publish_to_subscribers(part("a", {"turns": turns}))
        await agent.publish_to_subscribers(part("a", {"name": "a", "level": 9, "enabled": True}))
        await until(lambda: widgets.merged == 500)
        (change,) = await read(widgets, 1)
        assert (change.merged, change.properties, change.statistics) == (500, True, True)
        assert (change.object["turns"], change.object["level"]) == (599, 9)


async def test_changes_of_gone_objects_are_bounded_and_counted(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    client, _ = await make_client()
    async with client.follow("widget", size=3) as widgets:
        for number in range(10):
            await agent.publish_to_subscribers(widget(f"w{number}", delete=1))
        await agent.publish_to_subscribers(widget("last"))
        await until(lambda: len(widgets) == 1)
        changes = await read(widgets, 4)
        assert [str(item.object.object_id) for item in changes] == ["w7", "w8", "w9", "last"]
        assert [item.dropped for item in changes] == [7, 0, 0, 0]
        assert widgets.dropped == 7


async def test_created_deleted_and_created_again_is_reported_in_order(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent(subscriptions=True)
    agent.objects = [widget("a")]
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        await read(widgets, 1)
        await agent.publish_to_subscribers(part("a", {"turns": 1}))
        await agent.publish_to_subscribers(part("a", {}, delete=3))
        await agent.publish_to_subscribers(widget("a", turns=2))
        await agent.publish_to_subscribers(part("a", {}, delete=4))
        await agent.publish_to_subscribers(widget("a", turns=3))
        await until(lambda: [obj["turns"] for obj in widgets] == [3] and widgets.merged == 3)
        first, second = await read(widgets, 2)
        assert (first.kind, first.object.timestamps.delete, first.merged) == (DELETED, 4, 3)
        assert (second.kind, second.object["turns"], second.merged) == (ADDED, 3, 0)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, CallerError),
        ({"name": "widget", "object_id": ObjectId("a")}, CallerError),
        ({"name": "widget", "interval": 0}, CallerError),
        ({"name": "widget", "recheck": -1}, CallerError),
        ({"name": "widget", "size": 0}, CallerError),
        ({"name": "widget", "where": "name=x"}, ConstraintError),
    ],
)
async def test_wrong_arguments(arguments: dict[str, object], error: type[Exception], make_client: MakeClient) -> None:
    client, _ = await make_client()
    with pytest.raises(error):
        client.follow(**arguments)  # type: ignore[call-overload]


async def test_a_filter_on_a_value_that_the_class_lacks(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [widget("a")]
    client, _ = await make_client()
    await client.objects("widget")
    with pytest.raises(NotFoundError):
        client.follow("widget", where={"colour": "red"})


async def test_a_closed_follow_is_not_used_again(make_client: MakeClient) -> None:
    client, _ = await make_client()
    widgets = client.follow("widget")
    await widgets.close()
    with pytest.raises(CallerError, match="closed"):
        await anext(widgets)


async def test_a_client_that_is_not_open_follows_when_it_is(exchange: MemoryExchange) -> None:
    from qmf.bus import MemoryBus

    client = Client(MemoryBus(exchange), settle=0)
    agent = await ScriptedAgent(exchange, subscriptions=True).start()
    agent.objects = [widget("a")]
    widgets = client.follow("widget")
    async with client, widgets:
        assert await read_kinds(widgets, 1) == [(ADDED, "a")]
    await agent.bus.close()
