"""Subscriptions to the same objects at the same interval share their publications, and lose nothing by it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from agent.asking import names, objects
from agent.subscribing import REPLY_TO, SHELVES, SITES, Subscriber, settled
from agent.warehouse import Shelf, Site
from support.fake_bus import FakeBus

from qmf.agent import Agent
from qmf.agent.requests.subscription_view import SubscriptionView, Written
from qmf.errors import DisconnectedError
from qmf.protocol import Envelope, SubscribeCancel, SubscribeRequest, SubscribeResponse
from qmf.testing import ManualClock


class Scans:
    """Counts how often a view looks for changes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        original = SubscriptionView.changes

        def changes(view: SubscriptionView) -> AsyncGenerator[Written, None]:
            self.count += 1
            return original(view)

        monkeypatch.setattr(SubscriptionView, "changes", changes)

    def take(self) -> int:
        """The number since the last call."""
        count, self.count = self.count, 0
        return count


@pytest.fixture
def scans(monkeypatch: pytest.MonkeyPatch) -> Scans:
    return Scans(monkeypatch)


@pytest.fixture
def shelves(quiet_agent: Agent) -> list[Shelf]:
    made = [Shelf(number=number) for number in range(3)]
    for shelf in made:
        quiet_agent.add(shelf)
    return made


async def subscribed(bus: FakeBus, clock: ManualClock, **wanted: Any) -> Subscriber:
    """A subscriber that has its first publication, which has all shelves."""
    subscriber = Subscriber(bus, clock)
    first = await subscriber.subscribe(**wanted)
    assert len(first) == len({str(item.object_id) for item in first})
    await settled()
    return subscriber


async def published(bus: FakeBus, clock: ManualClock, seconds: float = 2) -> dict[str, list[Envelope]]:
    """The publications of some seconds, by subscription."""
    bus.take()
    await clock.advance(seconds)
    await settled()
    found: dict[str, list[Envelope]] = {}
    for message in bus.take():
        assert message.subscription is not None
        found.setdefault(message.subscription, []).append(message)
    return found


async def test_they_share_one_look_for_changes(
    bus: FakeBus, clock: ManualClock, shelves: list[Shelf], scans: Scans
) -> None:
    subscribers = [await subscribed(bus, clock) for _ in range(3)]
    assert scans.take() == 3
    shelves[1].in_.inc()
    found = await published(bus, clock)
    assert scans.take() == 1
    assert found.keys() == {item.granted.subscription_id for item in subscribers}
    for messages in found.values():
        assert (names(messages), messages[0].sequence) == ([",1"], 2)
    assert await published(bus, clock) == {}


@pytest.mark.parametrize(
    "other", [{"interval": 3}, {"class_key": SITES}, {"where": ["eq", "number", ["quote", 1]]}, {"select": ["number"]}]
)
async def test_others_do_not(
    quiet_agent: Agent, bus: FakeBus, clock: ManualClock, shelves: list[Shelf], scans: Scans, other: dict[str, Any]
) -> None:
    quiet_agent.add(Site(name="s"))
    await subscribed(bus, clock)
    await subscribed(bus, clock, **other)
    scans.take()
    await published(bus, clock, 6)
    assert scans.take() == 2


async def test_one_that_joins_receives_everything_first_and_then_all_changes(
    bus: FakeBus, clock: ManualClock, shelves: list[Shelf]
) -> None:
    early = await subscribed(bus, clock)
    shelves[0].in_.inc()
    late = await subscribed(bus, clock)
    shelves[1].in_.inc()
    found = await published(bus, clock)
    first, second = found[early.granted.subscription_id], found[late.granted.subscription_id]
    assert names(first) == names(second)
    assert len(objects(first)) == 2
    assert (first[0].sequence, second[0].sequence) == (2, 2)


async def test_a_console_knows_its_subscription_before_a_publication(
    bus: FakeBus, clock: ManualClock, shelves: list[Shelf], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whose first publication may be the one of another that asked for the same at the same time."""
    answers, send = itertools.count(), bus.send

    async def send_slowly(data: bytes, *, confirm: bool = False) -> None:
        if b"_subscribe_response" in data:
            for _ in range(next(answers) * 30):
                await asyncio.sleep(0)
        await send(data, confirm=confirm)

    monkeypatch.setattr(bus, "send", send_slowly)
    for number in range(3):
        bus.deliver_request(SubscribeRequest(class_key=SHELVES, interval=2), REPLY_TO, str(number))
    await settled()
    await settled()
    known: set[str] = set()
    publications = 0
    for message in bus.take():
        if isinstance(message.content, SubscribeResponse):
            known.add(message.content.subscription_id)
        else:
            assert message.subscription in known
            publications += 1
    assert (len(known), publications) == (3, 3)


async def test_those_that_come_while_one_waits_share_its_first_publication(
    bus: FakeBus, clock: ManualClock, shelves: list[Shelf], scans: Scans
) -> None:
    for number in range(5):
        bus.deliver_request(SubscribeRequest(class_key=SHELVES, interval=2), REPLY_TO, str(number))
    await settled()
    assert sum(isinstance(message.content, SubscribeResponse) for message in bus.take()) == 5
    assert scans.take() < 5
    shelves[0].in_.inc()
    assert len(await published(bus, clock)) == 5


async def test_one_that_ends_leaves_the_others(
    quiet_agent: Agent, bus: FakeBus, clock: ManualClock, shelves: list[Shelf]
) -> None:
    first, second = [await subscribed(bus, clock) for _ in range(2)]
    await first.send(SubscribeCancel(subscription_id=first.granted.subscription_id), reply_to=None)
    assert quiet_agent.statistics.active_subscriptions == 1
    shelves[0].in_.inc()
    assert (await published(bus, clock)).keys() == {second.granted.subscription_id}
    await second.send(SubscribeCancel(subscription_id=second.granted.subscription_id), reply_to=None)
    third = await subscribed(bus, clock)
    shelves[0].in_.inc()
    assert (await published(bus, clock)).keys() == {third.granted.subscription_id}


async def test_one_that_expires_leaves_the_others(bus: FakeBus, clock: ManualClock, shelves: list[Shelf]) -> None:
    lasting = await subscribed(bus, clock)
    await subscribed(bus, clock, lifetime=3)
    await published(bus, clock, 4)
    shelves[0].in_.inc()
    assert (await published(bus, clock)).keys() == {lasting.granted.subscription_id}


@pytest.mark.parametrize("good", range(4))
async def test_a_publication_that_failed_is_repeated_to_all(
    quiet_agent: Agent, bus: FakeBus, clock: ManualClock, good: int
) -> None:
    sites = [Site(name=str(number)) for number in range(150)]
    for site in sites:
        quiet_agent.add(site)
    subscribers = [await subscribed(bus, clock, class_key=SITES) for _ in range(2)]
    for site in sites:
        quiet_agent.remove(site)
    bus.failures = [*[None] * good, DisconnectedError("fake://", "gone")]
    await published(bus, clock)
    found = await published(bus, clock)
    assert found.keys() == {item.granted.subscription_id for item in subscribers}
    for messages in found.values():
        assert sum(len(objects([message])) for message in messages) == 150
        assert [message.sequence for message in messages] == list(range(3, 3 + len(messages)))
