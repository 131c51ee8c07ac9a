"""What is published to subscribers, of stored and of provided objects."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing

import pytest
from agent.asking import names, objects
from agent.subscribing import REPLY_TO, SHELVES, SITES, Subscriber, settled, shelf_id
from agent.warehouse import Shelf, Site
from support.fake_bus import FakeBus
from support.growth import growth
from support.waiting import until

from qmf.agent import Agent, ProviderQuery, SubscriptionLimits
from qmf.agent.metrics import AgentMetrics
from qmf.agent.objects.object_sources import ObjectSelection, ObjectSources
from qmf.agent.objects.object_store import ManagedObjectStore
from qmf.agent.publishing.object_writer import ObjectWriter
from qmf.agent.requests.selections import compile_where
from qmf.agent.requests.subscription_view import SubscriptionView
from qmf.protocol import (
    BodyForm,
    ExceptionResponse,
    ObjectsIndication,
    Predicate,
    SubscribeCancel,
    SubscribeRequest,
    SubscribeResponse,
)
from qmf.testing import ManualClock

# -- what is published -------------------------------------------------------------------------------------------------


async def test_a_snapshot_then_only_what_changed(quiet_agent: Agent, subscriber: Subscriber) -> None:
    shelves = [Shelf(number=number) for number in range(3)]
    for shelf in shelves:
        quiet_agent.add(shelf)
    first = await subscriber.subscribe()
    assert [set(item.values) for item in first] == [set(shelves[0]._qmf_values())] * 3
    assert await subscriber.after() == []

    shelves[1].in_.inc()
    (message,) = await subscriber.after()
    (item,) = objects([message])
    assert (item.object_id, set(item.values)) == (
        shelf_id(quiet_agent, 1),
        set(shelves[1]._qmf_values(properties=False)),
    )
    assert message.sequence == 2

    shelves[0].in_.inc()
    shelves[2].limit = 9
    shelves[0].limit = 9
    found = objects(await subscriber.after())
    assert [len(item.values) for item in found] == [
        len(shelves[0]._qmf_values()),
        len(shelves[2]._qmf_values(statistics=False)),
    ]
    assert await subscriber.after() == []


async def test_samples_are_seen(quiet_agent: Agent, subscriber: Subscriber) -> None:
    shelf = Shelf(number=1)
    quiet_agent.add(shelf)
    await subscriber.subscribe()
    for number in (1, 2):
        shelf.wait.sample(5)
        (item,) = objects(await subscriber.after())
        assert item.values["waitCount"] == number
        assert await subscriber.after() == []
    # A new interval begins without samples, and gets as many samples as the last one had.
    assert await quiet_agent.publish()
    (item,) = objects(await subscriber.after())
    assert item.values["waitCount"] == 0
    shelf.wait.sample(7)
    shelf.wait.sample(9)
    (item,) = objects(await subscriber.after())
    assert (item.values["waitCount"], item.values["waitAvg"]) == (2, 8)


async def test_nothing_comes_before_the_interval_is_over(quiet_agent: Agent, subscriber: Subscriber) -> None:
    shelf = Shelf(number=1)
    quiet_agent.add(shelf)
    await subscriber.subscribe(interval=5)
    shelf.in_.inc()
    assert await subscriber.after(4) == []
    assert len(await subscriber.after(1)) == 1


async def test_new_and_deleted_objects(quiet_agent: Agent, subscriber: Subscriber, clock: ManualClock) -> None:
    old, new = Shelf(number=1), Shelf(number=2)
    quiet_agent.add(old)
    await subscriber.subscribe()
    quiet_agent.add(new)
    quiet_agent.remove(old)
    created, deleted = objects(await subscriber.after())
    assert (created.object_id, set(created.values)) == (shelf_id(quiet_agent, 2), set(new._qmf_values()))
    assert (deleted.object_id, dict(deleted.values), deleted.left) == (shelf_id(quiet_agent, 1), {}, False)
    assert deleted.delete_ts == clock.now
    assert deleted.class_key == created.class_key


async def test_an_object_that_is_replaced_comes_whole(quiet_agent: Agent, subscriber: Subscriber) -> None:
    old, new = Shelf(number=1), Shelf(number=1, label="new")
    quiet_agent.add(old)
    await subscriber.subscribe()
    quiet_agent.remove(old)
    quiet_agent.add(new)
    (item,) = objects(await subscriber.after())
    assert (item.delete_ts, set(item.values)) == (0, set(new._qmf_values()))


async def test_objects_that_begin_and_cease_to_match(quiet_agent: Agent, subscriber: Subscriber) -> None:
    shelves = [Shelf(number=number) for number in range(3)]
    for shelf in shelves:
        quiet_agent.add(shelf)
    shelves[0].in_.set(10)
    assert [item.values["number"] for item in await subscriber.subscribe(where=["ge", "in", ["quote", 10]])] == [0]
    shelves[0].in_.set(9)
    shelves[1].in_.set(20)
    shelves[2].in_.set(9)
    left, begun = objects(await subscriber.after())
    assert (left.object_id, left.left, dict(left.values), left.delete_ts) == (shelf_id(quiet_agent, 0), True, {}, 0)
    assert (begun.left, set(begun.values)) == (False, set(shelves[1]._qmf_values()))
    shelves[2].in_.set(8)
    quiet_agent.remove(shelves[0])
    assert await subscriber.after() == []
    shelves[1].in_.inc()
    assert names(await subscriber.after()) == [",1"]


async def test_selection(quiet_agent: Agent, subscriber: Subscriber) -> None:
    shelf = Shelf(number=1)
    quiet_agent.add(shelf)
    (item,) = await subscriber.subscribe(select=["number", "wait"])
    assert set(item.values) == {"number", "waitCount", "waitMin", "waitMax", "waitAvg"}
    shelf.in_.inc()
    assert [set(item.values) for item in objects(await subscriber.after())] == [
        {"waitCount", "waitMin", "waitMax", "waitAvg"}
    ]
    shelf.limit = 9
    assert [set(item.values) for item in objects(await subscriber.after())] == [{"number"}]


async def test_a_change_of_nothing_selected_is_no_news(quiet_agent: Agent, subscriber: Subscriber) -> None:
    shelf = Shelf(number=1)
    quiet_agent.add(shelf)
    await subscriber.subscribe(select=["number"])
    shelf.in_.inc()
    assert await subscriber.after() == []


async def test_one_object_by_its_id(quiet_agent: Agent, subscriber: Subscriber) -> None:
    assert await subscriber.subscribe(class_key=None, object_id=shelf_id(quiet_agent, 7)) == []
    shelf, other = Shelf(number=7), Shelf(number=8)
    quiet_agent.add(shelf)
    quiet_agent.add(other)
    assert names(await subscriber.after()) == [",7"]
    quiet_agent.remove(shelf)
    assert [bool(item.delete_ts) for item in objects(await subscriber.after())] == [True]


async def test_subscribers_and_the_publisher_take_nothing_from_each_other(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock, interval=3) as agent:
        shelf = Shelf(number=1)
        agent.add(shelf)
        one, two = Subscriber(bus, clock), Subscriber(bus, clock)
        await one.subscribe(interval=2)
        await two.subscribe(interval=4)
        shelf.users.inc(5)
        shelf.users.set(1)
        seen: dict[str | None, list[object]] = {}
        for _ in range(8):
            bus.take()
            await clock.advance(1)
            await settled()
            for message in bus.take():
                if isinstance(message.content, ObjectsIndication):
                    seen.setdefault(message.subscription, []).extend(
                        item.values["usersHigh"] for item in message.content.objects
                    )
        # The publisher's interval ends after 3 s: then the marks go back to rest, which is a change for all.
        assert seen[None] == [5, 1]
        assert seen[one.granted.subscription_id] == [5, 1]
        assert seen[two.granted.subscription_id] == [1]


async def test_large_publications_come_in_parts(quiet_agent: Agent, subscriber: Subscriber, bus: FakeBus) -> None:
    sites = [Site(name=str(number)) for number in range(250)]
    for site in sites:
        quiet_agent.add(site)
    request = SubscribeRequest(class_key=SITES, interval=2, lifetime=100)
    bus.deliver_request(request, REPLY_TO, "1")
    await until(lambda: len(bus.sent) == 4)
    answer, *parts = bus.take()
    assert isinstance(answer.content, SubscribeResponse)
    subscriber.granted = answer.content
    assert [(len(objects([part])), part.partial, part.sequence) for part in parts] == [
        (100, True, 1),
        (100, True, 2),
        (50, False, 3),
    ]
    for site in sites[:100]:
        quiet_agent.remove(site)
    (message,) = await subscriber.after()
    assert (message.sequence, message.partial, len(objects([message]))) == (4, False, 100)


# -- provided classes --------------------------------------------------------------------------------------------------


class Table:
    """Rows that tests change."""

    def __init__(self, *, filters: bool) -> None:
        self.rows: dict[str, dict[str, object]] = {}
        self.filters = filters
        self.broken = False

    def pages(self, query: ProviderQuery) -> Iterator[list[tuple[str, Mapping[str, object]]]]:
        if self.broken:
            raise OSError("locked")
        rows = self.rows.items()
        yield [(key, dict(row)) for key, row in rows if not (self.filters and query.where) or row["in"] == 1]

    def find(self, key: str) -> tuple[str, Mapping[str, object]] | None:
        return (key, self.rows[key]) if key in self.rows else None


@pytest.mark.parametrize("filters", [False, True])
async def test_a_provider_is_asked_each_time(quiet_agent: Agent, subscriber: Subscriber, filters: bool) -> None:
    table = Table(filters=filters)
    quiet_agent.provide(Shelf, table)
    table.rows = {key: {"number": 5, "in": int(key != "d")} for key in "abcd"}
    first = await subscriber.subscribe(where=["eq", "in", ["quote", 1]])
    assert [item.values for item in first] == [{"number": 5, "in": 1}] * 3
    assert await subscriber.after() == []
    table.rows["a"]["number"] = 6
    table.rows["b"]["in"] = 0
    table.rows["d"]["in"] = 1
    del table.rows["c"]
    found = {
        item.object_id.object_name[-1]: (dict(item.values), item.left, bool(item.delete_ts))
        for item in objects(await subscriber.after())
        if item.object_id
    }
    assert found == {
        "a": ({"number": 6}, False, False),
        "b": ({}, True, False),
        "c": ({}, False, True),
        "d": ({"number": 5, "in": 1}, False, False),
    }
    assert await subscriber.after() == []


async def test_a_provider_that_fails_is_asked_again(
    quiet_agent: Agent, subscriber: Subscriber, caplog: pytest.LogCaptureFixture
) -> None:
    table = Table(filters=False)
    quiet_agent.provide(Shelf, table)
    table.rows = {"a": {"number": 5}}
    await subscriber.subscribe()
    table.broken = True
    table.rows["a"]["number"] = 6
    assert await subscriber.after() == []
    table.broken = False
    assert [item.values for item in objects(await subscriber.after())] == [{"number": 6}]
    assert "a subscription skips a publication: the provider of Shelf failed: locked" in caplog.text


async def test_too_many_matches_end_a_subscription(bus: FakeBus, clock: ManualClock) -> None:
    limits = SubscriptionLimits(max_matches=2)
    async with Agent(bus, vendor="v", product="p", clock=clock, subscription_limits=limits) as agent:
        subscriber = Subscriber(bus, clock)
        for number in range(2):
            agent.add(Shelf(number=number))
        assert len(await subscriber.subscribe()) == 2
        agent.add(Shelf(number=2))
        bus.take()
        await clock.advance(2)
        await settled()
        (message,) = bus.take()
        assert message.content == SubscribeCancel(
            subscription_id=subscriber.granted.subscription_id, reason="more than 2 objects match"
        )
        assert agent.statistics.active_subscriptions == 0


@pytest.mark.parametrize("where", [(), ("ge", "number", ["quote", 0])])
async def test_too_many_objects_are_counted_before_the_first_is_published(
    bus: FakeBus, clock: ManualClock, where: Predicate
) -> None:
    limits = SubscriptionLimits(max_matches=2)
    async with Agent(bus, vendor="v", product="p", clock=clock, subscription_limits=limits) as agent:
        for number in range(3):
            agent.add(Shelf(number=number))
        subscriber = Subscriber(bus, clock)
        (answer,) = await bus.request(SubscribeRequest(class_key=SHELVES, where=where), reply_to=REPLY_TO)
        assert isinstance(answer.content, ExceptionResponse)
        assert answer.content.text == "more than 2 objects match"
        assert await subscriber.after() == []
        assert agent.statistics.active_subscriptions == 0


async def test_objects_that_do_not_match_do_not_count(bus: FakeBus, clock: ManualClock) -> None:
    limits = SubscriptionLimits(max_matches=2)
    async with Agent(bus, vendor="v", product="p", clock=clock, subscription_limits=limits) as agent:
        for number in range(5):
            agent.add(Shelf(number=number))
        subscriber = Subscriber(bus, clock)
        assert len(await subscriber.subscribe(where=("lt", "number", ["quote", 2]))) == 2


def test_the_work_for_a_change_does_not_grow_with_the_objects(clock: ManualClock) -> None:
    def prepare(size: int) -> Callable[[], object]:
        store = ManagedObjectStore("v:p:i", 3, lambda: 7)
        shelves = [Shelf(number=number) for number in range(size)]
        for shelf in shelves:
            store.add(shelf, None)
        view = SubscriptionView(
            ObjectSources(store, clock),
            ObjectWriter(store, BodyForm.DATA010),
            ObjectSelection(class_key=SHELVES),
            compile_where(()),
            clock,
            AgentMetrics(),
            1000,
        )

        def publish() -> None:
            asyncio.run(publication(view, 1))

        asyncio.run(publication(view, size))
        shelves[0].in_.inc()
        return publish

    assert growth(prepare) < 1.1


async def publication(view: SubscriptionView, count: int) -> None:
    """Take so many changes of a view, and no others."""
    async with aclosing(view.changes()) as changes:
        assert len([item async for item in changes]) == count
    view.commit()
