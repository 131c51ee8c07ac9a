"""Queries to scripted agents: objects, and answers of several agents."""

from __future__ import annotations

import asyncio
import logging

import attrs
import pytest
from console.conftest import MakeAgent, MakeClient
from console.scripts import only
from support.fake_bus import FakeBus
from support.growth import growth
from support.scripted_agent import ALARM, PACKAGE, WIDGET, widget

from qmf.console.aio import (
    Answers,
    Where,
)
from qmf.console.aio.agents import Agent, info_from_name
from qmf.console.aio.answers import combined_failure
from qmf.console.aio.core import ClientCore, ClientOptions
from qmf.console.aio.objects.object_query import ObjectQuery
from qmf.console.aio.objects.remote_object import RemoteObject
from qmf.errors import (
    CallerError,
    ConstraintError,
    NotFoundError,
    RemoteError,
    RequestTimeout,
)
from qmf.protocol import (
    ExceptionResponse,
    ObjectId,
    QueryRequest,
)


def test_answers_read_like_a_list() -> None:
    answers = Answers((1, 2), {"b:b:b": RequestTimeout("query", "b:b:b", 1)})
    assert (list(answers), answers[0], answers[1:], len(answers), 2 in answers) == ([1, 2], 1, (2,), 2, True)
    assert repr(answers) == "<[1, 2], no answer from b:b:b>"


def test_the_most_informative_error_is_raised() -> None:
    silent, refused = RequestTimeout("q", "a", 1), RemoteError("no", agent="b")
    assert combined_failure({"a": silent, "b": refused}) is refused
    assert combined_failure({"a": silent}) is silent


async def test_objects_of_all_agents_are_merged(make_agent: MakeAgent, make_client: MakeClient) -> None:
    for number in (1, 2):
        agent = await make_agent(f"example.org:widgets:{number}")
        agent.objects = [widget(f"w{number}")]
    client, _ = await make_client()
    assert await client.agents_found()
    found = await client.objects("widget", package=PACKAGE)
    assert sorted(str(obj["name"]) for obj in found) == ["w1", "w2"]
    assert {obj.agent for obj in found} == {"example.org:widgets:1", "example.org:widgets:2"}
    assert found.failures == {}
    only = await client.objects("widget", package=PACKAGE, agent="example.org:widgets:2")
    assert [obj["name"] for obj in only] == ["w2"]


async def test_the_agent_name_of_an_object_is_filled_in(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [widget("w", epoch=3, parent=ObjectId("p"))]
    client, _ = await make_client()
    (obj,) = await client.objects("widget")
    assert obj.object_id == ObjectId("w", agent.info.name, 3)
    assert obj["parent"] == ObjectId("p", agent.info.name)


async def test_answers_in_parts_are_put_together(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [widget(f"w{number:02}") for number in range(25)]
    agent.part = 8
    client, _ = await make_client()
    found = await client.objects("widget")
    assert [obj["name"] for obj in found] == [f"w{number:02}" for number in range(25)]


@pytest.mark.parametrize("qpidd", [False, True])
@pytest.mark.parametrize(
    ("name", "package"), [("widget", PACKAGE), ("widget", None), ("Widget", PACKAGE), ("WIDGET", None)]
)
async def test_a_class_is_found_by_any_spelling(
    make_agent: MakeAgent, make_client: MakeClient, name: str, package: str | None, qpidd: bool
) -> None:
    agent = await make_agent(qpidd=qpidd)
    agent.objects = [widget("w")]
    client, _ = await make_client()
    assert len(await client.objects(name, package=package)) == 1
    assert len(await client.objects(class_key=WIDGET.key)) == 1
    assert len(await client.objects(class_key=attrs.evolve(WIDGET.key, hash=None))) == 1


async def test_an_unknown_class_has_no_objects(make_agent: MakeAgent, make_client: MakeClient) -> None:
    await make_agent()
    client, _ = await make_client()
    assert list(await client.objects("gadget")) == []


async def test_a_class_key_with_hash_selects_that_version(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    other = attrs.evolve(WIDGET, hash=ALARM.hash)
    agent.schemas.append(other)
    agent.objects = [widget("old"), attrs.evolve(widget("new"), class_key=other.key)]
    client, _ = await make_client()
    assert [obj["name"] for obj in await client.objects(class_key=other.key)] == ["new"]
    assert {obj.schema for obj in await client.objects("widget")} == {WIDGET, other}


async def test_an_agent_that_fails_does_not_hide_the_others(
    make_agent: MakeAgent, make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    good, bad, silent = [await make_agent(f"example.org:widgets:{name}") for name in ("good", "bad", "silent")]
    good.objects = [widget("w")]
    silent.mute = {QueryRequest}
    bad.script = only(QueryRequest, ExceptionResponse(text="Query is Invalid"))
    client, _ = await make_client()
    assert await client.agents_found()
    with caplog.at_level(logging.WARNING, "qmf.console"):
        found = await client.objects("widget", package=PACKAGE, timeout=0.05)
    assert [obj["name"] for obj in found] == ["w"]
    assert {name: type(error) for name, error in found.failures.items()} == {
        bad.info.name: RemoteError,
        silent.info.name: RequestTimeout,
    }
    assert "example.org:widgets:silent gave no answer" in caplog.text


async def test_when_all_agents_fail_the_most_informative_error_is_raised(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    silent, bad = [await make_agent(f"example.org:widgets:{name}") for name in ("silent", "bad")]
    silent.mute = {QueryRequest}
    bad.script = only(QueryRequest, ExceptionResponse(text="no", code=6))
    client, _ = await make_client()
    with pytest.raises(RemoteError, match=r"agent example.org:widgets:bad: no \(code 6\)") as caught:
        await client.objects("widget", package=PACKAGE, timeout=0.05)
    assert "widgets:silent" in str(caught.value.__notes__)


async def test_where_selects_by_values_and_by_predicate(make_agent: MakeAgent, make_client: MakeClient) -> None:
    for name, qpidd in (("x:y:z", True), ("example.org:widgets:1", False)):
        agent = await make_agent(name, qpidd=qpidd)
        agent.objects = [widget("w1", level=1), widget("w2", level=2, label="big")]
    client, _ = await make_client()

    async def names(where: Where) -> list[str]:
        return sorted(str(obj["name"]) for obj in await client.objects("widget", where=where))

    assert await names({"name": "w1"}) == ["w1", "w1"]
    assert await names({"level": 2}) == ["w2", "w2"]
    assert await names({"level": 2, "name": "w1"}) == []
    assert await names({"label": "big"}) == ["w2", "w2"]
    assert await names({"label": None}) == ["w1", "w1"]
    assert await names({"delayAverage": 20}) == ["w1", "w1", "w2", "w2"]
    assert await names(["gt", "level", ["quote", 1]]) == ["w2", "w2"]
    assert await names(["re_match", "name", ["quote", "2$"]]) == ["w2", "w2"]
    with pytest.raises(NotFoundError, match="no value of widget 'nmae'; did you mean name"):
        await names({"nmae": "w1"})
    with pytest.raises(ConstraintError, match="where"):
        await names(["eq", "name"])


async def test_an_object_is_found_by_its_id(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    other = await make_agent("example.org:widgets:2")
    agent.objects = [widget("w")]
    client, _ = await make_client()
    assert await client.agents_found()
    (obj,) = await client.objects("widget")
    asked = len(other.asked)
    (again,) = await client.objects(object_id=obj.object_id)
    assert again == obj
    assert len(other.asked) == asked
    assert list(await client.objects(object_id=ObjectId("gone", agent.info.name))) == []
    assert len(await client.objects(object_id=ObjectId("w"))) == 1
    with pytest.raises(NotFoundError, match="agent"):
        await client.objects(object_id=ObjectId("w", "example.org:widgets:9"))


@pytest.mark.parametrize("ways", [{}, {"name": "widget", "object_id": ObjectId("w")}])
async def test_exactly_one_way_to_name_objects(make_client: MakeClient, ways: dict[str, object]) -> None:
    client, _ = await make_client()
    with pytest.raises(CallerError, match="exactly one of name, class_key and object_id"):
        await client.objects(**ways)  # type: ignore[call-overload]


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
    with pytest.raises(RequestTimeout, match="no answer"):
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


def test_each_costs_the_same_for_every_agent_however_many_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(count: int) -> None:
        core = ClientCore(FakeBus(), ClientOptions(heartbeats=False))
        for number in range(count):
            core.tracker.on_announcement(info_from_name(f"example.org:crowd:{number}"))
        turns: list[asyncio.Future[None]] = []

        async def query(_agent: Agent, _query: ObjectQuery, _predicate: object, _timeout: object) -> list[RemoteObject]:
            """Answers after the agents asked before have answered, and the console has looked at it."""
            turns.append(asyncio.get_running_loop().create_future())
            before = turns[-2] if len(turns) > 1 else None
            own = turns[-1]
            if before is not None:
                await before
            asyncio.get_running_loop().call_soon(own.set_result, None)
            return []

        monkeypatch.setattr(core.requests, "query", query)
        found = [obj async for obj in core.requests.each(ObjectQuery(class_key=WIDGET.key), None)]
        assert (found, len(turns)) == ([], count)

    assert growth(lambda count: lambda: asyncio.run(ask(count))) < 9
