"""The client against scripted agents: finding, asking, calling, failing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import attrs
import pytest
from console.conftest import MakeAgent, MakeClient
from support.scripted_agent import ALARM, PACKAGE, TOPIC, WIDGET, ScriptedAgent, part, widget
from support.waiting import until

from qmf.bus import MemoryBus, MemoryExchange
from qmf.bus.memory.exchange import PREDECLARED_EXCHANGES
from qmf.codec import Message, Section, amqp010, encode_message
from qmf.console.aio import (
    AgentAdded,
    AgentLost,
    AgentRemoved,
    AgentRestarted,
    AgentUpdated,
    BrokerIdentified,
    BusConnected,
    BusDisconnected,
    ClassSeen,
    Client,
    ObjectUpdated,
    PackageSeen,
    Removal,
    Where,
)
from qmf.errors import (
    CallerError,
    ConnectError,
    ConstraintError,
    DisconnectedError,
    LinkError,
    NotFoundError,
    ProtocolError,
    RemoteError,
    RequestTimeout,
)
from qmf.protocol import (
    Content,
    Envelope,
    ExceptionResponse,
    LocateRequest,
    MethodRequest,
    MethodResponse,
    ObjectId,
    QueryRequest,
    SchemaIdsResponse,
    SchemaRequest,
    V1Message,
    What,
)
from qmf.schema import ClassKey


def only(kind: type, content: Content) -> Callable[[Content], Content | None]:
    """A script that answers requests of one kind with `content`."""
    return lambda request: content if isinstance(request, kind) else None


async def test_agents_are_found_when_the_client_opens(make_agent: MakeAgent, make_client: MakeClient) -> None:
    await make_agent()
    await make_agent("example.org:widgets:2")
    client, heard = await make_client()
    assert sorted(agent.name for agent in client.agents) == ["example.org:widgets:1", "example.org:widgets:2"]
    assert isinstance(heard[0], BusConnected)
    assert len(heard.of(AgentAdded)) == 2
    assert client.agent("example.org:widgets:2").epoch == 1
    assert client.broker is None


async def test_everything_is_bound_before_the_first_request(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    client, _ = await make_client()
    (request,) = [item for item in agent.asked if isinstance(item.content, LocateRequest)]
    assert request.reply_to == f"{TOPIC}/{client.reply_key}"
    assert client.reply_key.startswith("direct-console.")


async def test_a_later_agent_is_learned_from_its_heartbeat(make_agent: MakeAgent, make_client: MakeClient) -> None:
    client, heard = await make_client()
    agent = await make_agent()
    await agent.heartbeat()
    await until(lambda: heard.of(AgentAdded))
    assert client.agents[0].info == agent.info


async def test_objects_of_all_agents_are_merged(make_agent: MakeAgent, make_client: MakeClient) -> None:
    for number in (1, 2):
        agent = await make_agent(f"example.org:widgets:{number}")
        agent.objects = [widget(f"w{number}")]
    client, _ = await make_client()
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
    with caplog.at_level(logging.WARNING, "qmf.console"):
        found = await client.objects("widget", package=PACKAGE, timeout=0.05)
    assert [obj["name"] for obj in found] == ["w"]
    assert {name: type(error) for name, error in found.failures.items()} == {
        bad.info.name: RemoteError,
        silent.info.name: RequestTimeout,
    }
    assert "example.org:widgets:silent gave no answer" in caplog.text


async def test_when_all_agents_fail_the_most_telling_error_is_raised(
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


async def test_update_brings_present_values(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [widget("w", level=1, label="x")]
    client, _ = await make_client()
    (obj,) = await client.objects("widget")
    agent.objects = [widget("w", level=2)]
    assert (obj["level"], obj["label"]) == (1, "x")
    await obj.update()
    assert (obj["level"], obj["label"]) == (2, None)
    agent.objects = []
    with pytest.raises(NotFoundError, match="no object 'w'"):
        await obj.update()


async def test_methods_are_called_by_position_and_by_name(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    client, _ = await make_client()
    (obj,) = await client.objects("widget")
    for result in (
        await obj.call("echo", 1, "hi"),
        await obj.echo(1, body="hi"),
        await obj.echo(body="hi", sequence=1),
    ):
        assert dict(result) == {"sequence": 1, "body": "hi"}
        assert result.body == "hi"
    (first, *_) = [item.content for item in agent.asked if isinstance(item.content, MethodRequest)]
    assert first == MethodRequest(method="echo", object_id=obj.object_id, arguments={"sequence": 1, "body": "hi"})
    assert dict(await obj.call("stop")) == {}


async def test_defaults_and_references_of_methods(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [widget("w"), widget("v")]
    agent.methods["link"] = lambda request: MethodResponse(arguments={"made": ObjectId("new")})
    client, _ = await make_client()
    one, two = await client.objects("widget")
    result = await one.call("link", two)
    assert result["made"] == ObjectId("new", agent.info.name)
    (sent,) = [item.content for item in agent.asked if isinstance(item.content, MethodRequest)]
    assert sent.arguments["force"] is False
    assert sent.arguments["target"] == {"_object_name": "v", "_agent_name": agent.info.name}


async def test_a_failing_method_tells_the_agents_reason(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    agent.methods["stop"] = lambda _: ExceptionResponse(text="jammed", code=0x10001, values={"where": "gear"})
    client, _ = await make_client()
    (obj,) = await client.objects("widget")
    with pytest.raises(RemoteError, match=r"jammed \(code 65537\)") as caught:
        await obj.call("stop")
    assert caught.value.values["where"] == "gear"
    agent.mute = {MethodRequest}
    with pytest.raises(RequestTimeout, match=r"no answer to method stop of widget w from agent example.org:widgets:1"):
        await obj.call("stop", _timeout=0.01)


async def test_properties_are_set_by_the_extension(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    agent.methods["_set_properties"] = lambda _: MethodResponse()
    client, _ = await make_client()
    (obj,) = await client.objects("widget")
    await obj.set(level=3, label=None)
    assert obj["level"] == 3
    (sent,) = [item.content for item in agent.asked if isinstance(item.content, MethodRequest)]
    assert (sent.method, sent.arguments) == ("_set_properties", {"level": 3, "label": None})
    with pytest.raises(ConstraintError, match=r"widget.name \(sstr, access RC\): cannot be set"):
        await obj.set(name="x")
    with pytest.raises(ConstraintError, match="must be 1 to 9"):
        await obj.set(level=10)
    with pytest.raises(NotFoundError, match="did you mean level"):
        await obj.set(levl=1)
    with pytest.raises(AttributeError, match=r"await obj.set\(level=...\)"):
        obj.level = 4


async def test_references_are_followed(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.objects = [widget("w", parent=ObjectId("p")), widget("p"), widget("lost", parent=ObjectId("gone"))]
    client, _ = await make_client()
    (child,) = await client.objects("widget", where={"name": "w"})
    parent = await child.follow("parent")
    assert parent is not None
    assert parent["name"] == "p"
    assert await parent.follow("parent") is None
    (lost,) = await client.objects("widget", where={"name": "lost"})
    with pytest.raises(NotFoundError, match="no object 'gone'"):
        await lost.follow("parent")
    with pytest.raises(TypeError, match=r"name of org.example.widgets:widget is not a reference"):
        await lost.follow("name")


async def test_packages_and_classes_are_listed_by_v2_and_v1(make_agent: MakeAgent, make_client: MakeClient) -> None:
    modern = await make_agent()
    qpidd = await make_agent(qpidd=True)
    qpidd.schemas = [attrs.evolve(WIDGET, package="org.apache.qpid.broker", name="queue", hash=ALARM.hash)]
    client, heard = await make_client()
    assert list(await client.packages()) == ["org.apache.qpid.broker", PACKAGE]
    keys = await client.classes()
    assert list(keys) == sorted([*(item.key for item in modern.schemas), qpidd.schemas[0].key])
    assert list(await client.classes("org.apache.qpid.broker")) == [qpidd.schemas[0].key]
    assert {news.package for news in heard.of(PackageSeen)} == set(client.known_packages)
    assert {news.class_key for news in heard.of(ClassSeen)} == set(client.known_classes())
    asked = len(modern.asked)
    await client.classes()
    assert len(modern.asked) == asked  # its list is known until it announces news


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
async def test_a_schema_is_fetched_once_however_many_want_it(
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


async def test_a_restart_fails_requests_and_is_told(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.mute = {QueryRequest}
    client, heard = await make_client()
    asking = asyncio.create_task(client.objects("widget", package=PACKAGE))
    await until(lambda: client.counts.asked)
    agent.restart()
    await agent.heartbeat()
    with pytest.raises(AgentLost, match=r"restarted \(epoch 1, then 2\) before it answered query for objects of"):
        await asking
    (news,) = heard.of(AgentRestarted)
    assert (news.old.epoch, news.agent.epoch) == (1, 2)


async def test_a_lost_connection_fails_requests_and_agents_come_back(
    make_agent: MakeAgent, make_client: MakeClient, exchange: MemoryExchange
) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    client, heard = await make_client()
    (obj,) = await client.objects("widget")
    agent.mute = {QueryRequest}
    asking = asyncio.create_task(client.objects("widget"))
    await until(lambda: any(isinstance(item.content, QueryRequest) for item in agent.asked[-1:]))
    exchange.drop("cable cut")
    with pytest.raises(DisconnectedError, match="cable cut"):
        await asking
    assert [news.reason for news in heard.of(AgentRemoved)] == [Removal.DISCONNECTED]
    agent.mute = set()
    await until(lambda: len(heard.of(BusConnected)) == 2 and agent.bus.connected)
    await client.locate()
    assert [item.name for item in client.agents] == [agent.info.name]
    await obj.update()
    assert len(heard.of(BusDisconnected)) == 1


async def test_while_disconnected_questions_fail_at_once(
    make_agent: MakeAgent, make_client: MakeClient, exchange: MemoryExchange
) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    client, heard = await make_client()
    (obj,) = await client.objects("widget")
    exchange.stop("maintenance")
    await until(lambda: heard.of(BusDisconnected))
    questions = (client.objects("widget"), client.packages(), client.classes(), client.locate(), obj.update())
    for question in (*questions, obj.call("stop")):
        with pytest.raises(DisconnectedError, match="maintenance"):
            await question
    assert not client.connected


async def test_closing_fails_what_is_outstanding(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.mute = {QueryRequest}
    client, _ = await make_client()
    asking = asyncio.create_task(client.objects("widget", package=PACKAGE))
    await until(lambda: client.counts.asked)
    await client.close()
    await client.close()
    with pytest.raises(DisconnectedError, match="closed"):
        await asking
    with pytest.raises(DisconnectedError):
        await client.objects("widget")


async def test_a_refused_request_names_the_brokers_reason(
    make_agent: MakeAgent, make_client: MakeClient, exchange: MemoryExchange
) -> None:
    await make_agent()
    client, _ = await make_client()
    exchange.refuse("qmf.default.direct", "amqp:precondition-failed", "ACL denied query")
    with pytest.raises(LinkError, match="ACL denied query"):
        await client.objects("widget", package=PACKAGE)


async def test_a_refusal_does_not_hit_innocent_queries(
    make_agent: MakeAgent, make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    client, _ = await make_client()
    bus = client._core.bus
    send = bus.send
    waiting: list[asyncio.Future[None]] = []

    async def behind_one_link(data: bytes, *, confirm: bool = False) -> None:
        """Like qpidd: the refusal of one message closes the link under those sent with it."""
        if b"forbidden" in data:
            for future in waiting:
                future.set_exception(LinkError("", "amqp:precondition-failed", "ACL denied"))
            waiting.clear()
            raise LinkError("", "amqp:precondition-failed", "ACL denied")
        if not first.done():
            future = asyncio.get_running_loop().create_future()
            waiting.append(future)
            first.set_result(None)
            await future
        await send(data, confirm=confirm)

    first: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    monkeypatch.setattr(bus, "send", behind_one_link)
    innocent = asyncio.create_task(client.objects("widget", package=PACKAGE))
    await first
    with pytest.raises(LinkError, match="ACL denied"):
        await client.objects("forbidden", package=PACKAGE)
    assert len(await innocent) == 1


async def test_a_refused_method_is_not_called_again(
    make_agent: MakeAgent, make_client: MakeClient, exchange: MemoryExchange
) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    client, _ = await make_client()
    (obj,) = await client.objects("widget")
    exchange.refuse("qmf.default.direct", "amqp:precondition-failed", "no")
    asked = client.counts.asked
    with pytest.raises(LinkError):
        await obj.call("stop")
    assert client.counts.asked == asked + 1


async def test_a_broken_answer_fails_its_request_at_once(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.mute = {QueryRequest}
    client, _ = await make_client()
    asking = asyncio.create_task(client.objects("widget", package=PACKAGE))
    await until(lambda: isinstance(agent.asked[-1].content, QueryRequest))
    request = agent.asked[-1]
    message = Message(
        to=TOPIC,
        subject=client.reply_key,
        correlation_id=request.correlation_id,
        content_type="amqp/list",
        application_properties={"qmf.opcode": "_query_response", "qmf.agent": agent.info.name, "qmf.content": "_data"},
        section=Section.DATA,
        body=amqp010.encode_list([17]),
    )
    await agent.bus.send(encode_message(message))
    with pytest.raises(ProtocolError, match="_query_response"):
        await asking
    assert client.broken == 1


async def test_an_answer_of_the_wrong_kind_is_a_protocol_error(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.script = only(QueryRequest, SchemaIdsResponse([]))
    client, _ = await make_client()
    with pytest.raises(ProtocolError, match=r"answered query for objects of .* with SchemaIdsResponse"):
        await client.objects("widget", package=PACKAGE)


@pytest.mark.parametrize("data", [b"", b"\x00", b"not amqp at all"])
async def test_broken_messages_are_counted_logged_once_and_skipped(
    make_agent: MakeAgent, make_client: MakeClient, caplog: pytest.LogCaptureFixture, data: bytes
) -> None:
    agent = await make_agent()
    client, _ = await make_client()
    body = Message(to=TOPIC, subject=client.reply_key, section=Section.DATA, body=data)
    with caplog.at_level(logging.WARNING, "qmf.console"):
        for _ in range(3):
            await agent.bus.send(encode_message(body))
        await until(lambda: client.broken == 3)
    assert len([item for item in caplog.records if "invalid message" in item.message]) == 1


async def test_late_answers_are_counted(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.mute = {QueryRequest}
    client, _ = await make_client()
    with pytest.raises(RequestTimeout):
        await client.objects("widget", package=PACKAGE, timeout=0.01)
    await until(lambda: isinstance(agent.asked[-1].content, QueryRequest))
    await agent.reply(agent.asked[-1], agent.answer(agent.asked[-1].content)[0][0])
    await until(lambda: client.counts.late == 1)


async def test_the_broker_is_known_by_its_alias_and_identified(make_agent: MakeAgent, make_client: MakeClient) -> None:
    qpidd = await make_agent(qpidd=True)
    qpidd.objects = [widget("w")]
    client, heard = await make_client()
    assert client.broker is not None
    assert client.agent("broker").name == qpidd.info.name
    (obj,) = await client.objects("widget", agent="broker")
    assert obj.agent == qpidd.info.name
    await until(lambda: heard.of(BrokerIdentified))
    assert heard.of(BrokerIdentified)[0].broker_id.int == 0xB


async def test_an_agent_is_asked_under_the_subject_that_it_advertises(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent()
    agent.info = attrs.evolve(agent.info, direct_subject="console.route.7")
    agent.objects = [widget("w")]
    client, _ = await make_client()
    assert len(await client.objects("widget", package=PACKAGE)) == 1
    (query,) = [
        item for item in agent.asked if isinstance(item.content, QueryRequest) and item.content.what is What.OBJECT
    ]
    assert (query.to, query.subject) == (TOPIC, "console.route.7")


async def test_no_connection_is_an_error_with_the_reason(exchange: MemoryExchange) -> None:
    exchange.stop()
    client = Client(MemoryBus(exchange))
    with pytest.raises(ConnectError, match="the exchange is stopped"):
        await client.open()
    await client.close()


async def test_a_broker_without_qmfv1_is_used_without_it(caplog: pytest.LogCaptureFixture) -> None:
    nodes = {name: kind for name, kind in PREDECLARED_EXCHANGES.items() if name.startswith("qmf.")}
    exchange = MemoryExchange(nodes)
    agent = await ScriptedAgent(exchange).start()
    old = await ScriptedAgent(exchange, "example.org:old:1", capability=0).start()
    agent.objects = old.objects = [widget("w")]
    async with Client(MemoryBus(exchange), timeout=5) as client:
        await until(lambda: len(client.agents) == 2)
        assert len(await client.packages()) == 1
        (obj,) = await client.objects("widget", package=PACKAGE, agent=agent.info.name)
        assert obj.schema is not None
        gadget = attrs.evolve(WIDGET.key, hash=ALARM.hash)
        old.objects = [attrs.evolve(widget("v"), class_key=gadget)]
        (other,) = await client.objects("widget", package=PACKAGE, agent=old.info.name)
        assert other.schema is None
        assert "link to 'amq.direct' refused" in caplog.text
    await agent.bus.close()
    await old.bus.close()


async def test_a_broker_that_takes_no_message_is_no_connection(
    exchange: MemoryExchange, monkeypatch: pytest.MonkeyPatch
) -> None:
    bus = MemoryBus(exchange)

    async def no_credit(data: bytes, *, confirm: bool = False) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(bus, "send", no_credit)
    client = Client(bus)
    with pytest.raises(ConnectError, match=r"the broker accepted no message within 0\.01 s"):
        await client.open(0.01)
    assert not bus.connected


async def test_a_client_is_opened_once(make_client: MakeClient) -> None:
    client, _ = await make_client()
    with pytest.raises(CallerError, match="opened once"):
        await client.open()


async def test_a_bus_that_was_open_stays_open(exchange: MemoryExchange) -> None:
    bus = MemoryBus(exchange)
    await bus.open()
    async with Client(bus, settle=0.0) as client:
        assert client.connected
    assert bus.connected
    await bus.close()


async def test_a_request_of_another_console_is_ignored(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    client, _ = await make_client()
    await agent.send(Envelope(content=LocateRequest(), to=TOPIC, subject=client.reply_key, reply_to="a/b"))
    await agent.send(Envelope(content=LocateRequest(), to=TOPIC, subject="agent.ind.data.x", reply_to="a/b"))
    await until(lambda: client._core.stray_messages == 2)


async def test_discovery_tells_classes_without_being_asked(make_agent: MakeAgent, make_client: MakeClient) -> None:
    await make_agent()
    qpidd = await make_agent(qpidd=True)
    qpidd.schemas = [attrs.evolve(WIDGET, package="org.apache.qpid.broker", hash=ALARM.hash)]
    _, heard = await make_client(discover=True)
    await until(lambda: len(heard.of(ClassSeen)) == 3)
    assert {news.package for news in heard.of(PackageSeen)} == {PACKAGE, "org.apache.qpid.broker"}


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


async def test_a_schema_nobody_tells_is_not_asked_for_again_at_once(
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
