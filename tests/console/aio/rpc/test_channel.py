"""Requests to scripted agents that fail: lost agents and connections, refusals, invalid and late answers."""

from __future__ import annotations

import asyncio

import attrs
import pytest
from console.conftest import MakeAgent, MakeClient
from console.scripts import only
from support.scripted_agent import ALARM, PACKAGE, TOPIC, WIDGET, ScriptedAgent, widget
from support.waiting import until

from qmf.bus import MemoryBus, MemoryExchange
from qmf.bus.memory.exchange import PREDECLARED_EXCHANGES
from qmf.codec import Message, Section, amqp010, encode_message
from qmf.console.aio import (
    AgentLost,
    AgentRestarted,
    BusDisconnected,
    Client,
)
from qmf.errors import (
    DisconnectedError,
    LinkError,
    ProtocolError,
    RequestTimeout,
)
from qmf.protocol import (
    QueryRequest,
    SchemaIdsResponse,
    What,
)


async def test_a_restart_fails_requests_and_is_reported(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.mute = {QueryRequest}
    client, heard = await make_client()
    asking = asyncio.create_task(client.objects("widget", package=PACKAGE))
    await until(lambda: client.counts.asked)
    agent.restart()
    await agent.heartbeat()
    with pytest.raises(AgentLost, match=r"restarted \(epoch 1, then 2\) before it answered query for objects of"):
        await asking
    (item,) = heard.of(AgentRestarted)
    assert (item.old.epoch, item.agent.epoch) == (1, 2)


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


async def test_a_refusal_does_not_fail_permitted_queries(
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


async def test_late_answers_are_counted(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.mute = {QueryRequest}
    client, _ = await make_client()
    with pytest.raises(RequestTimeout):
        await client.objects("widget", package=PACKAGE, timeout=0.01)
    await until(lambda: isinstance(agent.asked[-1].content, QueryRequest))
    await agent.reply(agent.asked[-1], agent.answer(agent.asked[-1].content)[0][0])
    await until(lambda: client.counts.late == 1)


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
