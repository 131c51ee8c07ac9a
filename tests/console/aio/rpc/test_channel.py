"""Requests and their answers; those that fail: lost agents and connections, refusals, invalid and late answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping

import attrs
import pytest
from console.conftest import MakeAgent, MakeClient
from console.scripts import only
from support.fake_bus import FakeBus
from support.growth import growth
from support.scripted_agent import ALARM, PACKAGE, TOPIC, WIDGET, ScriptedAgent, widget
from support.waiting import WAIT_LIMIT, until

from qmf.bus import MemoryBus, MemoryExchange
from qmf.bus.base import OutcomeCallback
from qmf.bus.memory.exchange import PREDECLARED_EXCHANGES
from qmf.codec import Message, Section, amqp010, encode_message
from qmf.console.aio import (
    AgentLost,
    AgentRestarted,
    BusDisconnected,
    Client,
)
from qmf.console.aio.agents import Agent, info_from_name
from qmf.console.aio.rpc.channel import RpcChannel
from qmf.errors import (
    DisconnectedError,
    LinkError,
    ProtocolError,
    RemoteError,
    RequestTimeout,
)
from qmf.protocol import (
    Envelope,
    MethodRequest,
    MethodResponse,
    ObjectId,
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


async def test_each_request_has_its_own_time(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    agent.mute = {QueryRequest}
    client, _ = await make_client()
    ended: list[float] = []

    async def ask(timeout: float) -> None:
        with pytest.raises(RequestTimeout, match=f"within {timeout:g} s"):
            await client.objects("widget", package=PACKAGE, timeout=timeout)
        ended.append(timeout)

    await asyncio.gather(ask(0.2), ask(0.1), ask(0.3))
    assert ended == [0.1, 0.2, 0.3]
    with pytest.raises(RequestTimeout):
        await client.objects("widget", package=PACKAGE, timeout=0.01)


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


class OneLinkBus(MemoryBus):
    """Like qpidd: the refusal of one message closes the link under those sent with it."""

    def __init__(self, exchange: MemoryExchange) -> None:
        super().__init__(exchange)
        self.sent_with_it: asyncio.Future[None] | None = None
        self.holds_next = False

    def try_send(self, data: bytes, on_outcome: OutcomeCallback) -> bool:
        return False

    async def send(self, data: bytes, *, confirm: bool = False) -> None:
        if b"forbidden" in data:
            error = LinkError("", "amqp:precondition-failed", "ACL denied")
            if self.sent_with_it is not None and not self.sent_with_it.done():
                self.sent_with_it.set_exception(error)
            raise error
        if self.holds_next:
            self.holds_next = False
            self.sent_with_it = asyncio.get_running_loop().create_future()
            await self.sent_with_it
        await super().send(data, confirm=confirm)


async def test_a_refusal_does_not_fail_permitted_queries(make_agent: MakeAgent, exchange: MemoryExchange) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    bus = OneLinkBus(exchange)
    async with Client(bus, timeout=5, settle=0) as client:
        await until(lambda: client.agents)
        bus.holds_next = True
        innocent = asyncio.create_task(client.objects("widget", package=PACKAGE))
        await until(lambda: bus.sent_with_it)
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


class StuckBus(FakeBus):
    """A bus on which nothing can be sent."""

    async def send(self, data: bytes, *, confirm: bool = False) -> None:
        await asyncio.Event().wait()


def call(
    rpc: RpcChannel, *, agent: str = "a:b:c", what: str = "method echo", timeout: float = 5
) -> asyncio.Task[list[MethodResponse]]:
    """Send a request in a task."""
    request = MethodRequest(method="echo", object_id=ObjectId("w"), arguments={})
    calling = rpc.request(Agent(info_from_name(agent)), request, MethodResponse, what=what, timeout=timeout)
    return asyncio.create_task(calling)


def answer(rpc: RpcChannel, number: int, value: str, *, partial: bool = False) -> None:
    """Give an answer, or a part of one, to the channel."""
    rpc.on_answer(Envelope(content=MethodResponse(arguments={"v": value}), correlation_id=str(number), partial=partial))


def values(parts: list[MethodResponse]) -> list[object]:
    return [part.arguments["v"] for part in parts]


@pytest.fixture
def rpc() -> RpcChannel:
    return RpcChannel(FakeBus(), "default")


async def test_parts_are_collected_in_order_until_the_last(rpc: RpcChannel) -> None:
    asking = call(rpc)
    await until(lambda: rpc.counts.pending == 1)
    for value in ("one", "two"):
        answer(rpc, 1, value, partial=True)
    assert not asking.done()
    answer(rpc, 1, "three")
    assert values(await asking) == ["one", "two", "three"]
    assert (rpc.counts.asked, rpc.counts.answered, rpc.counts.pending) == (1, 1, 0)


async def test_an_answer_may_overtake_the_confirmation() -> None:
    rpc = RpcChannel(StuckBus(), "default")
    asking = call(rpc)
    await until(lambda: rpc.counts.pending == 1)
    answer(rpc, 1, "answer")
    assert values(await asking) == ["answer"]


async def test_answers_that_came_together_are_given_to_their_requests(rpc: RpcChannel) -> None:
    agent = Agent(info_from_name("a:b:c"))

    def outputs() -> asyncio.Task[Mapping[str, object]]:
        called = rpc.call(agent, "echo", ObjectId("w"), {"v": 1}, None, words=lambda: "method echo", timeout=5)
        return asyncio.create_task(called)

    first, second, third = outputs(), call(rpc), outputs()
    await until(lambda: rpc.counts.pending == 3)
    answer(rpc, 3, "a part", partial=True)
    rpc.on_returned(
        [(3, {"v": 3}, "a:b:c"), (1, {"v": 1}, "a:b:c"), (99, {}, None), (2, {"v": 2}, None), (1, {}, None)]
    )
    assert (await first, values(await second), await third) == ({"v": 1}, [2], {"v": 3})
    assert (rpc.counts.answered, rpc.counts.late, rpc.counts.pending) == (3, 2, 0)


async def test_a_call_that_gets_an_answer_of_another_kind_fails(rpc: RpcChannel) -> None:
    called = rpc.call(
        Agent(info_from_name("a:b:c")), "echo", ObjectId("w"), {}, None, words=lambda: "method echo", timeout=5
    )
    calling = asyncio.create_task(called)
    await until(lambda: rpc.counts.pending == 1)
    rpc.on_answer(Envelope(content=SchemaIdsResponse(()), correlation_id="1", partial=True))
    rpc.on_returned([(1, {"v": 1}, "a:b:c")])
    with pytest.raises(ProtocolError, match="answered method echo with SchemaIdsResponse"):
        await calling


async def test_late_and_foreign_answers_are_counted_and_ignored(rpc: RpcChannel) -> None:
    with pytest.raises(RequestTimeout):
        await call(rpc, timeout=0.001)
    second = call(rpc)
    await until(lambda: rpc.counts.pending == 1)
    answer(rpc, 1, "late")
    rpc.on_failure("99", RemoteError("no"))
    assert not second.done()
    answer(rpc, 2, "right")
    assert values(await second) == ["right"]
    assert rpc.counts.late == 2
    assert rpc.counts.expired == 1


async def test_the_timeout_names_request_and_agent(rpc: RpcChannel) -> None:
    with pytest.raises(RequestTimeout, match=r"no answer to method echo from agent a:b:c within 0\.001 s"):
        await call(rpc, timeout=0.001)


async def test_the_timeout_covers_sending() -> None:
    with pytest.raises(RequestTimeout):
        await call(RpcChannel(StuckBus(), "default"), timeout=0.001)


async def test_an_exception_ends_the_request(rpc: RpcChannel) -> None:
    asking = call(rpc)
    await until(lambda: rpc.counts.pending == 1)
    answer(rpc, 1, "part", partial=True)
    rpc.on_failure("1", RemoteError("no", 6))
    with pytest.raises(RemoteError, match="no"):
        await asking
    assert rpc.counts.refused == 1


async def test_a_refused_message_fails_its_own_request_only() -> None:
    bus = FakeBus()
    rpc = RpcChannel(bus, "default")
    other = call(rpc)
    await until(lambda: bus.sent)
    bus.failures = [LinkError("", "amqp:unauthorized-access", "no query for you")]
    with pytest.raises(LinkError, match="no query for you"):
        await call(rpc)
    assert not other.done()
    answer(rpc, 1, "answer")
    assert values(await other) == ["answer"]


async def test_losing_the_connection_fails_all(rpc: RpcChannel) -> None:
    asking = [call(rpc, agent=name) for name in ("a", "b", "c")]
    await until(lambda: rpc.counts.pending == 3)
    rpc.on_disconnected("gone")
    results = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(item) for item in results] == [DisconnectedError] * 3
    assert rpc.counts.lost == 3


async def test_losing_an_agent_fails_its_requests_only(rpc: RpcChannel) -> None:
    mine, other = call(rpc, agent="a"), call(rpc, agent="b")
    await until(lambda: rpc.counts.pending == 2)
    rpc.agent_lost("a", "restarted (epoch 1, then 2)")
    with pytest.raises(AgentLost, match=r"agent a restarted \(epoch 1, then 2\) before it answered method echo"):
        await mine
    answer(rpc, 2, "answer")
    assert values(await other) == ["answer"]


async def test_cancelling_forgets_the_request(rpc: RpcChannel) -> None:
    asking = call(rpc)
    await until(lambda: rpc.counts.pending == 1)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert rpc.counts.pending == 0
    assert rpc.counts.cancelled == 1


@pytest.mark.parametrize(("timeout", "ttl"), [(7.5, 7.5), (0.0001, 0.001), (1e9, None)])
async def test_a_call_lives_as_long_as_its_caller_waits(
    make_agent: MakeAgent, make_client: MakeClient, timeout: float, ttl: float | None
) -> None:
    agent = await make_agent()
    agent.objects = [widget("w")]
    client, _ = await make_client()
    (obj,) = await client.objects("widget", package=PACKAGE)
    assert agent.asked[-1].ttl is None
    with contextlib.suppress(RequestTimeout):
        await obj.call("stop", _timeout=timeout)
    await until(lambda: isinstance(agent.asked[-1].content, MethodRequest))
    assert agent.asked[-1].ttl == ttl


def test_agents_that_are_lost_cost_the_same_however_many_requests_wait() -> None:
    async def lose(count: int) -> None:
        rpc = RpcChannel(FakeBus(), "default")
        agents = [Agent(info_from_name(f"example.org:crowd:{number}")) for number in range(count)]
        request = QueryRequest(what=What.SCHEMA_ID)
        asked = [
            asyncio.ensure_future(rpc.request(agent, request, SchemaIdsResponse, what="query", timeout=WAIT_LIMIT))
            for agent in agents
        ]
        await until(lambda: rpc.counts.pending == count)
        for agent in agents:
            rpc.agent_lost(agent.name, "ended")
        results = await asyncio.gather(*asked, return_exceptions=True)
        assert [type(result) for result in results] == [AgentLost] * count
        rpc.on_disconnected("the end of the test")

    assert growth(lambda count: lambda: asyncio.run(lose(count))) < 9
