"""A durable link to an Artemis, of which either end is killed at random moments: every message comes once."""

from __future__ import annotations

import asyncio
import os
import random
from pathlib import Path

import pytest
from broker.federation.lives import Life, administrated, send_all
from support.killed_brokers import KilledBroker

from qmf.messaging import aio
from qmf.messaging.message import Message

pytestmark = [pytest.mark.slow, pytest.mark.soak]

#: How often one is killed.
KILLS = int(os.environ.get("QMF_SOAK_KILLS", "10"))
BATCH = 100


async def test_either_end_of_a_link_to_artemis_is_killed(tmp_path: Path) -> None:
    chance = random.Random(seed := random.randrange(2**32))
    artemis, life = KilledBroker("artemis", tmp_path), Life(tmp_path / "ours")
    artemis.start()
    life.start()
    try:
        async with administrated(life) as it:
            await it.create("queue", "p", {"durable": True}, True)
            await it.create("domain", "artemis", {"url": artemis.url, "durable": True}, True)
            link = {"domain": "artemis", "source": "p", "target": "killed", "durable": True}
            await it.create("outgoing", "link", link, True)
        for number in range(KILLS):
            await send_all(life, "p", range(number * BATCH, (number + 1) * BATCH))
            await asyncio.sleep(chance.uniform(0, 0.2))
            one = chance.choice((artemis, life))
            one.kill()
            one.start()
        await send_all(life, "p", range(KILLS * BATCH, KILLS * BATCH + 1))
        wanted = {str(number) for number in range(KILLS * BATCH + 1)}
        found: list[object] = []
        async with aio.Connection(artemis.url) as connection:
            session = await connection.session()
            receiver = await session.receiver("killed; {create: always}", capacity=100)
            while not wanted <= {*found}:
                found.append((await receiver.fetch(timeout=60)).content)
            # What came twice is in front of this one, since the link has sent all.
            async with administrated(life) as it:
                await it.delete("outgoing", "link", {})
            await (await session.sender("killed")).send(Message("end"))
            while (content := (await receiver.fetch(timeout=60)).content) != "end":
                found.append(content)
            await session.acknowledge()
    finally:
        artemis.kill()
        life.kill()
    print(f"{KILLS} kills (seed {seed}), {artemis.kills - 1} of Artemis: {len(wanted)} messages, {len(found)} came")
    assert len(found) == len(wanted)
