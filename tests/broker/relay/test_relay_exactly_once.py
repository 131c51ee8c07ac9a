"""Relays whose connection is lost at a chosen frame, also with the end of a broker: every message comes once."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from broker.federation.federated import receive, send
from broker.federation.slow_store import SlowStore
from broker.relay.relaying import DOMAIN, LETTERS, ORDERS, RelayingBroker, reason_in
from support.frame_cutter import Cut, FrameCutter, Performative
from support.waiting import until

from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.operations.principal import BROKER
from qmf.broker.relay import transfer_link
from qmf.broker.relay.options import RelayOptions

pytestmark = pytest.mark.slow

#: How often a connection is cut in `make soak`.
CUTS = int(os.environ.get("QMF_SOAK_CUTS", "100"))
#: Messages between two cuts.
BATCH = 10
#: The frames of a transfer and of what follows, and whether they go to the other broker.
FRAMES = {
    "the message": (Performative.TRANSFER, True),
    "its acceptance": (Performative.DISPOSITION, False),
    "its settlement": (Performative.DISPOSITION, True),
}
WAITING = f"relay.{DOMAIN}"


class Ends:
    """A broker with a relay to another one, of which either may end as if it was killed."""

    here: RelayingBroker
    there: RelayingBroker

    def __init__(self, folder: Path, stack: AsyncExitStack, *, durable: bool, timeout: float) -> None:
        self._folder = folder
        self._stack = stack
        self._durable = durable
        self._timeout = timeout

    async def start(self) -> None:
        """Begin, with a relay."""
        self.there = await self._begin("there", self._folder / "there")
        declaration = read_node_declaration(("queue",), {"durable": True}, limits=self.there.registry.limits)
        self.there.operations.create(BROKER, "orders", declaration)
        self.here = await self._begin("here", self._folder / "here")
        self.proxy = self._stack.enter_context(FrameCutter(self.there.url))
        self.here.domain(self.proxy.url, durable=True)
        self.here.relay(domain="peer", durable=self._durable)
        await self.state("Operational")

    async def state(self, wanted: str) -> None:
        """Wait until the relay is in a state."""
        relay = self.here.found_relay()
        await until(lambda: relay.state_name == wanted, lambda: f"{relay.state_name}: {relay.reason}")

    async def kill(self, name: str) -> None:
        """One ends with what it has on the disk now, and begins again."""
        copy = self._folder / f"{name} again"
        shutil.copytree(self._folder / name, copy)
        await (self.here if name == "here" else self.there).close()
        broker = await self._begin(name, copy)
        if name == "there":
            self.there = broker
            self.proxy.redirect(broker.url)
        else:
            self.here = broker

    async def came(self, *wanted: str) -> None:
        """Wait until nothing waits any more; what has come is as wanted, in this order."""
        await self.here.has(WAITING, 0)
        assert await receive(self.there, "orders", len(wanted)) == list(wanted)
        assert not self.there.depth("orders")

    async def _begin(self, name: str, folder: Path) -> RelayingBroker:
        relay = RelayOptions(enabled=name == "here", timeout=self._timeout)
        return await self._stack.enter_async_context(RelayingBroker(port=0, data_dir=folder, relay=relay))


@asynccontextmanager
async def ends(folder: Path, *, durable: bool = True, timeout: float = 3600.0) -> AsyncIterator[Ends]:
    """Two brokers with a relay."""
    async with AsyncExitStack() as stack:
        made = Ends(folder, stack, durable=durable, timeout=timeout)
        await made.start()
        yield made


@pytest.mark.parametrize("killed", ["nobody", "here", "there"])
@pytest.mark.parametrize("frame", FRAMES)
async def test_a_connection_is_lost_at_a_frame(frame: str, killed: str, tmp_path: Path) -> None:
    async with ends(tmp_path) as made:
        performative, to_broker = FRAMES[frame]
        made.proxy.cut_at(Cut(performative, to_broker, passed=False, refuse=True))
        await send(made.here, ORDERS, "one", durable=True)
        await made.state("Waiting")
        if killed != "nobody":
            await made.kill(killed)
        made.proxy.refuse(False)
        await made.state("Operational")
        await send(made.here, ORDERS, "two", durable=True)
        await made.came("one", "two")


@pytest.mark.parametrize("durable", [True, False], ids=["durable", "transient"])
@pytest.mark.parametrize("frame", FRAMES)
async def test_a_relay_is_paused_while_a_message_is_under_way(frame: str, durable: bool, tmp_path: Path) -> None:
    async with ends(tmp_path, durable=durable) as made:
        performative, to_broker = FRAMES[frame]
        made.proxy.cut_at(Cut(performative, to_broker, passed=False, refuse=True))
        await send(made.here, ORDERS, "one", durable=True)
        await made.state("Waiting")
        made.here.operations.forwarding.pause(BROKER, "relay", DOMAIN)
        await made.state("Paused")
        made.proxy.refuse(False)
        await send(made.here, ORDERS, "two", durable=True)
        made.here.operations.forwarding.resume(BROKER, "relay", DOMAIN)
        await made.came("one", "two")


async def test_a_message_that_the_other_broker_may_have_is_given_up_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with ends(tmp_path, timeout=1.0) as made:
        made.proxy.cut_at(Cut(*FRAMES["its acceptance"], passed=False, refuse=True))
        await send(made.here, ORDERS, "one", durable=True)
        await made.state("Waiting")
        await send(made.here, ORDERS, "two", durable=True)
        assert made.here.depth(WAITING) == 2
        await made.here.has(WAITING, 1)
        monkeypatch.setattr(transfer_link, "KEPT_FOR", 0)
        await made.here.has(WAITING, 0)
        letters = made.here.queue(LETTERS).contents.waiting()
        assert "its time was over before it could be forwarded" in reason_in(made.here)
        assert b"the other broker may have it, which did not answer" in letters[1].message.data
        made.proxy.refuse(False)
        await made.state("Operational")
        await made.came("one")


async def test_a_deleted_relay_is_not_remembered_by_the_other_broker(tmp_path: Path) -> None:
    async with ends(tmp_path) as made:
        await send(made.here, ORDERS, "one", durable=True)
        await made.here.has(WAITING, 0)
        assert len(made.there.registry.memories) == 1
        made.here.operations.forwarding.delete(BROKER, "relay", DOMAIN)
        await until(lambda: not len(made.there.registry.memories), "it is forgotten")


@pytest.mark.parametrize("paused", [False, True], ids=["lost", "paused"])
async def test_a_message_that_the_other_broker_may_have_is_a_dead_letter_of_a_deleted_relay(
    paused: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with ends(tmp_path) as made:
        made.proxy.cut_at(Cut(*FRAMES["its acceptance"], passed=False, refuse=True))
        await send(made.here, ORDERS, "one", durable=True)
        await made.state("Waiting")
        await send(made.here, ORDERS, "two", durable=True)
        if paused:
            made.here.operations.forwarding.pause(BROKER, "relay", DOMAIN)
            await made.state("Paused")
        made.here.operations.forwarding.delete(BROKER, "relay", DOMAIN)
        await until(lambda: list(made.here.queue(LETTERS).contents.waiting()), "it is a dead letter")
        assert reason_in(made.here) == "it is not known whether the other broker has it: the relay was deleted"
        assert caplog.text.count(" has them: 1; the relay was deleted; they are dead letters") == 1
        made.proxy.refuse(False)
        made.here.relay(domain="peer", durable=True)
        await made.came("one", "two")  # the one that was accepted, and the one that was never sent
        assert made.here.depth(LETTERS) == 1


async def test_a_relay_that_is_deleted_waits_for_the_outcomes_of_what_it_has_sent(tmp_path: Path) -> None:
    async with ends(tmp_path) as made:
        slow = SlowStore(made.there)
        await send(made.here, ORDERS, "one", durable=True)
        await until(lambda: slow.waiting, "it is being stored")
        made.here.operations.forwarding.delete(BROKER, "relay", DOMAIN)
        slow.let_go()
        await made.came("one")
        assert not made.here.depth(LETTERS)


async def cut_again_and_again(folder: Path, cuts: int, seed: int) -> int:
    """How many messages came twice."""
    chance = random.Random(seed)
    async with ends(folder) as made:
        for number in range(cuts):
            contents = [f"{number * BATCH + item}" for item in range(BATCH)]
            sending = asyncio.create_task(send(made.here, ORDERS, *contents, durable=True))
            for _ in range(chance.randrange(1, 60)):
                await asyncio.sleep(0)
            made.proxy.cut()
            await sending
        await made.here.has(WAITING, 0)
        found = await receive(made.there, "orders", made.there.depth("orders"))
    assert set(found) == {f"{number}" for number in range(cuts * BATCH)}
    return len(found) - cuts * BATCH


async def test_a_few_cuts(tmp_path: Path) -> None:
    assert await cut_again_and_again(tmp_path, 5, 1) == 0


@pytest.mark.soak
async def test_many_cuts(tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    doubled = await cut_again_and_again(tmp_path, CUTS, seed)
    print(f"{CUTS} cuts of a relay (seed {seed}): {CUTS * BATCH:,} messages, {doubled:,} of them twice")
    assert doubled == 0
