"""What agents publish: objects and events."""

from __future__ import annotations

import logging

import attrs
import pytest
from console.aio.objects.remotes import AGENT, remote
from console.conftest import MakeAgent, MakeClient
from support.recording import Notifications
from support.scripted_agent import ALARM, WIDGET, ScriptedAgent, part, widget
from support.waiting import until

from qmf.bus import Binding, MemoryBus, MemoryExchange, ReceivedMessage
from qmf.bus.base import MessageCallback
from qmf.bus.memory.subscription import MemorySubscription
from qmf.console.aio import (
    AgentAdded,
    AgentRestarted,
    Client,
    EventRaised,
    ObjectUpdated,
)
from qmf.console.aio.indications import ObjectStore
from qmf.protocol import DATA_BINDING, Envelope, EventData, EventsIndication, ObjectId, QueryRequest
from qmf.schema import Severity


def test_an_older_answer_does_not_undo_an_indication() -> None:
    store = ObjectStore()
    store.update(remote(widget("w", turns=2, update=20)))
    store.update(remote(widget("w", turns=1, update=10)))
    kept = store.get(ObjectId("w", AGENT))
    assert kept is not None
    assert kept["turns"] == 2


def test_a_new_object_under_an_old_id_inherits_nothing() -> None:
    store = ObjectStore()
    store.update(remote(widget("w", label="x")))
    fresh = attrs.evolve(part("w", {"name": "w"}), create_ts=2)
    assert store.update(remote(fresh)).label is None


async def test_partial_updates_are_merged(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    _, heard = await make_client()
    await agent.publish(widget("w", label="x", update=1))
    await agent.publish(part("w", {"turns": 8, "delayAvg": 21}, update=2))
    await agent.publish(part("w", {"name": "w", "level": 6, "enabled": False}, update=3))
    await until(lambda: len(heard.of(ObjectUpdated)) == 3)
    full, statistics, properties = heard.of(ObjectUpdated)
    assert (full.properties, full.statistics) == (True, True)
    assert (statistics.properties, statistics.statistics) == (False, True)
    assert (properties.properties, properties.statistics) == (True, False)
    assert (statistics.object["name"], statistics.object["turns"], statistics.object["label"]) == ("w", 8, "x")
    assert (properties.object["level"], properties.object["turns"], properties.object["label"]) == (6, 8, None)
    assert full.object["turns"] == 7  # a notification is a snapshot
    assert properties.object.timestamps.update == 3
    assert len({item.object.object_id for item in heard.of(ObjectUpdated)}) == 1


async def test_a_deleted_object_is_reported_and_forgotten(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    _, heard = await make_client()
    await agent.publish(widget("w"))
    await agent.publish(part("w", {}, delete=9))
    await until(lambda: len(heard.of(ObjectUpdated)) == 2)
    gone = heard.of(ObjectUpdated)[1]
    assert gone.object.is_deleted
    assert gone.object["name"] == "w"
    assert gone.properties
    await agent.publish(part("w", {"turns": 8}))
    await until(lambda: len(heard.of(ObjectUpdated)) == 3)
    assert heard.of(ObjectUpdated)[2].object["name"] is None


async def test_objects_are_distinguished_by_agent_and_epoch(make_agent: MakeAgent, make_client: MakeClient) -> None:
    one, two = await make_agent(), await make_agent("example.org:widgets:2")
    _, heard = await make_client()
    await one.publish(widget("w", epoch=0))
    await one.publish(widget("w", epoch=1))
    await two.publish(widget("w", epoch=1))
    await until(lambda: len(heard.of(ObjectUpdated)) == 3)
    assert {item.object.object_id for item in heard.of(ObjectUpdated)} == {
        ObjectId("w", one.info.name),
        ObjectId("w", one.info.name, 1),
        ObjectId("w", two.info.name, 1),
    }
    one.restart()
    await one.heartbeat()
    await until(lambda: heard.of(AgentRestarted))
    for sender, epoch in ((one, 0), (one, 1), (two, 1)):
        await sender.publish(part("w", {"turns": 8}, epoch=epoch))
    await until(lambda: len(heard.of(ObjectUpdated)) == 6)
    names = {item.object.object_id: item.object["name"] for item in heard.of(ObjectUpdated)[3:]}
    assert names == {
        ObjectId("w", one.info.name): "w",
        ObjectId("w", one.info.name, 1): None,  # the transient object of the old run is gone
        ObjectId("w", two.info.name, 1): "w",
    }


async def test_a_queried_object_completes_later_updates(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    client, heard = await make_client()
    await agent.publish(widget("other"))
    await until(lambda: heard.of(ObjectUpdated))
    agent.objects = [widget("w")]
    await client.objects("widget")
    await agent.publish(part("w", {"turns": 9}))
    await until(lambda: len(heard.of(ObjectUpdated)) == 2)
    assert heard.of(ObjectUpdated)[1].object["name"] == "w"


def questions(agent: ScriptedAgent) -> list[Envelope]:
    """The queries that have reached an agent."""
    return [item for item in agent.asked if isinstance(item.content, QueryRequest)]


async def test_indications_wait_for_their_schema_in_order(
    make_agent: MakeAgent, make_client: MakeClient, exchange: MemoryExchange
) -> None:
    agent = await make_agent()
    agent.mute = {QueryRequest}
    _, heard = await make_client()
    for number in range(5):
        await agent.publish(widget("w", turns=number))
    await agent.raise_event({"name": "w", "level": 3, "since": 0})
    await until(lambda: len(questions(agent)) == 2)
    assert heard.of(ObjectUpdated) == []
    for request in questions(agent):
        await agent.reply(request, agent.answer(request.content)[0][0])
    await until(lambda: len(heard.of(ObjectUpdated)) == 5 and heard.of(EventRaised))
    assert [item.object["turns"] for item in heard.of(ObjectUpdated)] == [0, 1, 2, 3, 4]


class CountingBus(MemoryBus):
    """Counts the messages that come through bindings of data."""

    received = 0

    async def subscribe(
        self, binding: Binding, on_message: MessageCallback, *, prefetch: int = 200
    ) -> MemorySubscription:
        def count(message: ReceivedMessage) -> None:
            self.received += binding.key == DATA_BINDING
            on_message(message)

        return await super().subscribe(binding, count, prefetch=prefetch)


async def test_waiting_indications_hold_back_the_broker(make_agent: MakeAgent, exchange: MemoryExchange) -> None:
    agent = await make_agent()
    agent.mute = {QueryRequest}
    bus, heard = CountingBus(exchange), Notifications()
    async with Client(bus, timeout=5, settle=0) as client:
        client.listen(heard.append)
        await until(lambda: client.agents)
        for number in range(300):
            await agent.publish(widget("w", turns=number))
        await until(lambda: questions(agent))
        assert 0 < bus.received <= 200  # the prefetch
        (request,) = questions(agent)
        await agent.reply(request, agent.answer(request.content)[0][0])
        await until(lambda: len(heard.of(ObjectUpdated)) == 300)


async def test_an_event_is_typed_and_ordered_by_its_schema(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    _, heard = await make_client()
    await agent.raise_event({"more": 1, "since": 5, "level": 3, "name": b"w"})
    await until(lambda: heard.of(EventRaised))
    event = heard.of(EventRaised)[0].event
    assert list(event.arguments.items()) == [("name", "w"), ("level", 3), ("since", 5), ("more", 1)]
    assert (event.severity, event.level, event.agent.name) == (4, Severity.WARN, agent.info.name)
    assert event.schema is not None
    assert event.schema.key == ALARM.key


async def test_an_event_without_schema_is_reported(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    _, heard = await make_client()
    event = EventData(values={"a": 1}, severity=7, object_id=ObjectId("w"))
    content = EventsIndication([event])
    await agent.send(
        Envelope(content=content, to="qmf.default.topic", subject="agent.ind.event", agent=agent.info.name)
    )
    await until(lambda: heard.of(EventRaised))
    raised = heard.of(EventRaised)[0].event
    assert (raised.class_key, raised.schema, raised.arguments, raised.level) == (None, None, {"a": 1}, Severity.DEBUG)
    assert raised.object_id == ObjectId("w", agent.info.name)


async def test_an_unknown_agent_is_learned_from_what_it_publishes(
    make_client: MakeClient, make_agent: MakeAgent
) -> None:
    _, heard = await make_client()
    agent = await make_agent()
    await agent.publish(widget("w"))
    await until(lambda: heard.of(ObjectUpdated))
    assert heard.of(AgentAdded)[0].agent.vendor == "example.org"


async def test_one_message_may_mix_classes(make_agent: MakeAgent, make_client: MakeClient) -> None:
    agent = await make_agent()
    gadget = attrs.evolve(WIDGET, name="gadget", hash=ALARM.hash)
    agent.schemas.append(gadget)
    _, heard = await make_client()
    await agent.publish(widget("a"), part("g", {"name": "g"}, key=gadget.key), widget("b"))
    await until(lambda: len(heard.of(ObjectUpdated)) == 3)
    assert {str(item.object["name"]) for item in heard.of(ObjectUpdated)} == {"a", "g", "b"}


async def test_indications_that_name_no_agent_are_skipped(
    make_client: MakeClient, make_agent: MakeAgent, caplog: pytest.LogCaptureFixture
) -> None:
    agent: ScriptedAgent = await make_agent()
    _, heard = await make_client()
    content = EventsIndication([EventData(values={})])
    with caplog.at_level(logging.DEBUG, "qmf.console"):
        await agent.send(Envelope(content=content, to="qmf.default.topic", subject="agent.ind.event"))
        await until(lambda: "skipped an indication without the name of its agent" in caplog.text)
    assert heard.of(EventRaised) == []
