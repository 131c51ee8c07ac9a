"""The connection of a durable route is cut again and again: every message comes once, whichever way they go."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from broker.federation.federated import send
from broker.federation.routed import RoutedBroker
from support.proxy import Proxy
from support.waiting import until

from qmf.broker.operations.principal import BROKER

#: How often it is cut in `make soak`.
CUTS = int(os.environ.get("QMF_SOAK_CUTS", "100"))
#: Messages between two cuts.
BATCH = 10

#: Kinds of routes, by their properties, and where messages are sent to.
KINDS: Mapping[str, tuple[dict[str, object], str]] = {
    "queue": ({"src": "q", "srcIsQueue": True}, "q"),
    "static": ({"src": "amq.topic", "key": "k"}, "amq.topic/k"),
    "dynamic": ({"src": "amq.topic", "dynamic": True}, "amq.topic/k"),
    "push": ({"src": "q", "srcIsQueue": True, "srcIsLocal": True}, "q"),
}


async def cut_again_and_again(folder: Path, kind: str, cuts: int, seed: int) -> int:
    """How many messages came twice."""
    properties, address = KINDS[kind]
    push = "srcIsLocal" in properties
    chance = random.Random(seed)
    there = RoutedBroker(data_dir=folder / "there", queues=["q"])
    here = RoutedBroker(data_dir=folder / "here", queues=["q"])
    async with there, here:
        source, target = (here, there) if push else (there, here)
        target.bind("amq.topic", "q", "k" if "dynamic" in properties else "#")
        with Proxy(there.url) as proxy:
            place = urlsplit(proxy.url)
            link = {"host": place.hostname, "port": place.port, "durable": True}
            here.operations.forwarding.create(BROKER, "link", "link", link, strict=True)
            route = {"link": "link", "dest": "amq.topic", "durable": True, **properties}
            here.operations.forwarding.create(BROKER, "bridge", "route", route, strict=True)
            await here.up("route")
            for number in range(cuts):
                contents = [f"{number * BATCH + item}" for item in range(BATCH)]
                sending = asyncio.create_task(send(source, address, *contents, durable=True))
                for _ in range(chance.randrange(1, 40)):
                    await asyncio.sleep(0)
                proxy.cut()
                await sending
            wanted = {str(number) for number in range(cuts * BATCH)}

            def found() -> list[str]:
                return [item.message.data.rpartition(b"\xa1")[2][1:].decode() for item in queue.contents.waiting()]

            queue = target.queue("q")
            await until(lambda: wanted <= set(found()), lambda: f"{len(set(found()))} of {len(wanted)}", timeout=60)
            return len(found()) - len(wanted)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["dynamic", "push"])
async def test_a_few_cuts(kind: str, tmp_path: Path) -> None:
    assert await cut_again_and_again(tmp_path, kind, 3, 1) == 0


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
async def test_many_cuts(kind: str, tmp_path: Path) -> None:
    seed = random.randrange(2**32)
    doubled = await cut_again_and_again(tmp_path, kind, CUTS, seed)
    print(f"{CUTS} cuts of a {kind} route (seed {seed}): {CUTS * BATCH:,} messages, {doubled:,} of them twice")
    assert doubled == 0
