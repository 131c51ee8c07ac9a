"""The end of a transaction and the beginning of the next one, which are asked for together."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from types import SimpleNamespace
from typing import Any

import pytest
from support.engines import Pair

from qmf.bus.engine.events import Delivery, LinkRequested, OutcomeReceived
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Outcome
from qmf.messaging.core.coordinator_link import CoordinatorLink
from qmf.messaging.exceptions import TransactionAborted, TransactionError, TransactionUnknown


class Coordination:
    """A coordinator link, and the server's end of it."""

    def __init__(self) -> None:
        self.pair = Pair()
        driver: Any = SimpleNamespace(
            engine=self.pair.client, transport=SimpleNamespace(flush_soon=lambda: None), set_owner=lambda *_: None
        )
        self.link = CoordinatorLink(driver, self.pair.client.sessions.begin())
        self.pair.pump()
        (request,) = [event for event in self.pair.at_server if isinstance(event, LinkRequested)]
        self.theirs: Link = request.link
        self.pair.server.links.accept(self.theirs, source=self.theirs.source, target=self.theirs.target)
        self.pair.server.links.add_credit(self.theirs, 10)
        self.pump()
        self.link.on_credit()

    def pump(self) -> list[int]:
        """Carry everything to and fro; gives the delivery tags of new requests."""
        self.pair.at_server.clear()
        self.pair.at_client.clear()
        self.pair.pump()
        for event in self.pair.at_client:
            if isinstance(event, OutcomeReceived):
                self.link.on_outcome(event)
        tags = [event.delivery_tag for event in self.pair.at_server if isinstance(event, Delivery)]
        return [tag for tag in tags if tag is not None]

    async def requests(self, work: Awaitable[None]) -> tuple[asyncio.Future[None], list[int]]:
        """Start something; gives it, and the delivery tags of the requests that it has sent."""
        task = asyncio.ensure_future(work)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return task, self.pump()

    async def begin(self) -> None:
        """Begin the first transaction."""
        task, (tag,) = await self.requests(self.link.declare())
        self.pair.server.decisions.declare(self.theirs, tag, b"first")
        self.pump()
        await task


async def test_the_next_transaction_is_asked_for_with_the_end_of_the_one_before() -> None:
    it = Coordination()
    await it.begin()
    it.link.used = True
    task, (discharge, declare) = await it.requests(it.link.end(fail=False))
    it.pair.server.decisions.settle(it.theirs, discharge)
    it.pair.server.decisions.declare(it.theirs, declare, b"second")
    it.pump()
    await task
    assert (it.link.transaction, it.link.used) == (b"second", False)


async def test_a_commit_that_the_broker_refuses_is_an_error_in_the_next_transaction() -> None:
    it = Coordination()
    await it.begin()
    task, (discharge, declare) = await it.requests(it.link.end(fail=False))
    it.pair.server.decisions.settle(it.theirs, discharge, Outcome.REJECTED, "amqp:transaction:rollback", "no room")
    it.pair.server.decisions.declare(it.theirs, declare, b"second")
    it.pump()
    with pytest.raises(TransactionAborted, match="no room"):
        await task
    assert it.link.transaction == b"second"


async def test_a_commit_that_was_confirmed_before_the_connection_was_lost_has_succeeded() -> None:
    it = Coordination()
    await it.begin()
    task, (discharge, _) = await it.requests(it.link.end(fail=False))
    it.pair.server.decisions.settle(it.theirs, discharge)
    it.pump()
    it.link.lose()
    await task
    assert it.link.transaction is None


async def test_a_commit_is_unknown_if_the_connection_is_lost_before_the_answer() -> None:
    it = Coordination()
    await it.begin()
    task, _ = await it.requests(it.link.end(fail=False))
    it.link.lose()
    with pytest.raises(TransactionUnknown):
        await task


async def test_no_further_transaction_is_an_error_of_the_commit() -> None:
    it = Coordination()
    await it.begin()
    task, (discharge, _) = await it.requests(it.link.end(fail=False))
    it.pair.server.decisions.settle(it.theirs, discharge)
    it.pump()
    it.link.on_detached("amqp:resource-limit-exceeded", "enough")
    with pytest.raises(TransactionError, match="enough"):
        await task
