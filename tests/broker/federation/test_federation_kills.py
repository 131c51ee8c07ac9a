"""Brokers as processes, with durable links between them, are killed again and again: every message comes once."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import TypeAlias
from urllib.parse import urlsplit

import pytest
from broker.federation.lives import Life, administrated, send_all, take_all
from broker.management.managed import knows_agent

from qmf.console.aio import Client
from qmf.models.broker import console as remote

pytestmark = pytest.mark.slow

#: How often a broker is killed in `make soak`.
KILLS = int(os.environ.get("QMF_SOAK_KILLS", "50"))
#: Messages between two kills.
BATCH = 300


async def make_links(lives: Sequence[Life]) -> str:
    """Links from the first broker to the second one, and on to the queue ``end`` of the third; where to send to."""
    first, second, third = lives
    durable = {"durable": True}
    async with administrated(second) as it:
        await it.create("queue", "turn", durable, True)
    async with administrated(first) as it:
        await it.create("queue", "start", durable, True)
        await it.create("domain", "peer", {"url": second.url, **durable}, True)
        await it.create("outgoing", "out", {"domain": "peer", "source": "start", "target": "turn", **durable}, True)
    async with administrated(third) as it:
        await it.create("queue", "end", durable, True)
        await it.create("domain", "peer", {"url": second.url, **durable}, True)
        await it.create("incoming", "in", {"domain": "peer", "source": "turn", "target": "end", **durable}, True)
    return "start"


async def make_routes(lives: Sequence[Life]) -> str:
    """The same by dynamic routes of an exchange, which follow the only binding, that of ``end``."""
    durable = {"durable": True}
    async with administrated(lives[-1]) as it:
        await it.create("queue", "end", durable, True)
        await it.create("binding", "amq.topic/end/k", {}, True)
    for source, destination in pairwise(lives):
        place = urlsplit(source.url)
        async with administrated(destination) as it:
            await it.create("link", "link", {"host": place.hostname, "port": place.port, **durable}, True)
            route = {"link": "link", "src": "amq.topic", "dest": "amq.topic", "dynamic": True, **durable}
            await it.create("bridge", "route", route, True)
    async with Client(lives[0].url, settle=0.0) as client:
        await knows_agent(client)
        while "k" not in [item.bindingKey for item in await client.objects(remote.Binding)]:
            await asyncio.sleep(0.01)
    return "amq.topic/k"


#: Makes the links of brokers.
Make: TypeAlias = Callable[[Sequence[Life]], Awaitable[str]]


async def run(lives: Sequence[Life], make: Make, kills: int, seed: int) -> tuple[set[str], int]:
    """Messages go from the first broker to the third one; what came, and how many of it twice."""
    first, third = lives[0], lives[-1]
    chance = random.Random(seed)
    address = await make(lives)
    for kill in range(kills):
        sending = asyncio.create_task(send_all(first, address, range(kill * BATCH, (kill + 1) * BATCH)))
        victim = chance.choice(lives)
        if victim is first:
            await sending
        for _ in range(chance.randrange(1, 200)):  # a random time on
            await asyncio.sleep(0.001)
        await asyncio.to_thread(victim.kill)
        await asyncio.to_thread(victim.start)
        await sending
    wanted = {str(number) for number in range(kills * BATCH)}
    found = await take_all(third, "end", wanted)
    return set(found), len(found) - len(set(found))


def kill_again_and_again(folder: Path, make: Make, kills: int, seed: int) -> None:
    lives = [Life(folder / name) for name in ("first", "second", "third")]
    try:
        for life in lives:
            life.start()
        found, doubled = asyncio.run(run(lives, make, kills, seed))
    finally:
        for life in lives:
            life.kill()
    print(f"{kills} kills (seed {seed}): {kills * BATCH:,} messages, {doubled:,} of them twice")
    assert found == {str(number) for number in range(kills * BATCH)}
    assert doubled == 0


@pytest.mark.parametrize("make", [make_links, make_routes], ids=["links", "routes"])
def test_a_few_kills(make: Make, tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, make, 3, 1)


@pytest.mark.soak
@pytest.mark.parametrize("make", [make_links, make_routes], ids=["links", "routes"])
def test_many_kills(make: Make, tmp_path: Path) -> None:
    kill_again_and_again(tmp_path, make, KILLS, random.randrange(2**32))
