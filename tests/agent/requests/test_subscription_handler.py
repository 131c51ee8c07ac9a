"""SubscriptionHandler: what is granted, and how they go on and end."""

from __future__ import annotations

from typing import Any

import pytest
from agent.asking import objects, refusal
from agent.subscribing import REPLY_TO, SHELVES, SITES, Subscriber, settled
from agent.warehouse import Shelf, Site
from support.fake_bus import FakeBus
from support.waiting import until

from qmf.agent import Agent, SubscriptionLimits
from qmf.agent.publishing.object_writer import ObjectWriter
from qmf.agent.requests.subscription_handler import MAX_LIFETIME, MIN_INTERVAL
from qmf.errors import CallerError, DisconnectedError
from qmf.protocol import (
    ObjectsIndication,
    SubscribeCancel,
    SubscribeRefresh,
    SubscribeRequest,
    SubscribeResponse,
)
from qmf.testing import ManualClock

# -- granting ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("asked", "interval", "lifetime"),
    [
        ({"interval": 5, "lifetime": 60}, 5, 60),
        ({"interval": 0.01, "lifetime": 10**6}, MIN_INTERVAL, MAX_LIFETIME),
        ({"interval": 0, "lifetime": 0}, 1e6, MAX_LIFETIME),
    ],
)
async def test_what_is_granted(
    quiet_agent: Agent, subscriber: Subscriber, asked: dict[str, float], interval: float, lifetime: float
) -> None:
    assert await subscriber.subscribe(**asked) == []
    assert (subscriber.granted.interval, subscriber.granted.lifetime) == (interval, lifetime)
    assert (quiet_agent.statistics.subscriptions, quiet_agent.statistics.active_subscriptions) == (1, 1)


async def test_the_answer_and_the_first_publication(quiet_agent: Agent, bus: FakeBus) -> None:
    quiet_agent.add(Shelf(number=1))
    request = SubscribeRequest(class_key=SHELVES, interval=2, lifetime=9)
    bus.deliver_request(request, REPLY_TO, "44")
    await until(lambda: len(bus.sent) == 2)
    answer, first = bus.take()
    assert isinstance(answer.content, SubscribeResponse)
    assert (answer.to, answer.subject, answer.correlation_id) == ("qmf.default.topic", "direct-console.9", "44")
    assert isinstance(first.content, ObjectsIndication)
    assert (first.to, first.subject, first.correlation_id) == ("qmf.default.topic", "direct-console.9", None)
    assert (first.subscription, first.sequence, first.partial) == (answer.content.subscription_id, 1, False)
    assert first.agent == quiet_agent.name


@pytest.mark.parametrize(
    ("request_", "code", "text"),
    [
        (SubscribeRequest(), 1, "a query for OBJECT must have an '_object_id' or a '_schema_id'"),
        (SubscribeRequest(class_key=SHELVES, where=["like", "a", "b"]), 1, "invalid predicate: "),
    ],
)
async def test_invalid_requests(
    quiet_agent: Agent, bus: FakeBus, request_: SubscribeRequest, code: int, text: str
) -> None:
    (answer,) = await bus.request(request_)
    assert refusal(answer)[0] == code
    assert refusal(answer)[1].startswith(text)


async def test_a_correlation_id_is_required(quiet_agent: Agent, bus: FakeBus) -> None:
    (answer,) = await bus.request(SubscribeRequest(class_key=SHELVES), correlation_id=None)
    assert refusal(answer) == (4, "a request to subscribe needs a correlation-id")
    assert await bus.request(SubscribeRequest(class_key=SHELVES), reply_to=None) == []


async def test_there_is_a_limit(bus: FakeBus, clock: ManualClock) -> None:
    limits = SubscriptionLimits(max_count=2)
    async with Agent(bus, vendor="v", product="p", clock=clock, subscription_limits=limits):
        for _ in range(2):
            await Subscriber(bus, clock).subscribe(lifetime=50)
        (answer,) = await bus.request(SubscribeRequest(class_key=SHELVES))
        assert refusal(answer) == (7, "too many subscriptions: 2 are the limit")
        clock.now += 51 * 10**9
        await Subscriber(bus, clock).subscribe()


async def test_subscriptions_can_be_turned_off(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock, subscription_limits=None) as agent:
        assert "_subscriptions" not in agent.info.attributes
        (answer,) = await bus.request(SubscribeRequest(class_key=SHELVES))
        assert refusal(answer) == (5, "this agent has no subscriptions")
        (answer,) = await bus.request(SubscribeRefresh(subscription_id="s"))
        assert isinstance(answer.content, SubscribeCancel)


async def test_subscriptions_are_announced(quiet_agent: Agent) -> None:
    assert quiet_agent.info.attributes["_subscriptions"] == 1


@pytest.mark.parametrize("options", [{"min_interval": 0}, {"max_lifetime": 0.5}, {"max_count": 0}, {"max_matches": -1}])
def test_limits_are_checked(options: dict[str, Any]) -> None:
    (name,) = options
    with pytest.raises(CallerError, match=f"'{name}' of subscriptions must be at least"):
        SubscriptionLimits(**options)


# -- life --------------------------------------------------------------------------------------------------------------


async def test_it_expires_without_a_message(quiet_agent: Agent, subscriber: Subscriber, bus: FakeBus) -> None:
    await subscriber.subscribe(lifetime=3)
    await subscriber.after(2)
    assert quiet_agent.statistics.active_subscriptions == 1
    bus.take()
    await subscriber.clock.advance(1)
    await settled()
    assert (bus.take(), quiet_agent.statistics.active_subscriptions) == ([], 0)


@pytest.mark.parametrize("lifetime", [0, 4])
async def test_refreshing_begins_its_life_anew(quiet_agent: Agent, subscriber: Subscriber, lifetime: int) -> None:
    await subscriber.subscribe(lifetime=4)
    await subscriber.after(3)
    refresh = SubscribeRefresh(subscription_id=subscriber.granted.subscription_id, lifetime=lifetime)
    assert await subscriber.send(refresh, reply_to=None) == []
    await subscriber.after(3)
    assert quiet_agent.statistics.active_subscriptions == 1
    await subscriber.after(1)
    assert quiet_agent.statistics.active_subscriptions == 0


async def test_refreshing_is_limited_too(quiet_agent: Agent, subscriber: Subscriber, clock: ManualClock) -> None:
    await subscriber.subscribe(interval=10_000)
    await subscriber.send(SubscribeRefresh(subscription_id=subscriber.granted.subscription_id, lifetime=10**6))
    await subscriber.after(MAX_LIFETIME - 1)
    assert quiet_agent.statistics.active_subscriptions == 1
    await subscriber.after(1)
    assert quiet_agent.statistics.active_subscriptions == 0


async def test_refreshing_an_unknown_subscription_is_answered(quiet_agent: Agent, subscriber: Subscriber) -> None:
    (answer,) = await subscriber.send(SubscribeRefresh(subscription_id="nothing"))
    assert answer.content == SubscribeCancel(subscription_id="nothing", reason="there is no such subscription")
    assert (answer.to, answer.subject) == ("qmf.default.topic", "direct-console.9")
    assert await subscriber.send(SubscribeRefresh(subscription_id="nothing"), reply_to=None) == []


async def test_cancelling(quiet_agent: Agent, subscriber: Subscriber) -> None:
    shelf = Shelf(number=1)
    quiet_agent.add(shelf)
    await subscriber.subscribe()
    cancel = SubscribeCancel(subscription_id=subscriber.granted.subscription_id)
    assert await subscriber.send(cancel, reply_to=None) == []
    assert quiet_agent.statistics.active_subscriptions == 0
    shelf.in_.inc()
    assert await subscriber.after() == []
    assert await subscriber.send(cancel) == []


async def test_an_agent_that_closes_cancels_subscriptions(bus: FakeBus, clock: ManualClock) -> None:
    async with Agent(bus, vendor="v", product="p", clock=clock) as agent:
        subscriber = Subscriber(bus, clock)
        await subscriber.subscribe()
        await Subscriber(bus, clock).subscribe()
        bus.take()
    first, second, *_ = bus.take()
    assert first.content == SubscribeCancel(
        subscription_id=subscriber.granted.subscription_id, reason="the agent closes"
    )
    assert isinstance(second.content, SubscribeCancel)
    assert agent.statistics.active_subscriptions == 0


@pytest.mark.parametrize("good", [0, 1, 2])
async def test_a_failed_publication_is_repeated(
    quiet_agent: Agent, subscriber: Subscriber, bus: FakeBus, good: int
) -> None:
    sites = [Site(name=str(number)) for number in range(250)]
    for site in sites:
        quiet_agent.add(site)
    bus.failures = [None, *[None] * good, DisconnectedError("fake://", "gone")]
    answer, *_ = await bus.request(SubscribeRequest(class_key=SITES, interval=2, lifetime=100))
    assert isinstance(answer.content, SubscribeResponse)
    subscriber.granted = answer.content
    await until(lambda: not bus.failures)
    again = await subscriber.after()
    assert [(len(objects([part])), part.sequence) for part in again] == [(100, 1), (100, 2), (50, 3)]
    assert await subscriber.after() == []


async def test_nothing_is_published_while_disconnected(
    quiet_agent: Agent, subscriber: Subscriber, bus: FakeBus
) -> None:
    shelf = Shelf(number=1)
    quiet_agent.add(shelf)
    await subscriber.subscribe()
    bus.disconnect()
    shelf.in_.inc()
    assert await subscriber.after() == []
    bus.reconnect()
    (message,) = await subscriber.after()
    assert message.sequence == 2


async def test_a_bug_does_not_end_it(
    quiet_agent: Agent, subscriber: Subscriber, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shelf = Shelf(number=1)
    quiet_agent.add(shelf)
    await subscriber.subscribe()
    shelf.in_.inc()
    with monkeypatch.context() as broken:
        broken.setattr(ObjectWriter, "part", lambda *_: 1 // 0)
        assert await subscriber.after() == []
    assert "publishing to a subscription failed" in caplog.text
    assert len(await subscriber.after()) == 1
