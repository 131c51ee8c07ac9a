"""A console with a subscription, for tests."""

from __future__ import annotations

import asyncio
from typing import Any

from agent.asking import objects
from agent.warehouse import PACKAGE
from support.fake_bus import FakeBus
from support.waiting import until

from qmf.agent import Agent, ObjectId
from qmf.protocol import Content, Envelope, ObjectData, SubscribeRequest, SubscribeResponse
from qmf.schema import ClassKey
from qmf.testing import ManualClock

SHELVES = ClassKey(PACKAGE, "shelf")
SITES = ClassKey(PACKAGE, "site")
REPLY_TO = "qmf.default.topic/direct-console.9"


class Subscriber:
    """A console with one subscription."""

    def __init__(self, bus: FakeBus, clock: ManualClock) -> None:
        self.bus = bus
        self.clock = clock
        self.granted = SubscribeResponse(subscription_id="", interval=0, lifetime=0)

    async def subscribe(self, **wanted: Any) -> list[ObjectData]:
        """Subscribe; the first publication."""
        request = SubscribeRequest(**{"class_key": SHELVES, "interval": 2, "lifetime": 100, **wanted})
        answer, *_ = await self.bus.request(request, reply_to=REPLY_TO)
        assert isinstance(answer.content, SubscribeResponse), answer
        self.granted = answer.content
        await self._published()
        return objects(self.news())

    async def _published(self) -> None:
        """Until the last part is there: it is the one that is confirmed."""
        await until(lambda: bool(self.bus.confirmed) and self.bus.confirmed[-1])

    def news(self) -> list[Envelope]:
        """The publications to this subscriber that came since the last call."""
        return [message for message in self.bus.take() if message.subscription == self.granted.subscription_id]

    async def after(self, seconds: float = 2) -> list[Envelope]:
        """The publication after some time, or nothing."""
        self.bus.take()
        await self.clock.advance(seconds)
        await settled()
        return self.news()

    async def send(self, content: Content, reply_to: str | None = REPLY_TO) -> list[Envelope]:
        return await self.bus.request(content, reply_to=reply_to, correlation_id=None)


async def settled() -> None:
    """Let all tasks run until nothing more comes of it."""
    for _ in range(60):
        await asyncio.sleep(0)


def shelf_id(agent: Agent, number: int) -> ObjectId:
    return ObjectId(f"{PACKAGE}:shelf:,{number}", agent.name, agent.epoch)
