"""Events about method calls: one for each call, with or without success; and only if the agent has an audit."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from agent.warehouse import Shelf, ShelfMoveResult
from support.fake_bus import FakeBus
from support.waiting import until

from qmf.agent import Agent, CallAudit
from qmf.agent.layout.object_state import object_id, object_name
from qmf.agent.requests.call_audit import METHOD_CALLED
from qmf.protocol import EventsIndication, MethodRequest, QueryRequest, SchemaIdsResponse, What
from qmf.schema import Schema, parse_schema, to_xml
from qmf.testing import ManualClock


class Moving(Shelf):
    """A shelf that moves, unless it is too much."""

    def move(self, items: int, from_: str, factor: float) -> ShelfMoveResult:
        if items > 10:
            raise RuntimeError("too heavy")
        return ShelfMoveResult(moved=items, note="ok")


def calls_of(bus: FakeBus) -> list[dict[str, Any]]:
    """The arguments of the events sent so far."""
    return [
        dict(event.values)
        for message in bus.take()
        if isinstance(message.content, EventsIndication)
        for event in message.content.events
        if event.class_key == METHOD_CALLED.key
    ]


@pytest.fixture(params=[None, CallAudit(), CallAudit(arguments=True)], ids=["off", "calls", "arguments"])
async def agent(request: pytest.FixtureRequest, bus: FakeBus, clock: ManualClock) -> AsyncIterator[Agent]:
    agent = Agent(bus, vendor="v", product="p", instance="i", epoch=3, clock=clock, audit=request.param, interval=1e6)
    await agent.start()
    bus.take()
    yield agent
    await agent.close()


async def test_calls_are_reported(agent: Agent, bus: FakeBus, request: pytest.FixtureRequest) -> None:
    shelf = Moving(number=1)
    agent.add(shelf)
    audit: CallAudit | None = request.node.callspec.params["agent"]
    for call in (
        MethodRequest(method="move", object_id=object_id(shelf), arguments={"items": 3}),
        MethodRequest(method="move", object_id=object_id(shelf), arguments={"items": 30}),
        MethodRequest(method="fly", object_id=object_id(shelf), arguments={}, on_behalf_of="ann"),
        MethodRequest(method="move", object_id=None, arguments={}),
    ):
        await bus.request(call)
    if audit is None:
        (answer,) = await bus.request(QueryRequest(what=What.SCHEMA_ID))
        assert isinstance(answer.content, SchemaIdsResponse)
        assert METHOD_CALLED.key not in answer.content.keys
        assert calls_of(bus) == []
        return
    found: list[dict[str, Any]] = []

    def all_there() -> bool:
        found.extend(calls_of(bus))
        return len(found) == 4

    await until(all_there)
    assert [(row["method"], row["code"], row["text"]) for row in found] == [
        ("move", 0, ""),
        ("move", 7, "too heavy"),
        ("fly", 2, found[2]["text"]),
        ("move", 4, "method move needs an '_object_id'"),
    ]
    assert [row["onBehalfOf"] for row in found] == ["", "", "ann", ""]
    names = [row["object"]["_object_name"] if "object" in row else None for row in found]
    assert names == [*[object_name(shelf)] * 3, None]
    assert all(row["replyTo"] and row["duration"] >= 0 for row in found)
    wanted = ({"items": 3}, {"moved": 3, "note": "ok"}) if audit.arguments else ({}, {})
    assert (found[0]["arguments"], found[0]["results"]) == wanted


def test_the_hash_is_that_of_the_class_in_xml() -> None:
    xml = to_xml(Schema(package=METHOD_CALLED.package, classes=(), events=(METHOD_CALLED,)))
    (event,) = parse_schema(xml.encode(), "audit.xml").events
    assert event == METHOD_CALLED
