"""What is published, when, and that nothing is lost while there is no connection."""

from __future__ import annotations

import pytest
from agent.object_states import store_unchecked
from agent.warehouse import Belt, Shelf, Site
from support.fake_bus import FakeBus
from support.waiting import until

from qmf.agent import Agent
from qmf.agent.sending.message_batcher import MAX_BYTES
from qmf.errors import DisconnectedError, LinkError
from qmf.protocol import BodyForm, Envelope, Heartbeat, ObjectData, ObjectsIndication
from qmf.testing import ManualClock


async def interval(bus: FakeBus, clock: ManualClock) -> list[Envelope]:
    """Let one interval pass; what was published in it, the heartbeat last."""
    bus.take()
    await clock.advance(10)
    await until(lambda: bool(bus.confirmed) and bus.confirmed[-1])
    return bus.take()


def objects(messages: list[Envelope]) -> list[ObjectData]:
    return [
        item
        for message in messages
        if isinstance(message.content, ObjectsIndication)
        for item in message.content.objects
    ]


def names(messages: list[Envelope]) -> list[str]:
    return [item.object_id.object_name.rpartition(":")[2] for item in objects(messages) if item.object_id]


async def test_an_interval_ends_with_a_confirmed_heartbeat(agent: Agent, bus: FakeBus, clock: ManualClock) -> None:
    (message,) = await interval(bus, clock)
    assert isinstance(message.content, Heartbeat)
    info = message.content.agent
    assert (info.name, info.epoch, info.heartbeat_interval, info.capability) == ("example.org:stock:one", 3, 10, 1)
    assert info.timestamp == clock.now
    assert info.attributes == {"site": "lab", "_subscriptions": 1}
    assert (message.to, message.subject) == ("qmf.default.topic", "agent.ind.heartbeat.example_org.stock.one")
    assert (message.ttl, message.agent, message.correlation_id) == (20.0, "example.org:stock:one", None)


async def test_a_new_object_comes_with_everything_and_then_only_what_changed(
    agent: Agent, bus: FakeBus, clock: ManualClock
) -> None:
    shelf = Shelf(number=1)
    created = clock.now
    agent.add(shelf)
    first, heartbeat = await interval(bus, clock)
    (data,) = objects([first])
    assert isinstance(heartbeat.content, Heartbeat)
    assert first.subject == "agent.ind.data.org_example_stock.shelf.example_org.stock.one"
    assert set(data.values) == set(shelf._qmf_values())
    assert (data.create_ts, data.update_ts, data.delete_ts) == (created, clock.now, 0)
    assert data.class_key is not None
    assert (data.class_key.name, data.class_key.hash) == ("shelf", Shelf._qmf_schema_.hash)

    assert objects(await interval(bus, clock)) == []

    shelf.in_.inc()
    (data,) = objects(await interval(bus, clock))
    assert set(data.values) == set(shelf._qmf_values(properties=False))

    shelf.limit = 20
    (data,) = objects(await interval(bus, clock))
    assert set(data.values) == set(shelf._qmf_values(statistics=False))


async def test_objects_go_by_class_and_by_the_hundred(agent: Agent, bus: FakeBus, clock: ManualClock) -> None:
    for number in range(150):
        agent.add(Site(name=str(number)))
        if number % 50 == 0:
            agent.add(Belt())
    messages = await interval(bus, clock)
    counts = [len(objects([message])) for message in messages]
    assert counts == [100, 50, 3, 0]
    assert len({item.class_key for item in objects([messages[0]])}) == 1
    assert agent.statistics.objects_published == 153


async def test_large_objects_go_in_smaller_messages(agent: Agent, bus: FakeBus, clock: ManualClock) -> None:
    for number in range(40):
        agent.add(Shelf(number=number, class_="x" * 5000))
    agent.add(Shelf(number=1000, class_="x" * 65000))
    await clock.advance(10)
    await until(lambda: bool(bus.confirmed) and bus.confirmed[-1])
    sizes = [len(data) for data in bus.sent]
    assert sum(size > MAX_BYTES for size in sizes) == 1
    assert len(objects(bus.take())) == 41


async def test_deletions_come_first_and_whole(agent: Agent, bus: FakeBus, clock: ManualClock) -> None:
    kept, gone, brief = Site(name="kept"), Shelf(number=1), Site(name="brief")
    agent.add(kept)
    agent.add(gone)
    await interval(bus, clock)
    agent.add(brief)
    agent.remove(brief)
    agent.remove(gone)
    again = Shelf(number=1)
    agent.add(again)
    found = objects(await interval(bus, clock))
    assert [bool(item.delete_ts) for item in found] == [True, True, False]
    assert [item.values.get("name", item.values.get("number")) for item in found] == ["brief", 1, 1]
    assert set(found[1].values) == set(gone._qmf_values())


async def test_hilo_and_mma_belong_to_the_interval(agent: Agent, bus: FakeBus, clock: ManualClock) -> None:
    shelf = Shelf(number=1)
    agent.add(shelf)
    shelf.users.inc(5)
    shelf.users.set(2)
    shelf.wait.sample(10)
    seen = [objects(await interval(bus, clock)) for _ in range(3)]
    marks = [[item.values[name] for name in ("usersHigh", "usersLow", "waitCount")] for part in seen for item in part]
    assert marks == [[5, 0, 1], [2, 2, 0]]


async def test_samples_alone_are_published(agent: Agent, bus: FakeBus, clock: ManualClock) -> None:
    shelf = Shelf(number=1)
    agent.add(shelf)
    await interval(bus, clock)
    assert objects(await interval(bus, clock)) == []
    shelf.wait.sample(10)
    seen = [[item.values["waitCount"] for item in objects(await interval(bus, clock))] for _ in range(3)]
    assert seen == [[1], [0], []]


async def test_nothing_is_published_while_disconnected_and_all_of_it_after(
    agent: Agent, bus: FakeBus, clock: ManualClock
) -> None:
    shelf, gone = Shelf(number=1), Site(name="gone")
    agent.add(shelf)
    agent.add(gone)
    await interval(bus, clock)
    bus.disconnect()
    shelf.users.inc(5)
    agent.remove(gone)
    await clock.advance(10)
    shelf.users.set(1)
    await clock.advance(10)
    await clock.idle()
    assert bus.take() == []
    bus.reconnect()
    await until(lambda: bool(bus.confirmed) and bus.confirmed[-1])
    messages = bus.take()
    assert isinstance(messages[0].content, Heartbeat)
    deleted, changed = objects(messages)
    assert (deleted.values["name"], bool(deleted.delete_ts)) == ("gone", True)
    assert [changed.values[name] for name in ("users", "usersHigh", "usersLow")] == [1, 5, 0]


async def test_without_changes_a_reconnect_costs_one_heartbeat(agent: Agent, bus: FakeBus, clock: ManualClock) -> None:
    agent.add(Site(name="here"))
    await interval(bus, clock)
    bus.take()
    bus.disconnect()
    confirmed = len(bus.confirmed)
    bus.reconnect()
    await until(lambda: len(bus.confirmed) > confirmed and bus.confirmed[-1])
    (only,) = bus.take()
    assert isinstance(only.content, Heartbeat)


@pytest.mark.parametrize(
    "failure", [DisconnectedError("fake://", "gone"), LinkError("", "amqp:unauthorized-access", "no")]
)
@pytest.mark.parametrize("good", [0, 1, 2])
async def test_what_broke_off_is_published_again(
    agent: Agent, bus: FakeBus, clock: ManualClock, good: int, failure: DisconnectedError | LinkError
) -> None:
    shelf, gone = Shelf(number=1), Site(name="gone")
    agent.add(shelf)
    agent.add(gone)
    await interval(bus, clock)
    shelf.wait.sample(3)
    shelf.limit = 9
    agent.remove(gone)
    bus.failures = [*[None] * good, failure]
    await clock.advance(10)
    await until(lambda: not bus.failures)
    bus.take()
    shelf.wait.sample(5)
    deleted, changed = objects(await interval(bus, clock))
    assert deleted.values["name"] == "gone"
    assert (changed.values["waitCount"], changed.values["waitAvg"], changed.values["limit"]) == (2, 4, 9)
    assert agent.statistics.objects_published == 4


async def test_a_reference_is_published_once_its_object_is_there(
    agent: Agent, bus: FakeBus, clock: ManualClock
) -> None:
    late = Site(name="late")
    shelf = Shelf(number=1, nextRef=late)
    agent.add(shelf)
    (data,) = objects(await interval(bus, clock))
    assert "nextRef" not in data.values
    assert objects(await interval(bus, clock)) == []
    late_id = agent.add(late)
    found = objects(await interval(bus, clock))
    values = next(item.values for item in found if "nextRef" in item.values)
    assert values["nextRef"] == {
        "_object_name": late_id.object_name,
        "_agent_name": late_id.agent_name,
        "_agent_epoch": late_id.agent_epoch,
    }


async def test_an_object_that_cannot_be_encoded_does_not_stop_the_others(
    agent: Agent, bus: FakeBus, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    shelves = [Shelf(number=number) for number in range(9)]
    for shelf in shelves:
        agent.add(shelf)
    store_unchecked(shelves[4], "tags", [object()])
    found = objects(await interval(bus, clock))
    assert [item.values["number"] for item in found] == [0, 1, 2, 3, 5, 6, 7, 8]
    assert agent.statistics.unencodable == 1
    assert "skipped object org.example.stock:shelf:,4" in caplog.text


async def test_both_forms_of_bodies_have_the_same_content() -> None:
    published = []
    for form in BodyForm:
        bus, clock = FakeBus(), ManualClock()
        async with Agent(bus, vendor="v", product="p", instance="i", epoch=3, clock=clock, form=form) as agent:
            site, gone, shelf = Site(name="a"), Site(name="gone"), Shelf(number=1, label="x", options={"a": [1]})
            for obj in (site, gone, shelf):
                agent.add(obj)
            shelf.nextRef = shelf
            first = await interval(bus, clock)
            agent.remove(gone)
            shelf.wait.sample(5)
            shelf.users.inc(3)
            second = await interval(bus, clock)
        published.append(
            [(item.object_id, item.class_key, item.values, bool(item.delete_ts)) for item in objects([*first, *second])]
        )
    assert published[0] == published[1]
    assert len(published[0]) == 5


async def test_late_intervals_are_not_made_up_for(agent: Agent, bus: FakeBus, clock: ManualClock) -> None:
    await clock.advance(95)
    await until(lambda: len(bus.sent) == 1)
    await clock.advance(10)
    await until(lambda: len(bus.sent) == 2)
