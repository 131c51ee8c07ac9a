"""Captured answers of real peers, replayed to the client: qpidd, and libqmf2 over both of its protocols."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import attrs
import pytest
from console.conftest import MakeClient
from support.vectors import NAMES, Vector
from support.waiting import until

from qmf.bus import Binding, ExchangeKind, MemoryBus, MemoryExchange, ReceivedMessage
from qmf.codec import decode_message, encode_message
from qmf.console.aio import Client, EventRaised, HeartbeatSeen, ObjectUpdated
from qmf.errors import RemoteError
from qmf.protocol import (
    BrokerRequest,
    Envelope,
    Frame,
    LocateRequest,
    MethodRequest,
    QueryRequest,
    SchemaRequest,
    V1Message,
    What,
    decode,
    encode_frames,
    parse_reply_to,
)
from qmf.schema import ClassKey, ClassSchema, EventSchema, Kind

pytestmark = pytest.mark.skipif(not NAMES, reason="the captured messages are not beside the checkout")

QPIDD = "apache.org:qpidd:1a8b7fe1-9903-4e5e-ac0f-cbefcf9b58fa"

#: The vectors that answer a request; none for silence.
Choose = Callable[[object], list[str]]


class Replay:
    """Answers requests with captured messages, with the address of the console."""

    def __init__(self, exchange: MemoryExchange, choose: Choose) -> None:
        self.bus = MemoryBus(exchange)
        self.choose = choose
        self.asked: list[object] = []

    async def start(self, *names: str) -> Replay:
        """Take the requests to agents of these names."""
        await self.bus.open()
        await self.bus.subscribe(Binding("qmf.default.topic", "console.#"), self._deliver)
        await self.bus.subscribe(Binding("qmf.default.topic", "direct-agent.#"), self._deliver)
        await self.bus.subscribe(Binding("qpid.management", "broker"), self._deliver)
        for name in names:
            await self.bus.subscribe(Binding("qmf.default.direct", name, ExchangeKind.DIRECT), self._deliver)
        return self

    async def indicate(self, name: str) -> None:
        """Send an indication as captured; libqmf2's lack the exchange, which the link determines."""
        message = decode_message(Vector(name).data, text=False)
        await self.bus.send(encode_message(attrs.evolve(message, to="qmf.default.topic")))

    def _deliver(self, received: ReceivedMessage) -> None:
        request = decode(received.data)
        received.settle()
        self.pending = [self._answer(request, name) for name in self.choose(_asked(request))]
        self.asked.append(_asked(request))
        for data in self.pending:
            self.bus.exchange.route(data)

    def _answer(self, request: Envelope | V1Message, name: str) -> bytes:
        vector = Vector(name)
        message = decode_message(vector.data, text=False)
        exchange, key = parse_reply_to(request.reply_to)
        if isinstance(request, V1Message):
            found = decode(vector.data)
            assert isinstance(found, V1Message)
            frames: list[Frame] = [attrs.evolve(frame, sequence=request.frames[0].sequence) for frame in found.frames]
            return encode_message(attrs.evolve(message, to="amq.direct", subject=key, body=encode_frames(frames)))
        number = request.correlation_id
        return encode_message(attrs.evolve(message, to=exchange, subject=key, correlation_id=number))


def _asked(request: Envelope | V1Message) -> object:
    return request.frames[0] if isinstance(request, V1Message) else request.content


def qpidd(request: object) -> list[str]:
    match request:
        case LocateRequest():
            return ["qpidd-agent_locate_response"]
        case QueryRequest(class_key=key) if key is not None:
            known = {"queue", "exchange", "broker", "vhost"}
            return [f"qpidd-query_response-{key.name}" if key.name in known else "qpidd-query_response-empty"]
        case MethodRequest(method="echo"):
            return ["qpidd-method_response-echo"]
        case MethodRequest(method="getLogLevel"):
            return ["qpidd-exception-acl-forbidden"]
        case SchemaRequest(key=key):
            return [f"qpidd-v1-s-{key.name}"] if key.name != "vhost" else ["qpidd-v1-z-error"]
        case BrokerRequest():
            return ["qpidd-v1-b"]
    return []


@pytest.fixture
async def broker(exchange: MemoryExchange, make_client: MakeClient) -> tuple[Client, Replay]:
    replay = await Replay(exchange, qpidd).start(QPIDD)
    client, _ = await make_client(settle=3.0)
    return client, replay


async def test_qpidds_objects_are_typed_by_its_v1_schema(broker: tuple[Client, Replay]) -> None:
    client, replay = broker
    assert client.broker is not None
    assert client.broker.name == QPIDD
    queues = await client.objects("queue", package="org.apache.qpid.broker")
    assert queues.failures == {}
    for queue in queues:
        assert queue.agent == QPIDD
        assert isinstance(queue.name, str)
        assert queue.object_id.agent_name == QPIDD
        assert str(queue["vhostRef"]).startswith("org.apache.qpid.broker:vhost:")
        # The schema has messageLatencySamples, the object messageLatencyCount; both names read it.
        assert (
            queue["messageLatencySamples"] == queue["messageLatencyCount"] == queue.data.values["messageLatencyCount"]
        )
        assert queue["messageLatencyAverage"] == queue.statistics["messageLatencyAvg"]
        assert "messageLatencySamples" not in queue.statistics
    assert isinstance(queues[0].schema, ClassSchema)
    assert len([item for item in replay.asked if isinstance(item, SchemaRequest)]) == 1


async def test_qpidds_schema_has_types_units_and_methods(broker: tuple[Client, Replay]) -> None:
    client, _ = broker
    (obj, *_) = await client.objects("queue")
    schema = obj.schema
    assert schema is not None
    name = schema.property("name")
    assert name is not None
    assert (name.type.name, name.index, name.access.value) == ("sstr", True, "RC")
    depth = schema.statistic("byteDepth")
    assert depth is not None
    assert (depth.type.base, depth.unit) == ("uint64", "octet")
    purge = schema.method("purge")
    assert purge is not None
    assert [(item.name, item.type.name) for item in purge.inputs] == [("request", "uint32"), ("filter", "map")]
    event = ClassKey("org.apache.qpid.broker", "queueDeclare", Kind.EVENT, UUID(int=1))
    assert isinstance(await client.schema(event), EventSchema)


async def test_qpidds_methods_answer_and_refuse(broker: tuple[Client, Replay]) -> None:
    client, _ = broker
    (obj,) = await client.objects("broker")
    assert dict(await obj.call("echo", 7, "hello")) == {"sequence": 7, "body": "hello"}
    with pytest.raises(RemoteError) as caught:
        await obj.call("getLogLevel")
    assert caught.value.code == 6


async def test_qpidds_refusal_of_a_schema_leaves_values_untyped(broker: tuple[Client, Replay]) -> None:
    client, _ = broker
    (obj,) = await client.objects("vhost")
    assert obj.schema is None
    assert obj["name"] == "/"


async def test_qpidds_indications(exchange: MemoryExchange, make_client: MakeClient) -> None:
    replay = await Replay(exchange, qpidd).start(QPIDD)
    client, heard = await make_client()
    for name in ("queue-props_stats", "queue-stats", "exchange-props_stats", "binding-deleted"):
        await replay.indicate(f"qpidd-data_indication-{name}")
    await replay.indicate("qpidd-event-queueDeclare")
    await replay.indicate("qpidd-heartbeat")
    await until(lambda: heard.of(EventRaised) and heard.of(HeartbeatSeen))
    await until(lambda: len({item.object.class_key for item in heard.of(ObjectUpdated)}) == 3)
    updates = [(name_of(item), item) for item in heard.of(ObjectUpdated)]
    kinds = {(name, item.properties, item.statistics) for name, item in updates}
    assert {("queue", True, True), ("queue", False, True), ("exchange", True, True)} <= kinds
    assert {name for name, item in updates if item.object.is_deleted} == {"binding"}
    event = heard.of(EventRaised)[0].event
    assert (event.severity, event.arguments["qName"], event.arguments["disp"]) == (6, "second-client_sub1", "created")
    assert list(event.arguments)[:3] == ["rhost", "user", "qName"]
    assert client.broken == 0


def name_of(item: ObjectUpdated) -> str:
    assert item.object.class_key is not None
    return item.object.class_key.name


def libqmf2(form: str) -> Choose:
    def choose(request: object) -> list[str]:
        match request:
            case LocateRequest():
                return [f"{form}-agent_locate_response"]
            case QueryRequest(what=What.SCHEMA_ID):
                return [f"{form}-query_response-schema_id"]
            case QueryRequest(what=What.SCHEMA, class_key=key) if key is not None:
                return [f"{form}-query_response-schema-{key.name}"]
            case QueryRequest(object_id=oid) if oid is not None:
                return [f"{form}-query_response-by-object_id"]
            case QueryRequest(where=where) if where:
                return [f"{form}-query_response-where"]
            case QueryRequest():
                return [f"{form}-query_response-widget-part1", f"{form}-query_response-widget-part2"]
            case MethodRequest(method="echo"):
                return [f"{form}-method_response-echo"]
            case MethodRequest(method="fail"):
                return [f"{form}-exception-data"]
            case MethodRequest():
                return [f"{form}-exception-text"]
        return []

    return choose


@pytest.fixture(params=["libqmf2-010", "libqmf2-10"])
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def test_libqmf2_agents(exchange: MemoryExchange, make_client: MakeClient, form: str) -> None:
    replay = await Replay(exchange, libqmf2(form)).start()
    client, _ = await make_client(settle=3.0)
    (agent,) = client.agents
    assert (agent.vendor, agent.product, agent.epoch) == ("example.org", "widget-agent", 1)
    assert agent.info.attributes["site"] == "lab"
    assert agent.info.direct_subject is not None
    assert agent.knows_schema_queries
    assert sorted(key.name for key in await client.classes()) == ["fault", "widget", "widgetAlarm"]
    found = await client.objects("widget")
    assert sorted(str(obj["name"]) for obj in found) == sorted(f"widget-{number}" for number in range(12))
    (three,) = await client.objects("widget", where={"name": "widget-3"})
    assert (three["count"], three["delta"], three["ratio"], three["enabled"]) == (3, -3, 1.5, False)
    assert three["opts"] == {"k": "v", "n": 7}
    assert three["tags"] == ["a", 2, True]
    assert str(three["parent"]) == "widget-0"
    assert three.timestamps.create == 0
    await three.update()
    assert any(isinstance(item, QueryRequest) and item.object_id == three.object_id for item in replay.asked)


async def test_libqmf2_methods(exchange: MemoryExchange, make_client: MakeClient, form: str) -> None:
    await Replay(exchange, libqmf2(form)).start()
    client, _ = await make_client(settle=3.0)
    obj = (await client.objects("widget"))[0]
    assert dict(await obj.call("echo", sequence=5, text="hi")) == {"sequence": 5, "reply": "HI"}


async def test_libqmf2_methods_without_schema(exchange: MemoryExchange, make_client: MakeClient, form: str) -> None:
    answers = libqmf2(form)

    def without_schemas(request: object) -> list[str]:
        match request:
            case QueryRequest(what=What.SCHEMA):
                return [f"{form}-exception-text"]
            case SchemaRequest():
                return ["qpidd-v1-z-error"]
        return answers(request)

    await Replay(exchange, without_schemas).start()
    client, _ = await make_client(settle=3.0)
    obj = (await client.objects("widget"))[0]
    assert obj.schema is None
    with pytest.raises(RemoteError, match="widget jammed"):
        await obj.call("fail")
    with pytest.raises(RemoteError) as caught:
        await obj.call("other")
    assert caught.value.code is None
    assert caught.value.text


async def test_libqmf2_events(exchange: MemoryExchange, make_client: MakeClient, form: str) -> None:
    replay = await Replay(exchange, libqmf2(form)).start()
    client, heard = await make_client()
    await replay.indicate(f"{form}-heartbeat")
    await replay.indicate(f"{form}-event-widgetAlarm")
    await until(lambda: heard.of(HeartbeatSeen) and heard.of(EventRaised))
    event = heard.of(EventRaised)[0].event
    assert (event.arguments["name"], event.arguments["level"]) == ("widget-1", 91)
    assert event.schema is not None
    assert event.schema.desc == "Alarm raised by a widget"
    assert client.broken == 0
