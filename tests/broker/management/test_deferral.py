"""Objects of what clients have are made when they are needed; who looks sees no difference."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack
from typing import Any

import pytest
from broker.management.managed import NEVER, TOPIC, connected, id_of, managed, queues
from support.fake_bus import FakeBus
from support.recording import Inbox, message
from support.waiting import until

from qmf.agent import Agent, ManagedObject
from qmf.broker import Broker
from qmf.broker.management.deferral import AT_ONCE, BEFORE_PUBLICATION, ObjectDeferral
from qmf.broker.management.sampling import SampledObject, SampledObjects, StatisticsSampler
from qmf.bus import Binding
from qmf.bus.base import ReceivedMessage
from qmf.console.aio import Answers, Client
from qmf.console.typed import TypedObject
from qmf.messaging import aio
from qmf.models.broker import agent as model
from qmf.models.broker import console as remote
from qmf.protocol import Envelope, EventData, EventsIndication, ObjectId, decode
from qmf.protocol.addresses import EVENT_BINDING

DEFERRED = (
    remote.Connection,
    remote.Session,
    remote.Incoming,
    remote.Outgoing,
    remote.Subscription,
    remote.Queue,
    remote.Binding,
)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Numbers of the objects that are made in the process, by class."""
    numbers: Counter[str] = Counter()
    make = ManagedObject.__init__

    def count(self: ManagedObject, **values: object) -> None:
        numbers[type(self).__name__] += 1
        make(self, **values)

    monkeypatch.setattr(ManagedObject, "__init__", count)
    return numbers


async def client_with_links(broker: Broker, stack: AsyncExitStack) -> None:
    bus = await stack.enter_async_context(connected(broker.url))
    await bus.subscribe(Binding(TOPIC, "a"), Inbox())
    await bus.subscribe(Binding(TOPIC, "b"), Inbox())
    await bus.send(message(TOPIC, "nobody"), confirm=True)


async def test_clients_that_come_and_go_unseen_cost_no_object(made: Counter[str]) -> None:
    async with Broker(port=0, management=NEVER) as broker:
        before = made.copy()
        async with AsyncExitStack() as stack:
            for _ in range(5):
                await client_with_links(broker, stack)
        await until(lambda: not broker.connections, "the end of the connections")
        assert made == before


async def test_a_query_makes_those_of_its_class_and_of_what_they_refer_to(made: Counter[str]) -> None:
    async with managed() as (broker, client), AsyncExitStack() as stack:
        await client.objects(remote.Connection)
        before = made.copy()
        for _ in range(3):
            await client_with_links(broker, stack)
        await client.objects(remote.Session)
        assert made - before == {"ManagedConnection": 3, "ManagedSession": 4}
        await client.objects(remote.Session)
        assert made - before == {"ManagedConnection": 3, "ManagedSession": 4}


def _without_names(items: list[Any]) -> list[dict[str, object]]:
    """The values of objects, but for those that are never the same for two of them."""
    varying = ("address", "name", "fullName", "remoteProperties", "containerid", "target", "bindingKey", "dest")
    counts = ("framesFromClient", "framesToClient", "bytesFromClient", "bytesToClient")
    found = []
    for item in items:
        values = item._qmf_remote.data.values
        found.append(
            {
                name: value
                for name, value in values.items()
                if name not in varying and name not in counts and not name.endswith("Ref")
            }
        )
    return sorted(found, key=str)


async def _of_new_client(client: Client, known: set[ObjectId]) -> dict[str, list[dict[str, object]]]:
    found: dict[str, list[dict[str, object]]] = {}
    for cls in DEFERRED:
        items: list[TypedObject] = [item for item in await client.objects(cls) if id_of(item) not in known]
        known.update(id_of(item) for item in items)
        found[cls.__name__] = _without_names(items)
    return found


async def test_what_is_seen_is_the_same_as_of_objects_that_are_made_at_once() -> None:
    async with managed() as (broker, client), AsyncExitStack() as stack:
        known: set[ObjectId] = set()
        await _of_new_client(client, known)
        await client_with_links(broker, stack)
        late = await _of_new_client(client, known)
        # The objects of this one are made as they come: before each step, somebody looks at all of them.
        bus = await stack.enter_async_context(connected(broker.url))
        for step in (
            lambda: bus.subscribe(Binding(TOPIC, "a"), Inbox()),
            lambda: bus.subscribe(Binding(TOPIC, "b"), Inbox()),
            lambda: bus.send(message(TOPIC, "nobody"), confirm=True),
        ):
            await _of_new_client(client, set())
            await step()
        assert await _of_new_client(client, known) == late
        assert {name: len(items) for name, items in late.items()} == {
            "Connection": 1,
            "Session": 1,
            "Incoming": 1,
            "Outgoing": 2,
            "Subscription": 2,
            "Queue": 2,
            "Binding": 4,
        }


async def test_the_time_of_an_object_is_that_of_what_it_stands_for() -> None:
    async with managed() as (broker, client), AsyncExitStack() as stack:
        known = {id_of(item) for item in await client.objects(remote.Connection)}
        before = time.time_ns()
        await client_with_links(broker, stack)
        after = time.time_ns()
        (new,) = [item for item in await client.objects(remote.Connection) if id_of(item) not in known]
        times = new._qmf_remote.timestamps
        assert times is not None
        assert before <= times.create <= after


async def test_events_come_at_once_and_in_order() -> None:
    raised: list[EventData] = []

    def collect(received: ReceivedMessage) -> None:
        decoded = decode(received.data)
        assert isinstance(decoded, Envelope)
        assert isinstance(decoded.content, EventsIndication)
        raised.extend(decoded.content.events)
        received.settle()

    def names() -> list[str]:
        return [item.class_key.name for item in raised if item.class_key is not None]

    async with Broker(port=0, management=NEVER) as broker, connected(broker.url) as listening:
        await listening.subscribe(Binding("qmf.default.topic", EVENT_BINDING), collect)
        await until(lambda: "subscribe" in names(), "those of the listener itself")
        raised.clear()
        async with connected(broker.url) as bus:
            await bus.subscribe(Binding(TOPIC, "a"), Inbox())
            await until(lambda: "subscribe" in names(), "the subscription")
            assert names() == ["clientConnect", "queueDeclare", "bind", "subscribe"]
        await until(lambda: "clientDisconnect" in names(), "the end of the connection")
        assert names()[4:] == ["unsubscribe", "unbind", "queueDelete", "clientDisconnect"]


async def test_an_object_is_found_by_its_id_before_it_was_seen() -> None:
    """Ids are made of names, so consoles know those of queues."""
    async with managed() as (broker, client), AsyncExitStack() as stack:
        (it,) = await client.objects(remote.Broker)
        (known,) = await client.objects(remote.Queue, where={"name": (await client.objects(remote.Queue))[0].name})
        await it.create("queue", "jobs", {}, False)
        first = id_of(known)
        package = first.object_name.partition(":")[0]
        wanted = ObjectId(f"{package}:queue:jobs", first.agent_name, first.agent_epoch)
        assert len(await client.objects(object_id=wanted)) == 1
        await client_with_links(broker, stack)
        await it.create("queue", "more", {}, False)
        queue = remote.Queue((await client.objects(object_id=wanted))[0])
        await queue.purge(0, {})
        assert await client.objects(object_id=ObjectId(f"{package}:queue:none", first.agent_name)) == Answers(())


async def test_high_values_begin_when_receivers_come() -> None:
    async with managed() as (broker, client):
        (it,) = await client.objects(remote.Broker)
        await it.create("queue", "jobs", {}, False)
        await it.create("binding", "amq.direct/jobs/k", {}, False)
        await it.delete("binding", "amq.direct/jobs/k", {})
        async with aio.Connection(broker.url) as connection:
            session = await connection.session()
            receivers = [await session.receiver("jobs") for _ in range(2)]
            for receiver in receivers:
                await receiver.close()
        jobs = (await queues(client))["jobs"]
        assert (jobs.bindingCount.value, jobs.bindingCount.high) == (1, 2)
        assert (jobs.consumerCount.value, jobs.consumerCount.high, jobs.consumerCount.low) == (0, 2, 0)


class Row(model.Memory, SampledObject):
    """An object without anything behind it."""


class Rows:
    """Objects that wait, and who wants them."""

    def __init__(self) -> None:
        self.agent = Agent(FakeBus(), vendor="example.org", product="rows")
        self.objects: SampledObjects[int, Row] = SampledObjects(self.agent, StatisticsSampler(), "Memory")
        self.heard = self.followed = False
        self.deferral = ObjectDeferral(
            {model.Memory._qmf_schema_.key: self.objects}, heard=lambda _: self.heard, followed=lambda: self.followed
        )

    def add(self, count: int) -> None:
        for number in range(count):
            self.objects.add_later(number, lambda number=number: (Row(name=str(number)), None))  # type: ignore[misc]


async def test_what_nobody_wants_is_made_after_an_interval() -> None:
    rows = Rows()
    rows.deferral.on_interval()
    rows.add(3)
    rows.deferral.on_interval()
    assert (rows.objects.waiting, len(rows.agent.objects)) == (3, 0)
    rows.objects.remove(1)
    rows.deferral.on_interval()
    assert [item.name for item in rows.agent.objects] == ["0", "2"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("wanted", ["heard", "followed"])
async def test_what_is_published_next_is_made_before(wanted: str) -> None:
    rows = Rows()
    rows.add(3)
    setattr(rows, wanted, True)
    rows.deferral.on_interval()
    assert (rows.objects.waiting, len(rows.agent.objects)) == (0, 3)


async def test_many_are_made_a_few_at_a_time() -> None:
    rows = Rows()
    rows.heard = True
    rows.add(BEFORE_PUBLICATION + 3 * AT_ONCE)
    rows.deferral.on_interval()
    assert rows.objects.waiting == 3 * AT_ONCE
    await until(lambda: not rows.objects.waiting, "the others")
    rows.add(BEFORE_PUBLICATION + 3 * AT_ONCE)
    rows.deferral.on_interval()
    await rows.deferral.close()
    assert rows.objects.waiting >= 2 * AT_ONCE


async def test_a_query_of_many_lets_others_have_their_turns() -> None:
    rows = Rows()
    rows.add(4 * AT_ONCE)
    assert rows.deferral.is_large("Memory")
    assert not rows.deferral.is_large("other")
    making = asyncio.ensure_future(rows.deferral.make_all("Memory"))
    waiting = []
    while not making.done():
        waiting.append(rows.objects.waiting)
        await asyncio.sleep(0)
    assert waiting[:4] == [4 * AT_ONCE, 3 * AT_ONCE, 2 * AT_ONCE, AT_ONCE]
    assert rows.objects.waiting == 0


async def test_a_query_for_many_is_answered_with_all(made: Counter[str]) -> None:
    async with managed() as (broker, client):
        (it,) = await client.objects(remote.Broker)
        before = len(await client.objects(remote.Queue))
        for number in range(AT_ONCE + 1):
            await it.create("queue", f"queue-{number}", {}, False)
        assert made["ManagedQueue"] <= before
        assert len(await client.objects(remote.Queue)) == before + AT_ONCE + 1
        assert broker.connections == 1
