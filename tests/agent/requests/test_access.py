"""The access hook: what it is asked, and what its answers do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agent.asking import refusal
from agent.warehouse import PACKAGE, SHELF, Shelf, ShelfMoveResult, Site
from support.fake_bus import FakeBus
from support.waiting import until

from qmf.agent import AccessRequest, Action, Agent, current_caller
from qmf.agent.layout.object_state import object_id
from qmf.broker import Broker
from qmf.bus import AmqpBus, Binding, ReceivedMessage
from qmf.console.aio import Client
from qmf.protocol import (
    CommandComplete,
    Content,
    Envelope,
    ExceptionResponse,
    MethodRequest,
    MethodResponse,
    ObjectsResponse,
    QueryRequest,
    SchemaRequest,
    SchemasResponse,
    SubscribeRequest,
    SubscribeResponse,
    V1Message,
    What,
    decode,
    encode,
)
from qmf.schema import ClassKey
from qmf.testing import ManualClock

SHELVES = ClassKey(PACKAGE, "shelf")


class MovingShelf(Shelf):
    def move(self, items: int, from_: str, factor: float) -> ShelfMoveResult:
        caller = current_caller()
        return ShelfMoveResult(moved=items, note=str(caller and caller.user_id))


class Hook:
    """Remembers what it was asked; answers what the test wants."""

    def __init__(self) -> None:
        self.asked: list[AccessRequest] = []
        self.answer: Callable[[], Any] = lambda: True

    def __call__(self, request: AccessRequest) -> Any:
        self.asked.append(request)
        return self.answer()


@pytest.fixture
def hook() -> Hook:
    return Hook()


@pytest.fixture
async def shelf(bus: FakeBus, clock: ManualClock, hook: Hook) -> Any:
    agent = Agent(bus, vendor="v", product="p", instance="i", epoch=3, clock=clock, access=hook)
    shelf = MovingShelf(number=1)
    agent.add(shelf)
    async with agent:
        bus.take()
        yield shelf


def requests(shelf: Shelf) -> list[tuple[Content, type[object], dict[str, object]]]:
    """RequestDispatcher, what answers them when they are allowed, and what the hook is asked about each."""
    oid = object_id(shelf)
    return [
        (QueryRequest(what=What.SCHEMA_ID), object, {"action": Action.QUERY, "what": What.SCHEMA_ID}),
        (
            QueryRequest(what=What.SCHEMA, class_key=SHELVES),
            SchemasResponse,
            {"action": Action.QUERY, "what": What.SCHEMA, "class_key": SHELVES},
        ),
        (
            QueryRequest(what=What.OBJECT, class_key=SHELVES),
            ObjectsResponse,
            {"action": Action.QUERY, "what": What.OBJECT, "class_key": SHELVES},
        ),
        (
            QueryRequest(what=What.OBJECT_ID, object_id=oid),
            ObjectsResponse,
            {"action": Action.QUERY, "what": What.OBJECT_ID, "class_key": SHELF.key, "object_id": oid},
        ),
        (
            MethodRequest(method="move", object_id=oid, arguments={"items": 3}),
            MethodResponse,
            {
                "action": Action.METHOD,
                "class_key": SHELF.key,
                "object_id": oid,
                "method": "move",
                "arguments": {"items": 3, "from": "door", "factor": 1.0},
            },
        ),
        (
            MethodRequest(method="_set_properties", object_id=oid, arguments={"limit": 9}),
            MethodResponse,
            {"action": Action.SET, "class_key": SHELF.key, "object_id": oid, "arguments": {"limit": 9}},
        ),
        (
            SubscribeRequest(class_key=SHELVES),
            SubscribeResponse,
            {"action": Action.SUBSCRIBE, "class_key": SHELVES},
        ),
    ]


@pytest.mark.parametrize("number", range(7))
async def test_what_the_hook_is_asked(bus: FakeBus, shelf: Shelf, hook: Hook, number: int) -> None:
    content, kind, expected = requests(shelf)[number]
    answer, *_ = await bus.request(content, user_id="alice")
    assert isinstance(answer.content, kind)
    assert not isinstance(answer.content, ExceptionResponse)
    assert hook.asked == [
        AccessRequest(user_id="alice", reply_to="qmf.default.topic/console-1", **expected)  # type: ignore[arg-type]
    ]


async def _later(value: object) -> object:
    await asyncio.sleep(0)
    return value


def _failing() -> bool:
    raise OSError("no directory")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (lambda: "alice is on holiday", "alice is on holiday"),
        (lambda: False, "{action}: not allowed"),
        (lambda: "", "{action}: not allowed"),
        (lambda: None, "{action}: not allowed"),
        (lambda: 1, "{action}: not allowed"),
        (lambda: _later("not at night"), "not at night"),
        (_failing, "access control failed"),
    ],
)
@pytest.mark.parametrize("number", range(7))
async def test_refusals(
    bus: FakeBus, shelf: Shelf, hook: Hook, number: int, answer: Callable[[], Any], text: str
) -> None:
    hook.answer = answer
    content, _, expected = requests(shelf)[number]
    action = expected["action"]
    assert isinstance(action, Action)
    (message,) = await bus.request(content)
    assert refusal(message) == (6, text.format(action=action.value))
    assert (shelf.limit, hook.asked[0].user_id) == (5, None)


async def test_an_awaitable_may_allow(bus: FakeBus, shelf: Shelf, hook: Hook) -> None:
    hook.answer = lambda: _later(True)
    (answer,) = await bus.request(QueryRequest(what=What.OBJECT, class_key=SHELVES))
    assert isinstance(answer.content, ObjectsResponse)


async def test_invalid_calls_are_refused_before_the_hook_is_asked(bus: FakeBus, shelf: Shelf, hook: Hook) -> None:
    (answer,) = await bus.request(MethodRequest(method="move", object_id=object_id(shelf)))
    assert refusal(answer)[0] == 4
    assert hook.asked == []


async def test_schemas_of_the_old_kind_are_guarded_too(bus: FakeBus, shelf: Shelf, hook: Hook) -> None:
    hook.answer = lambda: "x" * 300
    request = V1Message(frames=[SchemaRequest(SHELF.key, 5)], reply_to="amq.direct/k", user_id="bob")
    (answer,) = await bus.request_raw(encode(request))
    assert isinstance(answer, V1Message)
    assert list(answer.frames) == [CommandComplete(6, "x" * 60, 5)]
    assert (hook.asked[0].user_id, hook.asked[0].class_key) == ("bob", SHELF.key)


@pytest.mark.slow
async def test_the_user_id_comes_from_the_message() -> None:
    """Over a real connection: the access function and the method get the values of the console's message."""
    hook = Hook()
    answers: list[Envelope] = []

    def deliver(received: ReceivedMessage) -> None:
        message = decode(received.data)
        received.settle()
        assert isinstance(message, Envelope)
        answers.append(message)

    async with Broker(port=0) as broker:
        console = AmqpBus(broker.url)
        await console.open()
        await console.subscribe(Binding("qmf.default.topic", "direct-console.1"), deliver)
        async with Agent(broker.url, vendor="v", product="p", instance="i", access=hook) as agent:
            agent.add(Site(name="a"))
            shelf_id = agent.add(MovingShelf(number=1))
            request = Envelope(
                content=MethodRequest(method="move", object_id=shelf_id, arguments={"items": 1}),
                to="qmf.default.direct",
                subject=agent.name,
                reply_to="qmf.default.topic/direct-console.1",
                correlation_id="1",
                user_id="carol",
            )
            await console.send(encode(request))
            await until(lambda: bool(answers))
        await console.close()
    content = answers[0].content
    assert isinstance(content, MethodResponse)
    assert content.arguments == {"moved": 1, "note": "carol"}
    assert [request.user_id for request in hook.asked] == ["carol"]


async def test_consoles_name_the_user_who_has_logged_in() -> None:
    """Queries and calls, those for others among them; nobody else can use the name."""
    hook = Hook()
    async with Broker(port=0, users={"carol": "c", "bob": "b", "agent": "a"}) as broker:
        own = f"amqp://agent:a@127.0.0.1:{broker.port}"
        async with (
            Agent(own, vendor="v", product="p", instance="i", access=hook) as agent,
            Client(f"amqp://carol:c@127.0.0.1:{broker.port}", settle=0.0) as client,
        ):
            agent.add(Site(name="a"))
            agent.add(MovingShelf(number=1))
            await client.locate(settle=0.0)
            await until(lambda: client.agents, "the agent")
            (shelf,) = await client.objects("shelf")
            await shelf.call("move", items=1)
            await shelf.on_behalf_of("dave").call("move", items=1)
    assert {request.user_id for request in hook.asked} == {"carol"}
    assert [request.on_behalf_of for request in hook.asked if request.action is Action.METHOD] == [None, "dave"]
