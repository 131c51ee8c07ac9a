"""Links that send: what was sent gets its outcome before they end; what is in doubt is reported."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import attrs
import pytest
from broker.federation.federated import IN, OUT, FederatedBroker, receive, send
from broker.federation.slow_store import SlowStore
from support.frame_cutter import Cut, FrameCutter, Performative
from support.waiting import until

from qmf.broker.federation import incoming, peer_links, sending_links
from qmf.broker.federation.link_status import PeerLinkState
from qmf.broker.federation.peer_links import BrokerLink
from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.nodes.observer import BrokerObserver, BrokerObservers
from qmf.broker.operations.principal import BROKER

pytestmark = pytest.mark.slow


class Doubts(BrokerObserver):
    """What was reported of messages in doubt: name, number and reason."""

    def __init__(self, broker: FederatedBroker) -> None:
        self.found: list[tuple[str, int, str]] = []
        broker.registry.observer = BrokerObservers(broker.registry.observer, self)

    def on_messages_in_doubt(self, route: str, peer: str, count: int, reason: str) -> None:
        """See `BrokerObserver`."""
        assert peer
        self.found.append((route, count, reason))


def declare(broker: FederatedBroker, name: str, **arguments: object) -> None:
    wanted = {"durable": True, **arguments}
    broker.operations.create(BROKER, name, read_node_declaration(("queue",), wanted, limits=broker.registry.limits))


@attrs.frozen
class Brokers:
    """Two brokers with stores; the first one has the other one, by a proxy, as its domain ``peer``."""

    here: FederatedBroker
    there: FederatedBroker
    proxy: FrameCutter
    stack: AsyncExitStack

    async def up(self) -> BrokerLink:
        """The link, as soon as it is up."""
        return await self.here.state(PeerLinkState.OPERATIONAL)

    async def down(self) -> BrokerLink:
        """The link, as soon as it is not."""
        return await self.here.state(PeerLinkState.WAITING)

    def lose_acceptance(self) -> None:
        """The connection is cut before the acceptance of the next message arrives, and cannot be made again."""
        self.proxy.cut_at(Cut(Performative.DISPOSITION, to_broker=False, passed=False, refuse=True))

    def delete(self) -> None:
        """Delete the link."""
        self.here.operations.forwarding.delete(BROKER, OUT.value, "link")


@asynccontextmanager
async def brokers(folder: Path, **of_target: object) -> AsyncIterator[Brokers]:
    """Two brokers, each with a queue "p"; that of the other one may have arguments."""
    async with AsyncExitStack() as stack:
        there = await stack.enter_async_context(FederatedBroker(port=0, data_dir=folder / "there"))
        here = await stack.enter_async_context(FederatedBroker(port=0, data_dir=folder / "here"))
        proxy = stack.enter_context(FrameCutter(there.url))
        declare(here, "p")
        declare(there, "p", **of_target)
        here.domain(proxy.url, durable=True)
        yield Brokers(here, there, proxy, stack)


async def test_a_link_that_is_deleted_while_it_is_down_puts_back_what_is_in_doubt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with brokers(tmp_path) as made:
        doubts = Doubts(made.here)
        made.here.link(OUT, "p", "p", durable=True)
        link = await made.up()
        made.lose_acceptance()
        await send(made.here, "p", "one", durable=True)
        await made.down()
        with caplog.at_level(logging.WARNING, "qmf.broker.federation"):
            made.delete()
            await link.close()
        assert doubts.found == [("link", 1, "the link was deleted; they are in queue 'p' again")]
        assert " has them: 1; the link was deleted; they are in queue 'p' again" in caplog.text
        assert link.count_in_doubt == 1
        (entry,) = made.here.queue("p").contents.waiting()
        assert entry.message.delivery_count == 1  # receivers see that it may have been delivered


async def test_a_link_that_is_deleted_waits_for_the_outcomes_of_what_it_has_sent(tmp_path: Path) -> None:
    async with brokers(tmp_path) as made:
        doubts = Doubts(made.here)
        made.here.link(OUT, "p", "p", durable=True)
        link = await made.up()
        slow = SlowStore(made.there)
        first = made.here.queue("p")
        await send(made.here, "p", "one", durable=True)
        await until(lambda: slow.waiting, "it is being stored")
        made.delete()
        await send(made.here, "p", "two", durable=True)
        slow.let_go()
        await link.close()
        assert (made.there.depth("p"), first.contents.depth.count, doubts.found) == (1, 1, [])


async def test_a_link_that_is_deleted_does_not_wait_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sending_links, "CLOSE_TIMEOUT", 0.05)
    monkeypatch.setattr(peer_links, "CLOSE_TIMEOUT", 0.05)
    async with brokers(tmp_path) as made:
        doubts = Doubts(made.here)
        made.here.link(OUT, "p", "p", durable=True)
        link = await made.up()
        slow = SlowStore(made.there)
        await send(made.here, "p", "one", durable=True)
        await until(lambda: slow.waiting, "it is being stored")
        made.delete()
        await until(lambda: doubts.found, "it is not waited for any more")
        assert [count for _, count, _ in doubts.found] == [1]
        slow.let_go()
        await link.close()


async def test_what_a_link_has_at_an_exchange_is_deleted_with_it_and_not_in_doubt(tmp_path: Path) -> None:
    async with brokers(tmp_path) as made:
        doubts = Doubts(made.here)
        made.here.link(OUT, "amq.fanout", "p", durable=True)
        link = await made.up()
        made.lose_acceptance()
        await send(made.here, "amq.fanout", "one", durable=True)
        await made.down()
        made.delete()
        assert made.here.registry.queue("link.link") is None
        await link.close()
        assert not doubts.found


async def test_a_link_that_fails_puts_back_what_is_in_doubt(tmp_path: Path) -> None:
    async with brokers(tmp_path) as made:
        doubts = Doubts(made.here)
        made.here.link(OUT, "p", "p", durable=True)
        link = await made.up()
        made.lose_acceptance()
        await send(made.here, "p", "one", durable=True)
        await made.down()
        link.fail("for a test")
        assert doubts.found == [("link", 1, "the link has failed: for a test; they are in queue 'p' again")]


async def test_another_broker_that_takes_over_gets_what_is_in_doubt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with brokers(tmp_path) as made:
        doubts = Doubts(made.here)
        third = await made.stack.enter_async_context(FederatedBroker(port=0, queues=["p"], name="third"))
        made.here.link(OUT, "p", "p", durable=True)
        link = await made.up()
        made.lose_acceptance()
        await send(made.here, "p", "one", durable=True)
        await made.down()
        made.proxy.redirect(third.url)
        made.proxy.refuse(False)
        await until(lambda: not made.here.depth("p"), "it is there")
        assert (made.there.depth("p"), third.depth("p")) == (1, 1)
        reason = "another broker answers, third; they are sent again, and may arrive twice"
        assert (doubts.found, link.count_in_doubt) == ([("link", 1, reason)], 1)
        assert caplog.text.count(reason) == 1


async def test_the_same_broker_that_comes_back_is_not_another_one(tmp_path: Path) -> None:
    async with brokers(tmp_path) as made:
        doubts = Doubts(made.here)
        made.here.link(OUT, "p", "p", durable=True)
        await made.up()
        made.lose_acceptance()
        await send(made.here, "p", "one", durable=True)
        await made.down()
        made.proxy.refuse(False)
        await until(lambda: not made.here.depth("p"), "it is known to be there")
        assert (made.there.depth("p"), doubts.found) == (1, [])


async def test_a_broker_that_has_forgotten_the_link_gets_what_is_in_doubt(tmp_path: Path) -> None:
    async with brokers(tmp_path) as made:
        doubts = Doubts(made.here)
        made.here.link(OUT, "p", "p", reliability="exactly-once")
        await made.up()
        made.lose_acceptance()
        await send(made.here, "p", "one", durable=True)
        await made.down()
        await until(lambda: made.there.resumable.suspended == 1, "it is kept")
        made.there.resumable.close()
        made.proxy.refuse(False)
        await until(lambda: not made.here.depth("p"), "it is there")
        reason = "the other broker has forgotten the link; they are sent again, and may arrive twice"
        assert (made.there.depth("p"), doubts.found) == (2, [("link", 1, reason)])


@pytest.mark.parametrize("reliability", ["at-least-once", "exactly-once"])
async def test_a_full_queue_while_the_message_before_is_being_stored(reliability: str, tmp_path: Path) -> None:
    async with brokers(tmp_path, **{"qpid.max_count": 1, "qpid.policy_type": "reject"}) as made:
        made.here.link(OUT, "p", "p", reliability=reliability)
        link = await made.up()
        slow = SlowStore(made.there)
        await send(made.here, "p", "one", durable=True)
        await until(lambda: slow.waiting, "it is being stored")
        await send(made.here, "p", "two", durable=True)
        await until(lambda: not made.here.queue("p").delivery.consumers.all, "it is refused")
        assert link.status.state is PeerLinkState.OPERATIONAL
        slow.let_go()
        assert (await made.down()).reason.startswith("no room in 'p' of the other broker")
        assert made.here.depth("p") == 1  # the first one is accepted
        assert await receive(made.there, "p", 2) == ["one", "two"]
        await until(lambda: not made.here.depth("p"), "nothing comes again")
        assert not made.there.depth("p")


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "transient"])
async def test_a_message_that_is_being_stored_is_known_when_it_comes_again_from_a_broker_without_resumption(
    durable: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (incoming, peer_links):
        monkeypatch.setattr(module, "LINK_RESUMPTION", "of nobody")
    async with brokers(tmp_path) as made:
        made.here.link(IN, "p", "p", durable=durable)
        link = await made.up()
        slow = SlowStore(made.here)
        await send(made.there, "p", "one", durable=True, id="1")
        await until(lambda: slow.waiting, "it is being stored")
        made.proxy.cut()
        await made.down()
        await until(lambda: made.proxy.served == 2, "it is connected again")
        await send(made.there, "p", "two", durable=True, id="2")
        assert link.status.state is PeerLinkState.WAITING
        slow.let_go()
        await made.up()
        await until(lambda: not made.there.depth("p"), "both are accepted")
        assert await receive(made.here, "p", 2) == ["one", "two"]
        assert not made.here.depth("p")


async def test_a_full_queue_here_while_the_message_before_is_being_stored(tmp_path: Path) -> None:
    async with brokers(tmp_path) as made:
        declare(made.here, "full", **{"qpid.max_count": 1, "qpid.policy_type": "reject"})
        made.here.link(IN, "p", "full")
        link = await made.up()
        slow = SlowStore(made.here)
        await send(made.there, "p", "one", durable=True)
        await until(lambda: slow.waiting, "it is being stored")
        await send(made.there, "p", "two", durable=True)
        await until(lambda: link.transfers == 1, "it is refused")
        assert link.status.state is PeerLinkState.OPERATIONAL
        slow.let_go()
        assert (await made.down()).reason.startswith("no room in 'full'")
        await until(lambda: made.there.depth("p") == 1, "the first one is accepted")
        assert await receive(made.here, "full", 2) == ["one", "two"]
        await until(lambda: not made.there.depth("p"), "nothing comes again")
        assert not made.here.depth("full")


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "transient"])
async def test_a_connection_that_is_lost_while_a_message_is_being_stored(durable: bool, tmp_path: Path) -> None:
    async with brokers(tmp_path) as made:
        made.here.link(OUT, "p", "p", durable=durable, reliability="exactly-once")
        await made.up()
        slow = SlowStore(made.there)
        await send(made.here, "p", "one", durable=True)
        await until(lambda: slow.waiting, "it is being stored")
        made.proxy.cut()
        await made.down()
        await made.up()
        await send(made.here, "p", "two", durable=True)
        await until(lambda: made.there.depth("p") == 2, "the next one is there")
        assert not list(made.here.queue("p").contents.waiting())  # nobody else gets the first one meanwhile
        slow.let_go()
        await until(lambda: not made.here.depth("p"), "both are accepted")
        assert await receive(made.there, "p", 2) == ["one", "two"]
        assert not made.there.depth("p")
