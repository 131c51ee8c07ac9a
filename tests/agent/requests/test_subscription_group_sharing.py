"""Subscriptions of a group share a key: what is sent for a change does not grow with them, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from agent.asking import names, objects
from agent.subscribing import REPLY_TO, Subscriber, settled, shelf_id
from agent.warehouse import Shelf
from support.fake_bus import FakeBus
from support.growth import instructions_of

from qmf.agent import Agent
from qmf.agent.requests.subscription_group import SHARED_FROM
from qmf.errors import DisconnectedError, LinkError
from qmf.protocol import ROW_FORM, Envelope, SubscribeCancel, SubscribeRefresh, SubscribeShare, parse_reply_to
from qmf.testing import ManualClock


@pytest.fixture
def shelf(quiet_agent: Agent) -> Shelf:
    made = Shelf(number=1)
    quiet_agent.add(made)
    return made


class Consoles:
    """Consoles with equal subscriptions, and what is sent to them."""

    def __init__(self, bus: FakeBus, clock: ManualClock) -> None:
        self.bus = bus
        self.clock = clock
        self.all: list[Subscriber] = []

    async def add(self, count: int, *, can_share: bool = True) -> list[Subscriber]:
        """So many more, which have their first publication."""
        made = [Subscriber(self.bus, self.clock) for _ in range(count)]
        for subscriber in made:
            assert len(await subscriber.subscribe(can_share=can_share)) == 1
            await settled()
        self.all += made
        return made

    async def interval(self) -> list[Envelope]:
        """What is sent in one interval."""
        self.bus.take()
        await self.clock.advance(2)
        await settled()
        return self.bus.take()

    async def bind(self, invitations: Iterable[Envelope]) -> None:
        """Have those that are asked to answer that they have bound the key."""
        by_id = {item.granted.subscription_id: item for item in self.all}
        for message in invitations:
            if isinstance(message.content, SubscribeShare):
                assert (message.to, message.subject) == parse_reply_to(REPLY_TO)
                assert message.content.first_sequence == 0
                subscriber = by_id[message.content.subscription_id]
                await subscriber.send(SubscribeRefresh(subscription_id=message.content.subscription_id, bound=True))

    async def share(self) -> str:
        """Have all of them share the key, which is the result."""
        await self.bind(await self.interval())
        keys = {item.shared_key for item in shares(await self.interval())}
        (key,) = keys
        return key


@pytest.fixture
def consoles(bus: FakeBus, clock: ManualClock) -> Consoles:
    return Consoles(bus, clock)


def shares(messages: Iterable[Envelope]) -> list[SubscribeShare]:
    return [message.content for message in messages if isinstance(message.content, SubscribeShare)]


async def test_a_few_share_nothing(consoles: Consoles, shelf: Shelf) -> None:
    await consoles.add(SHARED_FROM - 1)
    assert await consoles.interval() == []
    shelf.in_.inc()
    assert len(await consoles.interval()) == SHARED_FROM - 1


async def test_many_are_sent_each_change_once(consoles: Consoles, shelf: Shelf) -> None:
    members = await consoles.add(SHARED_FROM)
    shelf.in_.inc()
    sent = await consoles.interval()
    assert len(shares(sent)) == SHARED_FROM
    assert len(sent) == 2 * SHARED_FROM  # the change goes to each, as none has bound the key
    await consoles.bind(sent)
    shelf.in_.inc()
    *told, change = await consoles.interval()
    assert {(item.subscription_id, item.last_sequence, item.first_sequence) for item in shares(told)} == {
        (item.granted.subscription_id, 2, 1) for item in members
    }
    (key,) = {item.shared_key for item in shares(told)}
    assert (change.to, change.subject, change.subscription, change.sequence) == ("qmf.default.topic", key, key, 1)
    assert names([change]) == [",1"]
    shelf.in_.inc()
    (change,) = await consoles.interval()
    assert (change.subject, change.sequence, len(objects([change]))) == (key, 2, 1)
    assert await consoles.interval() == []


async def test_one_that_cannot_goes_on_alone(consoles: Consoles, shelf: Shelf) -> None:
    (alone,) = await consoles.add(1, can_share=False)
    await consoles.add(SHARED_FROM)
    key = await consoles.share()
    shelf.in_.inc()
    first, second = await consoles.interval()
    assert (first.subscription, first.sequence) == (alone.granted.subscription_id, 2)
    assert (second.subscription, second.sequence) == (key, 1)
    assert names([first]) == names([second])


async def test_one_that_comes_later_receives_all_objects_and_then_shares(consoles: Consoles, shelf: Shelf) -> None:
    await consoles.add(SHARED_FROM)
    key = await consoles.share()
    shelf.in_.inc()
    await consoles.interval()
    (late,) = await consoles.add(1)
    shelf.in_.inc()
    sent = await consoles.interval()
    assert [item.subscription for item in sent if not isinstance(item.content, SubscribeShare)] == [
        late.granted.subscription_id,
        key,
    ]
    await consoles.bind(sent)
    shelf.in_.inc()
    told, change = await consoles.interval()
    assert [(item.last_sequence, item.first_sequence) for item in shares([told])] == [(2, 3)]
    assert (change.subscription, change.sequence) == (key, 3)


async def test_numbers_that_were_lost_are_sent_again(consoles: Consoles, shelf: Shelf) -> None:
    members = await consoles.add(SHARED_FROM)
    await consoles.share()
    for _ in range(3):
        shelf.in_.inc()
        await consoles.interval()
    await members[1].send(SubscribeRefresh(subscription_id=members[1].granted.subscription_id, bound=True))
    (again,) = shares(await consoles.interval())
    assert (again.subscription_id, again.last_sequence, again.first_sequence) == (
        members[1].granted.subscription_id,
        1,
        1,
    )


async def test_what_failed_has_the_same_number_again(consoles: Consoles, bus: FakeBus, shelf: Shelf) -> None:
    await consoles.add(SHARED_FROM)
    key = await consoles.share()
    shelf.in_.inc()
    bus.failures = [DisconnectedError("fake://", "gone")]
    assert await consoles.interval() == []
    (change,) = await consoles.interval()
    assert (change.subscription, change.sequence, names([change])) == (key, 1, [",1"])


async def test_a_broker_that_takes_nothing_under_the_key(consoles: Consoles, bus: FakeBus, shelf: Shelf) -> None:
    members = await consoles.add(SHARED_FROM)
    await consoles.share()
    shelf.in_.inc()
    bus.failures = [LinkError("qmf.default.topic", "amqp:unauthorized-access", "no")]
    assert await consoles.interval() == []
    sent = await consoles.interval()
    assert {item.subscription for item in sent} == {item.granted.subscription_id for item in members}
    await consoles.add(1)
    assert shares(await consoles.interval()) == []


@pytest.mark.slow
async def test_a_hundred_take_less_than_twice_the_work_of_one(
    consoles: Consoles, quiet_agent: Agent, shelf: Shelf
) -> None:
    async def change() -> None:
        shelf.in_.inc()
        assert len(await consoles.interval()) == 1

    await consoles.add(1)
    await change()
    alone = await instructions_of(change())
    await consoles.add(99)
    await consoles.share()
    await change()
    assert await instructions_of(change()) < 2 * alone


async def test_nothing_is_sent_under_the_key_when_all_have_ended(consoles: Consoles, shelf: Shelf) -> None:
    (alone,) = await consoles.add(1, can_share=False)
    sharing = await consoles.add(SHARED_FROM)
    await consoles.share()
    for subscriber in sharing:
        await subscriber.send(SubscribeCancel(subscription_id=subscriber.granted.subscription_id), reply_to=None)
    shelf.in_.inc()
    (change,) = await consoles.interval()
    assert change.subscription == alone.granted.subscription_id


async def test_those_that_read_rows_receive_rows(quiet_agent: Agent, bus: FakeBus, clock: ManualClock) -> None:
    shelves = [Shelf(number=number) for number in range(150)]
    for shelf in shelves:
        quiet_agent.add(shelf)
    subscriber = Subscriber(bus, clock)
    first = await subscriber.subscribe(row_form=ROW_FORM)
    assert [dict(item.values) for item in first] == [shelf._qmf_values() for shelf in shelves]
    for shelf in shelves:
        shelf.in_.inc()
    shelves[7].limit = 9
    quiet_agent.remove(shelves[8])
    found = await subscriber.after()
    assert len(found) == 1
    by_name = {item.object_id: item for item in objects(found)}
    assert len(by_name) == 150
    changed, whole, gone = (by_name[shelf_id(quiet_agent, number)] for number in (6, 7, 8))
    assert dict(changed.values) == shelves[6]._qmf_values(properties=False)
    assert dict(whole.values) == shelves[7]._qmf_values()
    assert gone.delete_ts


async def test_selected_values_of_matching_objects_as_rows(
    quiet_agent: Agent, bus: FakeBus, clock: ManualClock
) -> None:
    shelves = [Shelf(number=number) for number in range(3)]
    for shelf in shelves:
        quiet_agent.add(shelf)
    subscriber = Subscriber(bus, clock)
    where = ["ge", "number", ["quote", 1]]
    first = await subscriber.subscribe(row_form=ROW_FORM, select=["number", "in"], where=where)
    assert [dict(item.values) for item in first] == [{"number": number, "in": 0} for number in (1, 2)]
    shelves[2].in_.inc()
    (item,) = objects(await subscriber.after())
    assert dict(item.values) == {"in": 1}
