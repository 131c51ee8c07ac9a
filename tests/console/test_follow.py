"""Following objects at agents that publish to subscribers, to everybody, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
from collections.abc import Iterable
from typing import TypeVar

import attrs
import pytest
from console.conftest import MakeAgent, MakeClient
from support.scripted_agent import PACKAGE, WIDGET, ScriptedAgent, part, widget
from support.waiting import until

from qmf.bus import MemoryExchange
from qmf.console.aio import (
    AgentAdded,
    AgentRemoved,
    ChangeKind,
    Client,
    Follow,
    FollowMode,
    Missed,
    ObjectChange,
    RemoteObject,
)
from qmf.errors import CallerError, ConstraintError, NotFoundError
from qmf.protocol import (
    ExceptionResponse,
    ObjectData,
    ObjectId,
    QueryRequest,
    SubscribeCancel,
    SubscribeRefresh,
    SubscribeRequest,
)

T = TypeVar("T")
ADDED, CHANGED, LEFT, DELETED, LOST = ChangeKind

#: An agent of each kind, as options of `ScriptedAgent`, and how it is followed.
KINDS: dict[FollowMode, dict[str, bool]] = {
    FollowMode.SUBSCRIPTION: {"subscriptions": True},
    FollowMode.INDICATIONS: {"qpidd": True},
    FollowMode.POLLING: {},
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.console.aio.following.agent_follower.SHORTEST_PAUSE", 0.001)
    monkeypatch.setattr("qmf.console.aio.following.agent_follower.FIRST_RETRY", 0.005)


async def read(follow: Follow[T], count: int) -> list[ObjectChange[T]]:
    """So many changes."""
    async with asyncio.timeout(5):
        return [await anext(follow) for _ in range(count)]


async def told(follow: Follow[RemoteObject], count: int) -> list[tuple[ChangeKind, str]]:
    """So many changes in short, in order of name."""
    changes = await read(follow, count)
    return sorted(((item.kind, str(item.object.object_id)) for item in changes), key=lambda item: item[1])


def asked(agent: ScriptedAgent, kind: type) -> list[object]:
    return [item.content for item in agent.asked if isinstance(item.content, kind)]


async def change(agent: ScriptedAgent, *objects: ObjectData) -> None:
    """Let the agent tell a change in its own way."""
    if "_subscriptions" in agent.info.attributes:
        await agent.tell(*objects)
    elif agent.qpidd:
        await agent.publish(*objects)


def now(agent: ScriptedAgent, objects: Iterable[ObjectData]) -> None:
    agent.objects = list(objects)


@pytest.mark.parametrize("source", FollowMode)
async def test_all_ways_tell_the_same(source: FollowMode, make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(**KINDS[source])
    agent.objects = [widget("a", update=1), widget("b", update=1)]
    client, _ = await make_client(data=False)
    async with client.follow("widget", interval=0.01) as widgets:
        assert widgets.sources == {agent.info.name: source}
        assert sorted(obj["name"] for obj in widgets) == ["a", "b"]
        assert await told(widgets, 2) == [(ADDED, "a"), (ADDED, "b")]

        now(agent, [widget("a", turns=8, update=2), widget("b", update=1)])
        await change(agent, part("a", {"turns": 8}, update=2))
        (news,) = await read(widgets, 1)
        assert (news.kind, news.properties, news.statistics) == (CHANGED, False, True)
        assert (news.object["turns"], news.object["name"], news.merged, news.dropped) == (8, "a", 0, 0)

        now(agent, [widget("a", turns=8, update=2), widget("b", level=6, update=3), widget("c", update=3)])
        await change(agent, part("b", {"name": "b", "level": 6, "enabled": True}, update=3), widget("c", update=3))
        assert await told(widgets, 2) == [(CHANGED, "b"), (ADDED, "c")]

        now(agent, [widget("a", turns=8, update=2), widget("b", level=6, update=3)])
        await change(agent, widget("c", update=4, delete=4))
        assert await told(widgets, 1) == [(DELETED, "c")]
        assert sorted(obj["name"] for obj in widgets.objects) == ["a", "b"]
        found = widgets.get(ObjectId("b", agent.info.name))
        assert found is not None
        assert found["level"] == 6
        assert (widgets.merged, widgets.dropped, widgets.failures) == (0, 0, {})


@pytest.mark.parametrize("source", FollowMode)
async def test_a_filter_selects_who_is_in_the_picture(
    source: FollowMode, make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent(**KINDS[source])
    agent.objects = [widget("a", level=5, update=1), widget("b", level=2, update=1)]
    client, _ = await make_client()
    where = ["ge", "level", ["quote", 5]]
    async with client.follow("widget", where=where, interval=0.01) as widgets:
        assert await told(widgets, 1) == [(ADDED, "a")]
        now(agent, [widget("a", level=5, update=1), widget("b", level=6, update=2)])
        if source is FollowMode.SUBSCRIPTION:
            await agent.tell(widget("b", level=6, update=2))
        else:
            await change(agent, part("b", {"name": "b", "level": 6, "enabled": True}, update=2))
        assert await told(widgets, 1) == [(ADDED, "b")]
        assert {str(obj.object_id) for obj in widgets} == {"a", "b"}

        now(agent, [widget("a", level=4, update=3), widget("b", level=6, update=2)])
        if source is FollowMode.SUBSCRIPTION:
            await agent.tell(attrs.evolve(part("a", {}, update=3), left=True))
        else:
            await change(agent, part("a", {"name": "a", "level": 4, "enabled": True}, update=3))
        assert await told(widgets, 1) == [(LEFT, "a")]
        assert [str(obj.object_id) for obj in widgets] == ["b"]


@pytest.mark.parametrize("source", [FollowMode.SUBSCRIPTION, FollowMode.INDICATIONS])
async def test_one_that_came_and_went_is_told_once(
    source: FollowMode, make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent(**KINDS[source])
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        await change(agent, widget("a", update=1, delete=2))
        (news,) = await read(widgets, 1)
        assert (news.kind, news.object["name"], news.object.timestamps.delete) == (DELETED, "a", 2)
        assert len(widgets) == 0


@pytest.mark.parametrize("source", FollowMode)
async def test_agents_come_restart_and_go(source: FollowMode, make_agent: MakeAgent, make_client: MakeClient) -> None:
    client, heard = await make_client()
    async with client.follow("widget", interval=0.01) as widgets:
        assert widgets.sources == {}
        agent = await make_agent(**KINDS[source])
        agent.objects = [widget("a"), widget("t", epoch=1)]
        await agent.heartbeat()
        assert await told(widgets, 2) == [(ADDED, "a"), (ADDED, "t")]
        agent.restart()
        agent.subscribers.clear()
        agent.objects = [widget("a"), widget("t", epoch=2)]
        await agent.heartbeat()
        changes = await read(widgets, 2)
        assert [(item.kind, item.object.object_id.agent_epoch) for item in changes] == [(LOST, 1), (ADDED, 2)]
        await until(lambda: len(widgets) == 2)
        await agent.heartbeat(_goodbye=True)
        assert await told(widgets, 2) == [(LOST, "a"), (LOST, "t")]
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
        assert await told(widgets, 1) == [(ADDED, "a")]
        exchange.stop()
        assert await told(widgets, 1) == [(LOST, "a")]
        agent.objects = [widget("b")]
        exchange.start()
        assert await told(widgets, 1) == [(ADDED, "b")]
        assert [str(obj.object_id) for obj in widgets] == ["b"]
        await until(lambda: widgets.sources == {agent.info.name: source})
    if source is FollowMode.SUBSCRIPTION:
        await until(lambda: not agent.subscribers)  # that of before the loss, too


# -- subscriptions


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
    async for news in client.follow("widget"):
        assert news.object["name"] == "a"
        break
    gc.collect()
    await until(lambda: not agent.subscribers)
    assert client._core.followers == set()


async def test_a_timeout_of_one_step_leaves_the_follow_usable(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(anext(widgets), 0.01)
        await agent.tell(widget("a"))
        assert await told(widgets, 1) == [(ADDED, "a")]


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


async def test_a_subscription_is_refreshed_before_it_ends(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.lifetime = 0  # counts as one second
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        await until(lambda: len(asked(agent, SubscribeRefresh)) >= 2)
        assert len(asked(agent, SubscribeRequest)) == 1
        agent.subscribers.clear()  # it forgot: the next refresh is answered by a cancellation
        await until(lambda: len(asked(agent, SubscribeRequest)) == 2)
        await agent.tell(widget("a"))
        assert await told(widgets, 1) == [(ADDED, "a")]


async def test_an_agent_that_ends_a_subscription_is_asked_again(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.objects = [widget("a"), widget("b")]
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        assert len(await read(widgets, 2)) == 2
        agent.objects = [widget("b"), widget("c")]
        (name,) = agent.subscribers
        await agent.end(name, "too many")
        assert await told(widgets, 2) == [(DELETED, "a"), (ADDED, "c")]


async def test_a_missing_publication_is_told_and_made_up_for(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.objects = [widget("a"), widget("b")]
    client, heard = await make_client()
    async with client.follow("widget") as widgets:
        assert len(await read(widgets, 2)) == 2
        agent.objects = [widget("b", turns=9), widget("c")]
        await agent.tell(part("b", {"turns": 9}), skip=2)
        assert await told(widgets, 3) == [(DELETED, "a"), (CHANGED, "b"), (ADDED, "c")]
        assert [(item.count, item.agent.name) for item in heard.of(Missed)] == [(2, agent.info.name)]
        await until(lambda: len(agent.subscribers) == 1)


async def test_a_snapshot_in_parts_is_one(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.part = 3
    agent.objects = [widget(f"w{number}") for number in range(10)]
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        assert len(widgets) == 10
        assert len(asked(agent, SubscribeRequest)) == 1


async def test_a_refused_subscription_is_made_up_for_by_asking(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.objects = [widget("a")]
    agent.script = lambda content: (
        ExceptionResponse(text="too many", code=7) if isinstance(content, SubscribeRequest) else None
    )
    client, _ = await make_client()
    async with client.follow("widget", package=PACKAGE, interval=0.01) as widgets:
        assert widgets.sources == {agent.info.name: FollowMode.POLLING}
        assert await told(widgets, 1) == [(ADDED, "a")]
        agent.objects = [widget("a", turns=8)]
        assert await told(widgets, 1) == [(CHANGED, "a")]


async def test_a_subscription_granted_too_late_is_cancelled(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.mute = {SubscribeRequest}
    client, _ = await make_client(timeout=0.05)
    async with client.follow("widget") as widgets:
        assert len(widgets.failures) == 1
        await until(lambda: asked(agent, SubscribeRequest))
        (request, *_) = [item for item in agent.asked if isinstance(item.content, SubscribeRequest)]
        assert isinstance(request.content, SubscribeRequest)
        await agent._subscribe(request, request.content)
        await until(lambda: not agent.subscribers)
        assert asked(agent, SubscribeCancel)
        agent.mute = set()
        agent.objects = [widget("a")]
        assert await told(widgets, 1) == [(ADDED, "a")]
        assert widgets.failures == {}


async def test_a_class_that_comes_later_is_typed(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.schemas = []
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        agent.schemas = [WIDGET]
        agent.objects = [widget("a", label=b"x")]
        await agent.tell(widget("a", label=b"x"))
        (news,) = await read(widgets, 1)
        assert news.object.schema == WIDGET
        assert news.object["label"] == "x"


# -- queries and indications


async def test_what_a_query_hid_is_found_by_the_next(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(qpidd=True)
    client, _ = await make_client()
    async with client.follow("widget", recheck=0.02) as widgets:
        agent.objects = [widget("a", update=1)]  # new, but somebody's query was first: no indication
        assert await told(widgets, 1) == [(ADDED, "a")]
        agent.objects = []  # and its deletion did not arrive
        assert await told(widgets, 1) == [(DELETED, "a")]


async def test_a_change_of_an_object_that_is_not_known_asks_for_it(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent(qpidd=True)
    client, _ = await make_client()
    async with client.follow("widget", recheck=100) as widgets:
        agent.objects = [widget("a", turns=8, update=2)]
        await agent.publish(part("a", {"turns": 8}, update=2))
        (news,) = await read(widgets, 1)
        assert (news.kind, news.object["name"], news.object["turns"]) == (ADDED, "a", 8)


async def test_an_older_answer_does_not_undo_what_came_meanwhile(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent(qpidd=True)
    agent.objects = [widget("a", update=1), widget("b", update=1)]
    client, _ = await make_client()
    async with client.follow("widget", recheck=0.02) as widgets:
        await read(widgets, 2)
        held: list[QueryRequest] = []
        agent.mute = {QueryRequest}
        await until(lambda: agent.asked and isinstance(agent.asked[-1].content, QueryRequest))
        request = agent.asked[-1]
        answer = agent.answer(request.content)  # as of now
        await agent.publish(part("a", {"turns": 9}, update=5), part("b", {}, update=5, delete=5))
        await agent.publish(widget("c", update=5))
        assert await told(widgets, 3) == [(CHANGED, "a"), (DELETED, "b"), (ADDED, "c")]
        for content, partial in answer:
            await agent.reply(request, content, partial=partial)
        agent.objects = [widget("a", turns=9, update=5), widget("c", update=5), widget("d", update=6)]
        agent.mute = set()
        assert await told(widgets, 1) == [(ADDED, "d")]
        found = widgets.get(ObjectId("a", agent.info.name))
        assert found is not None
        assert found["turns"] == 9
        assert not held


async def test_an_object_made_anew_under_its_id_is_another(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(qpidd=True)
    agent.objects = [widget("a", label="x", update=1)]
    client, _ = await make_client()
    async with client.follow("widget", recheck=0.02) as widgets:
        await read(widgets, 1)
        agent.objects = [attrs.evolve(widget("a", update=9), create_ts=9)]
        first, second = await read(widgets, 2)
        assert (first.kind, first.object["label"]) == (DELETED, "x")
        assert (second.kind, second.object["label"]) == (ADDED, None)


async def test_data_are_bound_as_long_as_somebody_follows(make_agent: MakeAgent, make_client: MakeClient) -> None:
    await make_agent(qpidd=True)
    client, _ = await make_client(data=False)
    before = client.bindings
    async with client.follow("widget"), client.follow("widget"):
        assert client.bindings == [*before, "agent.ind.data.*.widget.#"]
    await until(lambda: client.bindings == before)
    async with client.follow("widget", package=PACKAGE):
        assert client.bindings == [
            *before,
            "agent.ind.data.org_example_widgets.widget.#",
            f"agent.ind.data.{PACKAGE}.widget.#",
        ]
    await until(lambda: client.bindings == before)


async def test_an_agent_that_fails_is_tried_again(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.mute = {QueryRequest}
    client, _ = await make_client(timeout=0.05)
    async with client.follow("widget", package=PACKAGE) as widgets:
        assert list(widgets.failures) == [agent.info.name]
        agent.objects = [widget("a")]
        agent.mute = set()
        assert await told(widgets, 1) == [(ADDED, "a")]
        assert widgets.failures == {}


async def test_one_object_is_followed_by_its_id(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent, other = await make_agent(), await make_agent("example.org:widgets:2", subscriptions=True)
    agent.objects = [widget("a"), widget("b")]
    other.objects = [widget("a"), widget("b")]
    client, _ = await make_client()
    async with client.follow(object_id=ObjectId("a", other.info.name)) as one:
        assert [(obj.agent, obj["name"]) for obj in one] == [(other.info.name, "a")]
        assert list(one.sources) == [other.info.name]


async def test_one_agent_only(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent, other = await make_agent(subscriptions=True), await make_agent("example.org:widgets:2", subscriptions=True)
    agent.objects = other.objects = [widget("a")]
    client, _ = await make_client()
    async with client.follow("widget", agent=other.info.name) as one:
        assert [obj.agent for obj in one] == [other.info.name]


async def test_an_agent_known_by_name_only_is_followed_once_it_announced_itself(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    client, _ = await make_client()
    async with client.follow("widget", interval=0.01) as widgets:
        agent = await make_agent(subscriptions=True)
        agent.objects = [widget("a")]
        await agent.publish(widget("a"))
        await until(lambda: client.agents)
        assert widgets.sources == {}
        await agent.heartbeat()
        assert await told(widgets, 1) == [(ADDED, "a")]
        assert list(widgets.sources.values()) == [FollowMode.SUBSCRIPTION]


# -- slow readers


async def test_changes_of_one_object_are_merged(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.objects = [widget("a")]
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        await read(widgets, 1)
        for turns in range(100, 600):
            await agent.tell(part("a", {"turns": turns}))
        await agent.tell(part("a", {"name": "a", "level": 9, "enabled": True}))
        await until(lambda: widgets.merged == 500)
        (news,) = await read(widgets, 1)
        assert (news.merged, news.properties, news.statistics) == (500, True, True)
        assert (news.object["turns"], news.object["level"]) == (599, 9)


async def test_news_of_gone_objects_are_bounded_counted_and_told(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent(subscriptions=True)
    client, _ = await make_client()
    async with client.follow("widget", size=3) as widgets:
        for number in range(10):
            await agent.tell(widget(f"w{number}", delete=1))
        await agent.tell(widget("last"))
        await until(lambda: len(widgets) == 1)
        changes = await read(widgets, 4)
        assert [str(item.object.object_id) for item in changes] == ["w7", "w8", "w9", "last"]
        assert [item.dropped for item in changes] == [7, 0, 0, 0]
        assert widgets.dropped == 7


async def test_born_gone_and_born_again_is_told_in_order(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.objects = [widget("a")]
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        await read(widgets, 1)
        await agent.tell(part("a", {"turns": 1}))
        await agent.tell(part("a", {}, delete=3))
        await agent.tell(widget("a", turns=2))
        await agent.tell(part("a", {}, delete=4))
        await agent.tell(widget("a", turns=3))
        await until(lambda: [obj["turns"] for obj in widgets] == [3] and widgets.merged == 3)
        first, second = await read(widgets, 2)
        assert (first.kind, first.object.timestamps.delete, first.merged) == (DELETED, 4, 3)
        assert (second.kind, second.object["turns"], second.merged) == (ADDED, 3, 0)


# -- the calls


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


async def test_agents_are_an_iterator_that_begins_with_those_present(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    one = await make_agent()
    client, _ = await make_client()
    with client.follow_agents() as agents:
        two = await make_agent("example.org:widgets:2")
        await two.heartbeat()
        await two.heartbeat(_goodbye=True)
        news = [await asyncio.wait_for(anext(agents), 5) for _ in range(3)]
    assert [(type(item), item.agent.name) for item in news] == [  # type: ignore[union-attr]
        (AgentAdded, one.info.name),
        (AgentAdded, two.info.name),
        (AgentRemoved, two.info.name),
    ]


async def test_objects_are_an_iterator_that_does_not_wait_for_the_slowest(
    make_agent: MakeAgent, make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    quick, slow = await make_agent(), await make_agent("example.org:widgets:2")
    quick.objects = slow.objects = [widget("a"), widget("b")]
    slow.mute = {QueryRequest}
    client, _ = await make_client(timeout=0.5)
    each = client.each("widget", package=PACKAGE)
    assert [(await anext(each)).agent for _ in range(2)] == [quick.info.name] * 2
    slow.mute = set()
    assert [obj async for obj in each] == []
    assert "gave no answer" in caplog.text
    quick.mute = {QueryRequest}
    slow.mute = {QueryRequest}
    with pytest.raises(Exception, match="no answer"):
        _ = [obj async for obj in client.each("widget", package=PACKAGE, timeout=0.01)]


async def test_leaving_each_early_gives_up_the_questions(make_agent: MakeAgent, make_client: MakeClient) -> None:
    quick, slow = await make_agent(), await make_agent("example.org:widgets:2")
    quick.objects = [widget("a")]
    slow.mute = {QueryRequest}
    client, _ = await make_client()
    each = client.each("widget", package=PACKAGE)
    await anext(each)
    await each.aclose()  # type: ignore[attr-defined]
    assert client.counts.cancelled == 1


def test_kinds_of_changes() -> None:
    assert [kind.gone for kind in ChangeKind] == [False, False, True, True, True]
    assert list(itertools.filterfalse(lambda kind: kind.gone, ChangeKind)) == [ADDED, CHANGED]


async def test_a_client_that_is_not_open_follows_when_it_is(exchange: MemoryExchange) -> None:
    from qmf.bus import MemoryBus

    client = Client(MemoryBus(exchange), settle=0)
    agent = await ScriptedAgent(exchange, subscriptions=True).start()
    agent.objects = [widget("a")]
    widgets = client.follow("widget")
    async with client, widgets:
        assert await told(widgets, 1) == [(ADDED, "a")]
    await agent.bus.close()
