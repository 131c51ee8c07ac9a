"""Tests of the shop as an application's own tests would be: no broker, no network."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from qmf.agent import Agent, current_caller
from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.typed import follow, object_id
from qmf.errors import RemoteError
from qmf.testing import Recorder

from .app import access, furnish
from .models.shop.console import DrawerFull, Receipt, Shop, Till, TillOpened
from .tills import IS_OPEN, NOT_ENOUGH, ShopTill


@pytest.fixture
def exchange() -> MemoryExchange:
    """Connects agent and recorder."""
    return MemoryExchange()


@pytest.fixture
async def recorder(exchange: MemoryExchange) -> AsyncIterator[Recorder]:
    """Records everything that is published."""
    async with Recorder(exchange) as recorder:
        yield recorder


@pytest.fixture
async def agent(exchange: MemoryExchange) -> AsyncIterator[Agent]:
    """The shop's agent. It publishes only on request."""
    async with Agent(MemoryBus(exchange), vendor="v", product="shop", interval=3600, access=access) as agent:
        yield agent


@pytest.fixture
def till(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> ShopTill:
    """The first of two tills."""
    monkeypatch.setattr(ShopTill, "counting", 0)
    return furnish(agent, "corner", 2)[0]


async def test_what_is_paid_is_published(till: ShopTill, agent: Agent, recorder: Recorder) -> None:
    till.open("Ada")
    till.waiting.set(4)
    till.waiting.set(2)
    till.pay(1_250, 30)
    till.pay(750, 10)
    await agent.publish()
    seen = await recorder.there(Till, number=1, takings=2_000)
    assert (seen.cashier, seen.receipts, seen.drawer, seen.balance) == ("Ada", 2, 2_000, 2_000)
    assert (seen.waiting.value, seen.waiting.high) == (2, 4)
    assert (seen.serving.samples, seen.serving.average) == (2, 20)
    shop = await follow(seen, Till.shopRef, Shop)
    assert shop is not None
    assert (shop.name, shop.openTills) == ("corner", 1)


async def test_a_full_drawer_raises_one_event(till: ShopTill, recorder: Recorder) -> None:
    for _ in range(5):
        till.pay(30_000, 1)
    event = await recorder.event(DrawerFull, till=1)
    assert event.drawer == 120_000
    assert len(recorder.events(DrawerFull)) == 1


async def test_opening_and_closing(till: ShopTill, recorder: Recorder) -> None:
    await recorder.call(till, "open", "Ada")
    assert (await recorder.event(TillOpened)).cashier == "Ada"
    with pytest.raises(RemoteError, match="Ada sits at till 1") as caught:
        await recorder.call(till, "open", "Boris")
    assert caught.value.code == IS_OPEN
    till.pay(500, 1)
    assert (await recorder.call(till, "close")).counted == 500
    assert (till.cashier, till.drawer, current_caller()) == (None, 0, None)
    with pytest.raises(RemoteError, match="closed already"):
        await recorder.call(till, "close")


async def test_refunds(till: ShopTill, recorder: Recorder, exchange: MemoryExchange) -> None:
    number = till.pay(500, 1)
    assert (await recorder.call(till, "refund", number, 200)).left == 300
    assert till.balance.value == 300
    with pytest.raises(RemoteError, match="the drawer has 300") as caught:
        await recorder.call(till, "refund", number, 400)
    assert caught.value.code == NOT_ENOUGH
    with pytest.raises(RemoteError, match="no receipt 77"):
        await recorder.call(till, "refund", 77, 1)
    async with Recorder(exchange, user="trainee") as trainee:
        with pytest.raises(RemoteError, match="trainees give no money back"):
            await trainee.call(till, "refund", number, 1)


async def test_properties_that_consoles_set(till: ShopTill, recorder: Recorder) -> None:
    till.pay(40_000, 1)
    await recorder.set(till, drawerLimit=50_000)
    assert till.drawerLimit == 50_000
    with pytest.raises(RemoteError, match="empty it first"):
        await recorder.set(till, drawerLimit=20_000)


async def test_receipts_are_found_among_many(till: ShopTill, agent: Agent, recorder: Recorder) -> None:
    for amount in range(1, 1_301):
        till.pay(amount, 1)
    dear = await recorder.client.objects(Receipt, where=["gt", "amount", ["quote", 1_298]])
    assert [receipt.number for receipt in dear] == [1_299, 1_300]
    (one,) = await recorder.client.objects(object_id=object_id(dear[0]))
    assert one.amount == 1_299
    await agent.publish()
    await recorder.there(Till, receipts=1_300)
    assert recorder.publications(Receipt) == []
