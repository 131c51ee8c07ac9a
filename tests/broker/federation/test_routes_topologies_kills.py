"""The topologies of the manual, by durable dynamic routes between processes that are killed: each broker gets each
message once."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from broker.federation.lives import Life, administrated, send_all, take_all
from broker.federation.test_routes_topologies import CHAIN, MESH, RING, TREE
from broker.management.managed import knows_agent

from qmf.console.aio import Client
from qmf.models.broker import console as remote

pytestmark = [pytest.mark.slow, pytest.mark.soak]

#: How often a broker is killed in each topology.
KILLS = int(os.environ.get("QMF_SOAK_TOPOLOGY_KILLS", "10"))
#: Messages between two kills.
BATCH = 50
KEY = "k"


async def make_routes(lives: Sequence[Life], routes: Sequence[tuple[int, int]], **options: object) -> None:
    """Durable dynamic routes, and a durable subscriber at each broker; as soon as all are bound."""
    durable = {"durable": True}
    for life in lives:
        async with administrated(life) as it:
            await it.create("queue", "end", durable, True)
            await it.create("binding", f"amq.topic/end/{KEY}", {}, True)
    for destination, source in routes:
        place = urlsplit(lives[source].url)
        async with administrated(lives[destination]) as it:
            link = f"to {source}"
            await it.create("link", link, {"host": place.hostname, "port": place.port, **durable}, True)
            route = {"link": link, "src": "amq.topic", "dest": "amq.topic", "dynamic": True, **durable, **options}
            await it.create("bridge", f"from {source}", route, True)
    for number, life in enumerate(lives):
        wanted = 1 + sum(source == number for _, source in routes)
        async with Client(life.url, settle=0.0) as client:
            await knows_agent(client)
            while True:
                bindings = [item for item in await client.objects(remote.Binding) if item.bindingKey == KEY]
                if len(bindings) == wanted:
                    break
                await asyncio.sleep(0.05)


async def run(lives: Sequence[Life], routes: Sequence[tuple[int, int]], seed: int, **options: object) -> None:
    """Messages are published anywhere while brokers are killed; all come to all, once."""
    chance = random.Random(seed)
    await make_routes(lives, routes, **options)
    for kill in range(KILLS):
        publisher, victim = chance.choice(lives), chance.choice(lives)
        numbers = range(kill * BATCH, (kill + 1) * BATCH)
        sending = asyncio.create_task(send_all(publisher, f"amq.topic/{KEY}", numbers))
        if victim is publisher:
            await sending
        for _ in range(chance.randrange(1, 100)):  # a random time on
            await asyncio.sleep(0.001)
        await asyncio.to_thread(victim.kill)
        await asyncio.to_thread(victim.start)
        await sending
    wanted = {str(number) for number in range(KILLS * BATCH)}
    twice = 0
    for life in lives:
        found = await take_all(life, "end", wanted)
        assert set(found) == wanted
        twice += len(found) - len(wanted)
    print(f"{KILLS} kills of {len(lives)} brokers (seed {seed}): {len(wanted):,} messages at each, {twice} twice")
    assert twice == 0


@pytest.mark.parametrize(
    ("routes", "options"),
    [(CHAIN, {}), (RING, {}), (TREE, {}), (MESH, {"max_hops": 1})],
    ids=["chain", "ring", "tree", "mesh with one hop"],
)
def test_brokers_are_killed(routes: list[tuple[int, int]], options: dict[str, object], tmp_path: Path) -> None:
    count = 1 + max(max(route) for route in routes)
    lives = [Life(tmp_path / str(number)) for number in range(count)]
    try:
        for life in lives:
            life.start()
        asyncio.run(run(lives, routes, random.randrange(2**32), **options))
    finally:
        for life in lives:
            life.kill()
