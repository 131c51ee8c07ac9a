"""The agent as a whole: start, discovery, schema requests of QMFv1, malformed input, close."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import attrs
import pytest
from agent.warehouse import PACKAGE, SHELF, SPILL, Shelf, ShelfSpill, Site
from support.fake_bus import FakeBus
from support.waiting import until

from qmf.agent import Agent
from qmf.agent.objects.object_store import ManagedObjectStore
from qmf.bus.base import Binding, ExchangeKind
from qmf.codec import Message, Section, amqp010, encode_message
from qmf.errors import CallerError, ConnectError, ConstraintError, DisconnectedError
from qmf.protocol import (
    BodyForm,
    CommandComplete,
    Envelope,
    ExceptionResponse,
    Heartbeat,
    LocateRequest,
    LocateResponse,
    ObjectsIndication,
    OpaqueFrame,
    PackagesRequest,
    QueryRequest,
    SchemaRequest,
    SchemaResponse,
    V1Message,
    What,
    encode,
)
from qmf.schema import ClassKey, ClassSchema
from qmf.testing import ManualClock


async def test_start_subscribes_and_then_sends_a_heartbeat(bus: FakeBus, clock: ManualClock) -> None:
    agent = Agent(bus, vendor="v", product="p", instance="i", domain="lab", clock=clock)
    await agent.start()
    subject = agent.info.direct_subject
    assert subject is not None
    assert [item.binding for item in bus.subscriptions] == [
        Binding("qmf.lab.direct", "v:p:i", ExchangeKind.DIRECT),
        Binding("qmf.lab.topic", "console.#", ExchangeKind.TOPIC),
        Binding("qmf.lab.topic", subject, ExchangeKind.TOPIC),
    ]
    (message,) = bus.take()
    assert isinstance(message.content, Heartbeat)
    assert message.content.agent == agent.info
    assert message.to == "qmf.lab.topic"
    assert (bus.opened, agent.connected) == (0, True)
    await agent.close()
    assert (bus.closed, bus.subscriptions) == (0, [])


async def test_a_bus_that_start_opens_is_closed(clock: ManualClock) -> None:
    bus = FakeBus(is_open=False)
    async with Agent(bus, vendor="v", product="p", clock=clock):
        assert (bus.opened, bus.closed) == (1, 0)
    assert (bus.opened, bus.closed) == (1, 1)


async def test_a_failed_start_leaves_nothing_open(clock: ManualClock) -> None:
    bus = FakeBus(is_open=False)
    bus.failures = [DisconnectedError("fake://", "gone")]
    agent = Agent(bus, vendor="v", product="p", clock=clock)
    with pytest.raises(DisconnectedError):
        await agent.start()
    assert (bus.closed, bus.subscriptions) == (1, [])
    with pytest.raises(CallerError, match="was started or closed before; make a new one"):
        await agent.start()


async def test_a_failed_connection_is_an_error(clock: ManualClock) -> None:
    class Dead(FakeBus):
        async def open(self, timeout: float = 10.0) -> None:
            raise ConnectError(self.url, "connection refused")

    with pytest.raises(ConnectError, match="connection refused"):
        await Agent(Dead(is_open=False), vendor="v", product="p", wait=False, clock=clock).start()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"interval": 0}, "the interval of an agent must be a positive number of seconds, not 0"),
        ({"max_calls": 0}, "an agent must be able to run at least one method, not 0"),
        ({"method_timeout": 0}, "the time limit of methods must be a positive number of seconds, not 0"),
        ({"vendor": "a:b"}, "the vendor of an agent must not be empty or contain ':', not 'a:b'"),
    ],
)
def test_invalid_arguments(arguments: dict[str, object], text: str) -> None:
    with pytest.raises(CallerError) as caught:
        Agent(FakeBus(), **{"vendor": "v", "product": "p", **arguments})  # type: ignore[arg-type]
    assert str(caught.value) == text


def test_attributes_must_have_an_encoding() -> None:
    with pytest.raises(ConstraintError, match="the attributes of an agent"):
        Agent(FakeBus(), vendor="v", product="p", attributes={"a": object()})


@pytest.mark.parametrize(
    ("where", "answered"),
    [
        ([], True),
        (["eq", "site", ["quote", "lab"]], True),
        (["eq", "site", ["quote", "farm"]], False),
        (["and", ["eq", "_vendor", ["quote", "example.org"]], ["eq", "_epoch", ["quote", 3]]], True),
        (["like", "site", "lab"], False),
    ],
)
@pytest.mark.parametrize("key", ["console.#", None])
async def test_locate(agent: Agent, bus: FakeBus, where: Sequence[object], answered: bool, key: str | None) -> None:
    answers = await bus.request(LocateRequest(where), key=key)
    assert [type(answer.content) for answer in answers] == [LocateResponse] * answered
    for answer in answers:
        assert isinstance(answer.content, LocateResponse)
        assert answer.content.agent == agent.info
        assert answer.correlation_id == "7"
    assert agent.statistics.locates == answered


async def test_requests_come_on_the_direct_subject_too(agent: Agent, bus: FakeBus) -> None:
    assert len(await bus.request(LocateRequest(), key=agent.info.direct_subject)) == 1


@pytest.mark.parametrize(
    ("reply_to", "address"),
    [
        ("qmf.default.direct/a/b", ("qmf.default.direct", "a/b")),
        ("queue", ("queue", None)),
        ("/queue", ("queue", None)),
    ],
)
async def test_answers_are_sent_to_the_reply_to(
    agent: Agent, bus: FakeBus, reply_to: str, address: tuple[str, str | None]
) -> None:
    (answer,) = await bus.request(LocateRequest(), reply_to=reply_to, correlation_id=None)
    assert (answer.to, answer.subject, answer.correlation_id) == (*address, None)


async def test_requests_without_reply_to_and_other_messages_are_ignored(agent: Agent, bus: FakeBus) -> None:
    assert await bus.request(LocateRequest(), reply_to=None) == []
    assert await bus.request(Heartbeat(agent.info)) == []
    assert (agent.statistics.ignored, agent.statistics.messages_in) == (2, 2)


async def test_v1_schema_request(agent: Agent, bus: FakeBus) -> None:
    agent.register(Shelf, ShelfSpill)
    unknown = attrs.evolve(SHELF.key, hash=SPILL.hash)
    request = V1Message(
        frames=[SchemaRequest(SHELF.key, 5), SchemaRequest(unknown, 6), SchemaRequest(SPILL.key, 7)],
        reply_to="amq.direct/k",
    )
    (answer,) = await bus.request_raw(encode(request))
    assert isinstance(answer, V1Message)
    assert (answer.to, answer.subject, answer.agent) == ("amq.direct", "k", agent.name)
    first, second, third = answer.frames
    assert isinstance(first, SchemaResponse)
    assert isinstance(third, SchemaResponse)
    assert isinstance(first.schema, ClassSchema)
    assert (first.sequence, first.schema.key) == (5, SHELF.key)
    assert [item.name for item in first.schema.properties] == [item.name for item in SHELF.properties]
    assert second == CommandComplete(1, "Class key not found", 6)
    assert third.schema.key == SPILL.key
    assert agent.statistics.schema_requests == 1


@pytest.mark.parametrize(
    "message",
    [
        V1Message(frames=[PackagesRequest(1)], reply_to="q"),
        V1Message(frames=[OpaqueFrame("G", b"")], reply_to="q"),
        V1Message(frames=[SchemaRequest(SHELF.key, 1)]),
    ],
)
async def test_other_v1_requests_are_ignored(agent: Agent, bus: FakeBus, message: V1Message) -> None:
    assert await bus.request_raw(encode(message)) == []
    assert agent.statistics.ignored == 1


def raw_request(opcode: str, body: dict[str, object]) -> bytes:
    return encode_message(
        Message(
            reply_to="qmf.default.direct/c",
            correlation_id="9",
            content_type="amqp/map",
            application_properties={"qmf.opcode": opcode},
            section=Section.DATA,
            body=amqp010.encode_map(body),
        )
    )


@pytest.mark.parametrize(
    ("opcode", "body", "code", "part"),
    [
        ("_query_request", {}, 1, "_what"),
        ("_query_request", {"_what": "PACKAGE"}, 1, "PACKAGE"),
        ("_query_request", {"_what": "OBJECT", "_object_id": {}}, 1, "_object_name"),
        ("_method_request", {"_object_id": {"_object_name": "x"}}, 4, "_method_name"),
    ],
)
async def test_requests_with_invalid_content_get_an_answer(
    agent: Agent, bus: FakeBus, opcode: str, body: dict[str, object], code: int, part: str
) -> None:
    (answer,) = await bus.request_raw(raw_request(opcode, body))
    assert isinstance(answer, Envelope)
    assert isinstance(answer.content, ExceptionResponse)
    assert answer.content.code == code
    assert part in answer.content.text
    assert (answer.to, answer.subject, answer.correlation_id) == ("qmf.default.direct", "c", "9")
    assert agent.statistics.malformed == 1


async def test_garbage_is_counted_and_logged_once_per_kind(
    agent: Agent, bus: FakeBus, caplog: pytest.LogCaptureFixture
) -> None:
    good = encode(Envelope(content=QueryRequest(what=What.SCHEMA_ID), reply_to="q"))
    with caplog.at_level(logging.WARNING, "qmf.agent"):
        for data in (b"", b"\xff" * 40, good[:-3], b"\xff" * 41, raw_request("_package_request", {})):
            assert await bus.request_raw(data) == []
    assert (agent.statistics.malformed, bus.undone) == (5, 0)
    kinds = {record.getMessage().split(":")[0] for record in caplog.records}
    assert (len(caplog.records), kinds) == (3, {"skipped a malformed message"})
    assert len(await bus.request_raw(good)) == 1


async def test_lost_answers_are_counted(agent: Agent, bus: FakeBus) -> None:
    bus.failures = [DisconnectedError("fake://", "gone")]
    assert await bus.request(LocateRequest()) == []
    assert agent.statistics.answers_lost == 1


async def test_a_bug_is_answered_and_logged(
    agent: Agent, bus: FakeBus, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("oops")

    monkeypatch.setattr(ManagedObjectStore, "schemas", broken)
    (answer,) = await bus.request(QueryRequest(what=What.SCHEMA_ID))
    assert isinstance(answer.content, ExceptionResponse)
    assert (answer.content.code, answer.content.text) == (7, "oops")
    assert any(record.exc_info for record in caplog.records)


async def test_close_publishes_what_is_pending(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock) as agent:
        site, gone = Site(name="a"), Site(name="b")
        agent.add(site)
        agent.add(gone)
        agent.remove(gone)
        bus.take()
        agent.raise_event(ShelfSpill(shelf=site, items=1, class_=""))
    event, deleted, changed, goodbye = bus.take()
    assert event.subject is not None
    assert event.subject.startswith("agent.ind.event.")
    assert isinstance(deleted.content, ObjectsIndication)
    assert isinstance(changed.content, ObjectsIndication)
    assert [item.values["name"] for item in (*deleted.content.objects, *changed.content.objects)] == ["b", "a"]
    assert isinstance(goodbye.content, Heartbeat)
    assert goodbye.content.agent.attributes["_goodbye"] is True
    await agent.close()
    assert bus.take() == []


async def test_the_goodbye_can_be_left_out(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock, goodbye=False):
        bus.take()
    assert bus.take() == []


async def test_a_failed_goodbye_does_not_matter(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock):
        bus.take()
        bus.failures = [DisconnectedError("fake://", "gone")]
    assert (bus.failures, bus.take()) == ([], [])


async def test_close_without_connection(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock) as agent:
        agent.add(Site(name="a"))
        bus.disconnect()
    assert agent.objects[0].__class__ is Site


async def test_the_other_body_form(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock, form=BodyForm.VALUE):
        assert b"amqp/map" in bus.sent[0]
        (message,) = bus.take()
        assert isinstance(message.content, Heartbeat)


async def test_the_default_form_is_the_one_that_all_peers_read(agent: Agent, bus: FakeBus, clock: ManualClock) -> None:
    await clock.advance(10)
    await until(lambda: bool(bus.sent))
    assert amqp010.encode_map({"a": 1})[4:8] == b"\x00\x00\x00\x01"
    (data,) = bus.sent
    assert b"\x00\x53\x75" in data
    assert b"x-amqp-0-10.app-id" in data


async def test_statistics_of_the_agent(agent: Agent, bus: FakeBus) -> None:
    agent.add(Site(name="a"))
    await bus.request(QueryRequest(what=What.OBJECT, class_key=ClassKey(PACKAGE, "site")))
    counts = agent.statistics
    assert (counts.messages_in, counts.messages_out, counts.queries) == (1, 2, 1)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        counts.queries = 5  # type: ignore[misc]
