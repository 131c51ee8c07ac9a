"""Binding keys, bindings, and the decoding of messages."""

from __future__ import annotations

import asyncio
import logging

import pytest
from console.conftest import MakeAgent, MakeClient
from hypothesis import given
from hypothesis import strategies as st
from support.scripted_agent import PACKAGE, TOPIC, widget
from support.waiting import until

from qmf.bus.topics import TopicTable
from qmf.codec import Message, Section, encode_message
from qmf.console.aio import (
    EventRaised,
    HeartbeatSeen,
    ObjectUpdated,
    class_keys,
    heartbeat_keys,
)
from qmf.console.aio.receiver import key_matches
from qmf.protocol import (
    Envelope,
    LocateRequest,
)


@pytest.mark.parametrize(
    ("kind", "package", "name", "keys"),
    [
        ("data", None, None, ["agent.ind.data.#"]),
        ("event", "a.b", None, ["agent.ind.event.a_b.#", "agent.ind.event.a.b.#"]),
        ("event", "a", "E", ["agent.ind.event.a.E.#"]),
        ("data", "a.b", "Queue", ["agent.ind.data.a_b.queue.#", "agent.ind.data.a.b.queue.#"]),
    ],
)
def test_class_keys(kind: str, package: str | None, name: str | None, keys: list[str]) -> None:
    assert class_keys(kind, package, name) == keys


def test_heartbeat_keys() -> None:
    assert heartbeat_keys(None) == ["agent.ind.heartbeat.#"]
    assert heartbeat_keys("a.b", "C") == ["agent.ind.heartbeat.a_b.C.#", "agent.ind.heartbeat.a.b.C.#"]


WORDS = st.lists(st.sampled_from(["a", "b", ""]), min_size=1, max_size=5).map(".".join)


PATTERNS = st.lists(st.sampled_from(["a", "b", "*", "#", ""]), min_size=1, max_size=5).map(".".join)


@given(PATTERNS, WORDS)
def test_keys_match_as_on_the_bus(pattern: str, subject: str) -> None:
    table: TopicTable[int] = TopicTable()
    table.add(pattern, 1)
    assert key_matches(pattern, subject) is (list(table.match(subject)) == [1])


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


async def test_a_request_of_another_console_is_ignored(
    make_agent: MakeAgent, make_client: MakeClient, caplog: pytest.LogCaptureFixture
) -> None:
    agent = await make_agent()
    client, _ = await make_client()
    with caplog.at_level(logging.DEBUG, "qmf.console"):
        for subject in (client.reply_key, "agent.ind.data.x"):
            await agent.send(Envelope(content=LocateRequest(), to=TOPIC, subject=subject, reply_to="a/b"))
        await until(lambda: caplog.text.count("skipped a LocateRequest, which no console expects") == 2)


async def test_options_say_what_is_received(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    _, everything = await make_client()
    _, nothing = await make_client(events=False, data=False, heartbeats=False)
    await agent.publish(widget("w"))
    await agent.raise_event({"name": "w"})
    await agent.heartbeat()
    await until(lambda: everything.of(HeartbeatSeen) and everything.of(ObjectUpdated) and everything.of(EventRaised))
    assert {type(item).__name__ for item in nothing} <= {"BusConnected", "AgentAdded"}


async def test_bindings_are_added_and_removed_and_overlap_without_doubling(
    make_agent: MakeAgent, make_client: MakeClient
) -> None:
    agent = await make_agent()
    client, heard = await make_client(events=False, data=False, bindings=class_keys("data", PACKAGE, None))
    await client.bind(*class_keys("data", PACKAGE, "Widget"), *class_keys("event", PACKAGE, None))
    await agent.publish(widget("w"))
    await agent.raise_event({"name": "w"})
    await until(lambda: heard.of(EventRaised) and heard.of(ObjectUpdated))
    await client.unbind(*class_keys("data", PACKAGE, None))
    await agent.publish(widget("v"))
    await until(lambda: len(heard.of(ObjectUpdated)) == 2)
    assert [item.object["name"] for item in heard.of(ObjectUpdated)] == ["w", "v"]
    await client.unbind(*class_keys("data", PACKAGE, "widget"))
    await agent.publish(widget("u"))
    await agent.raise_event({"name": "end"})
    await until(lambda: len(heard.of(EventRaised)) == 2)
    assert len(heard.of(ObjectUpdated)) == 2


async def test_binding_a_key_twice_at_once_binds_it_once(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    client, heard = await make_client(data=False)
    keys = class_keys("data", PACKAGE, None)
    await asyncio.gather(client.bind(*keys), client.bind(*keys))
    await agent.publish(widget("w"))
    await agent.raise_event({"name": "end"})
    await until(lambda: heard.of(EventRaised))
    assert len(heard.of(ObjectUpdated)) == 1
    assert set(keys) <= set(client.bindings)
