"""Following scripted agents that publish to subscribers, to all consoles, or not at all."""

from __future__ import annotations

import asyncio
from typing import Any

import attrs
import pytest
from console.aio.following.reading import ADDED, CHANGED, DELETED, asked, read, read_kinds
from console.conftest import MakeAgent, MakeClient
from support.scripted_agent import PACKAGE, WIDGET, Subscriber, part, widget
from support.waiting import until

from qmf.console.aio import FollowMode, Missed, RemoteObject
from qmf.console.aio.following import agent_follower
from qmf.console.aio.following.followed_objects import AgentObjects
from qmf.console.aio.following.subscriptions import ObjectSubscription, ObjectSubscriptions
from qmf.protocol import (
    ExceptionResponse,
    ObjectId,
    QueryRequest,
    SubscribeCancel,
    SubscribeRefresh,
    SubscribeRequest,
    SubscribeResponse,
)


async def test_a_subscription_is_refreshed_before_it_ends(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.lifetime = 0  # counts as one second
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        await until(lambda: len(asked(agent, SubscribeRefresh)) >= 2)
        assert len(asked(agent, SubscribeRequest)) == 1
        agent.subscribers.clear()  # it forgot: the next refresh is answered by a cancellation
        await until(lambda: len(asked(agent, SubscribeRequest)) == 2)
        await agent.publish_to_subscribers(widget("a"))
        assert await read_kinds(widgets, 1) == [(ADDED, "a")]


async def test_an_agent_that_ends_a_subscription_is_asked_again(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.objects = [widget("a"), widget("b")]
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        assert len(await read(widgets, 2)) == 2
        agent.objects = [widget("b"), widget("c")]
        (name,) = agent.subscribers
        await agent.end(name, "too many")
        assert await read_kinds(widgets, 2) == [(DELETED, "a"), (ADDED, "c")]


async def test_a_missing_publication_is_reported_and_replaced(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.objects = [widget("a"), widget("b")]
    client, heard = await make_client()
    async with client.follow("widget") as widgets:
        assert len(await read(widgets, 2)) == 2
        agent.objects = [widget("b", turns=9), widget("c")]
        await agent.publish_to_subscribers(part("b", {"turns": 9}), skip=2)
        assert await read_kinds(widgets, 3) == [(DELETED, "a"), (CHANGED, "b"), (ADDED, "c")]
        assert [(item.count, item.agent.name) for item in heard.of(Missed)] == [(2, agent.info.name)]
        await until(lambda: len(agent.subscribers) == 1)


async def test_a_class_that_the_first_publication_names_delays_nothing(
    make_agent: MakeAgent, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It comes before the coroutine that subscribes goes on: the schema is fetched, and the subscription replaced."""
    begin = ObjectSubscriptions.start

    async def begin_slowly(*arguments: Any, **options: Any) -> ObjectSubscription:
        subscription = await begin(*arguments, **options)
        for _ in range(50 if len(asked(agent, SubscribeRequest)) == 1 else 0):
            await asyncio.sleep(0)
        return subscription

    monkeypatch.setattr(ObjectSubscriptions, "start", begin_slowly)
    monkeypatch.setattr(agent_follower, "FIRST_RETRY", 3600)
    agent = await make_agent(subscriptions=True)
    agent.objects = [widget("a")]
    client, _ = await make_client()
    async with client.follow(object_id=ObjectId("a", agent.info.name)) as widgets:
        assert widgets.failures == {}
        assert [obj["name"] for obj in widgets] == ["a"]
        assert len(asked(agent, SubscribeRequest)) == 2


async def test_a_snapshot_in_parts_is_one(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.part = 3
    agent.objects = [widget(f"w{number}") for number in range(10)]
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        assert len(widgets) == 10
        assert len(asked(agent, SubscribeRequest)) == 1


async def test_a_refused_subscription_is_replaced_by_queries(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.objects = [widget("a")]
    agent.script = lambda content: (
        ExceptionResponse(text="too many", code=7) if isinstance(content, SubscribeRequest) else None
    )
    client, _ = await make_client()
    async with client.follow("widget", package=PACKAGE, interval=0.01) as widgets:
        assert widgets.sources == {agent.info.name: FollowMode.POLLING}
        assert await read_kinds(widgets, 1) == [(ADDED, "a")]
        agent.objects = [widget("a", turns=8)]
        assert await read_kinds(widgets, 1) == [(CHANGED, "a")]


async def test_a_subscription_that_ends_before_all_objects_came_is_replaced_by_queries(
    make_agent: MakeAgent, make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    agent = await make_agent(subscriptions=True)
    agent.mute = {SubscribeRequest}
    client, _ = await make_client()
    follow = client.follow("widget", package=PACKAGE, interval=0.01)
    entering = asyncio.ensure_future(follow.__aenter__())
    await until(lambda: asked(agent, SubscribeRequest))
    agent.objects = [widget("a"), widget("b"), widget("c")]
    (request,) = [item for item in agent.asked if isinstance(item.content, SubscribeRequest)]
    agent.subscribers["sub-9"] = Subscriber(request)
    await agent.reply(request, SubscribeResponse(subscription_id="sub-9", interval=1, lifetime=60))
    await agent.publish_to_subscribers(widget("a"), partial=True)
    await agent.end("sub-9", "more than 1 objects match")
    await entering
    assert follow.sources == {agent.info.name: FollowMode.POLLING}
    assert len(follow) == 3
    await until(lambda: len(asked(agent, QueryRequest)) > 3)
    assert len(asked(agent, SubscribeRequest)) == 1
    (warning,) = [item.getMessage() for item in caplog.records if item.levelname == "WARNING"]
    assert warning.startswith(f"agent {agent.info.name} gives no subscription to objects of {PACKAGE}:widget")
    assert warning.endswith("more than 1 objects match")
    await follow.close()


async def test_a_subscription_granted_too_late_is_cancelled(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.mute = {SubscribeRequest}
    client, _ = await make_client(timeout=0.05)
    async with client.follow("widget") as widgets:
        assert [str(key) for key in widgets.failures if key != "*"] == [agent.info.name]
        await until(lambda: asked(agent, SubscribeRequest))
        (request, *_) = [item for item in agent.asked if isinstance(item.content, SubscribeRequest)]
        assert isinstance(request.content, SubscribeRequest)
        await agent.grant(request, request.content)
        await until(lambda: not agent.subscribers)
        assert asked(agent, SubscribeCancel)
        agent.mute = set()
        agent.objects = [widget("a")]
        assert await read_kinds(widgets, 1) == [(ADDED, "a")]
        await until(lambda: widgets.failures == {})


async def test_a_class_that_comes_later_is_typed(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(subscriptions=True)
    agent.schemas = []
    client, _ = await make_client()
    async with client.follow("widget") as widgets:
        agent.schemas = [WIDGET]
        agent.objects = [widget("a", label=b"x")]
        await agent.publish_to_subscribers(widget("a", label=b"x"))
        (change,) = await read(widgets, 1)
        assert change.object.schema == WIDGET
        assert change.object["label"] == "x"


async def test_a_change_that_a_query_hid_is_found_by_the_next(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent(qpidd=True)
    client, _ = await make_client()
    async with client.follow("widget", recheck=0.02) as widgets:
        agent.objects = [widget("a", update=1)]  # new, but a query was first: no indication
        assert await read_kinds(widgets, 1) == [(ADDED, "a")]
        agent.objects = []  # and its deletion did not arrive
        assert await read_kinds(widgets, 1) == [(DELETED, "a")]


async def test_a_change_of_an_object_that_is_not_known_asks_for_it(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent(qpidd=True)
    client, _ = await make_client()
    async with client.follow("widget", recheck=100) as widgets:
        agent.objects = [widget("a", turns=8, update=2)]
        await agent.publish(part("a", {"turns": 8}, update=2))
        (change,) = await read(widgets, 1)
        assert (change.kind, change.object["name"], change.object["turns"]) == (ADDED, "a", 8)


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
        assert await read_kinds(widgets, 3) == [(CHANGED, "a"), (DELETED, "b"), (ADDED, "c")]
        for content, partial in answer:
            await agent.reply(request, content, partial=partial)
        agent.objects = [widget("a", turns=9, update=5), widget("c", update=5), widget("d", update=6)]
        agent.mute = set()
        assert await read_kinds(widgets, 1) == [(ADDED, "d")]
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


async def test_data_are_bound_as_long_as_they_are_followed(make_agent: MakeAgent, make_client: MakeClient) -> None:
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
        # The question to all agents may have no answer within so short a time either.
        assert agent.info.name in widgets.failures
        agent.objects = [widget("a")]
        agent.mute = set()
        assert await read_kinds(widgets, 1) == [(ADDED, "a")]
        # As on a busy machine here.
        await until(lambda: widgets.failures == {})


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
        assert await read_kinds(widgets, 1) == [(ADDED, "a")]
        assert list(widgets.sources.values()) == [FollowMode.SUBSCRIPTION]


@pytest.mark.parametrize("count", [40, 320])
async def test_a_large_snapshot_is_compared_in_many_turns(
    make_agent: MakeAgent, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, count: int
) -> None:
    """However large it is, a turn of the event loop takes so many objects, and others have theirs between."""
    monkeypatch.setattr(agent_follower, "PART", 8)
    agent = await make_agent(subscriptions=True)
    agent.objects = [widget(f"w{number}") for number in range(count)]
    turns: list[int] = [0]
    update = AgentObjects.update

    def count_update(objects: AgentObjects, newer: RemoteObject) -> None:
        turns[-1] += 1
        update(objects, newer)

    async def turn() -> None:
        while True:
            await asyncio.sleep(0)
            turns.append(0)

    monkeypatch.setattr(AgentObjects, "update", count_update)
    client, _ = await make_client()
    turning = asyncio.ensure_future(turn())
    async with client.follow("widget") as widgets:
        turning.cancel()
        assert len(widgets) == count
        assert (sum(turns), max(turns)) == (count, 8)


async def test_what_is_published_while_a_snapshot_is_compared_comes_after_it(
    make_agent: MakeAgent, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_follower, "PART", 1)
    agent = await make_agent(subscriptions=True)
    agent.objects = [widget(f"w{number}") for number in range(200)]
    client, _ = await make_client()
    follow = client.follow("widget")
    entering = asyncio.ensure_future(follow.__aenter__())
    await until(lambda: 0 < len(follow) < 200)
    assert not follow.answered
    await agent.publish_to_subscribers(part("w199", {"turns": 77}), widget("new"))
    await entering
    await until(lambda: len(follow) == 201)
    found = {obj["name"]: obj for obj in follow}
    assert (found["w199"]["turns"], found["w198"]["turns"]) == (77, 7)


async def test_a_snapshot_that_is_outdated_while_it_is_compared_is_replaced(
    make_agent: MakeAgent, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_follower, "PART", 1)
    agent = await make_agent(subscriptions=True)
    agent.objects = [widget(f"w{number}") for number in range(200)]
    client, _ = await make_client()
    follow = client.follow("widget")
    entering = asyncio.ensure_future(follow.__aenter__())
    async with asyncio.timeout(30):
        while not len(follow):  # in each turn of the loop: a look now and then could come after the last part
            await asyncio.sleep(0)
    assert len(follow) < 200
    agent.objects = [widget("w0"), widget("other")]
    (name,) = agent.subscribers
    await agent.end(name, "restarted")
    await entering
    await until(lambda: {obj["name"] for obj in follow} == {"w0", "other"})
