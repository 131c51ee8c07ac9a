"""Every class of the schema, value by value: which are set on a broker that is used, and which are never counted."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from broker.management.managed import managed

from qmf.broker.connection_limits import ConnectionLimits
from qmf.console.aio import Client
from qmf.messaging import aio
from qmf.messaging.constants import REJECTED, RELEASED
from qmf.messaging.exceptions import MessagingError
from qmf.messaging.message import Disposition, Message
from qmf.models.broker import console as remote
from qmf.models.broker import schema
from qmf.schema import ClassSchema

pytestmark = pytest.mark.slow

SCHEMAS = {item.name: item for item in vars(schema).values() if isinstance(item, ClassSchema)}

#: Classes without objects: of federation, of QMF v1 and of clusters.
ABSENT = {"Agent", "Bridge", "Domain", "Link", "ManagementSetupState"}

#: Values that no object has: of federation; not measured by qpidd either; of sessions without a connection.
NEVER_SET = {"Binding": {"origin"}, "Queue": {"messageLatency"}, "Session": {"expireTime", "maxClientRate"}}

#: Values that stay at zero, or false: of what AMQP 1.0 does not have, of clusters, and not counted by qpidd either. A
#: connection that is closing is gone at once; the client's own ends of its links have no addresses here.
ALWAYS_ZERO = {
    "Broker": {"stagingThreshold"},
    "Connection": {"SystemConnection", "closing", "federationLink", "saslSsf", "shadow", "userProxyAuth"},
    "Incoming": {"domain", "source"},
    "Outgoing": {"domain", "target"},
    "Session": {"channelId", "clientCredit", "detachedLifespan", "framesOutstanding"},
    "Subscription": {"arguments"},
}


@asynccontextmanager
async def used(client: Client, url: str) -> AsyncIterator[None]:
    """Clients that do everything that is counted."""
    (it,) = await client.objects(remote.Broker)
    settings: dict[str, dict[str, object]] = {
        "kept": {"durable": True, "alternate-exchange": "amq.fanout"},
        "big": {"qpid.policy_type": "flow-to-disk", "qpid.max_count": 1},
        "ring": {"qpid.policy_type": "ring", "qpid.max_count": 1},
        "values": {"qpid.last_value_queue_key": "k"},
        "full": {"qpid.max_count": 1},
        "old": {},
        "slow": {"qpid.flow_stop_count": 1},
        "other": {},
        "gone": {"alternate-exchange": "amq.fanout", "auto-delete": True},
        "lost": {},
    }
    for name, arguments in settings.items():
        await it.create("queue", name, arguments, True)
    await it.create("exchange", "news", {"exchange-type": "fanout", "durable": True}, True)
    await it.create("exchange", "more", {"alternate-exchange": "news", "auto-delete": True, "qpid.ive": True}, True)
    await it.create("topic", "headlines", {"exchange": "news", "durable": True, "qpid.max_count": 9}, True)
    await it.create("QueuePolicy", "temp-.*", {"qpid.max_count": 9}, True)
    await it.create("TopicPolicy", "news-.*", {"exchange-type": "fanout"}, True)
    await it.create("binding", "amq.fanout/other", {}, True)
    await it.create("binding", "more/other/k", {"x": 1}, True)
    async with aio.Connection(url, container_id="user") as connection:
        session = await connection.session()
        for name in ("kept", "big", "ring", "values", "slow", "gone", "lost"):
            sender = await session.sender(name)
            for _ in range(1 if name == "slow" else 4):  # more it does not take
                await sender.send(Message("x", durable=True, properties={"k": "same"}), timeout=30)
        full = await session.sender("full")
        await full.send(Message("x"), timeout=30)
        with pytest.raises(MessagingError):
            await full.send(Message("x"), timeout=30)
        await (await session.sender("old")).send(Message("x", ttl=0.01))
        await (await session.sender("amq.direct/nobody")).send(Message("x"))
        await (await session.sender("amq.fanout")).send(Message("x"))
        kept = await session.receiver("kept")
        await session.acknowledge(await kept.fetch(timeout=30))
        await session.acknowledge(await kept.fetch(timeout=30), Disposition(RELEASED))
        await session.acknowledge(await kept.fetch(timeout=30), Disposition(REJECTED))
        await kept.fetch(timeout=30)
        await session.receiver("other; {mode: browse}")
        big = await session.receiver("big")
        for _ in range(2):
            await session.acknowledge(await big.fetch(timeout=30))
        queues = {item.name: item for item in await client.objects(remote.Queue)}
        await queues["ring"].purge(0, {})
        await queues["values"].reroute(0, False, "amq.fanout", {})
        await it.delete("queue", "gone", {})
        await it.delete("queue", "lost", {})
        await it.queueRedirect("ring", "full")
        transactional = await connection.session(transactional=True)
        sender = await transactional.sender("other")
        await sender.send(Message("1"))
        await transactional.commit()
        receiver = await transactional.receiver("other")
        await receiver.fetch(timeout=30)
        await transactional.acknowledge()
        await transactional.commit()
        await sender.send(Message("2"))
        await transactional.rollback()
        await sender.send(Message("3"))
        await transactional.acknowledge()
        async with aio.Connection(url) as exclusive:
            await (await exclusive.session()).receiver("news; {link: {name: mine}}")
            yield


async def values(client: Client) -> dict[str, dict[str, list[object]]]:
    """The values that objects have, by class and name; of hilo statistics the high ones."""
    found: dict[str, dict[str, list[object]]] = {}
    for name, item in SCHEMAS.items():
        objects = await client.objects(name, package=item.package)
        names = [*(each.name for each in item.properties), *(each.name for each in item.statistics)]
        known = found[name] = {each: [] for each in names}
        for obj in objects:
            data = {**obj.properties, **obj.statistics}
            for each in names:
                value = data.get(f"{each}High", data.get(each))
                if value is not None:
                    known[each].append(value)
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is that of glibc")
async def test_every_value_is_set_and_counted(tmp_path: Path) -> None:
    options = {"data_dir": tmp_path, "expiry_interval": 0.05, "connection_limits": ConnectionLimits(total=100)}
    async with managed(**options) as (broker, client), used(client, broker.url):  # type: ignore[arg-type]

        async def expired() -> bool:
            (it,) = await client.objects(remote.Broker)
            return it.discardsTtl > 0

        async with asyncio.timeout(30):
            while not await expired():
                continue
        found = await values(client)
        absent = {name for name, known in found.items() if not any(known.values())}
        assert absent == ABSENT
        unset = {name: {each for each, some in known.items() if not some} for name, known in found.items()}
        assert {name: names for name, names in unset.items() if names and name not in ABSENT} == NEVER_SET
        zero = {name: {each for each, some in known.items() if some and not any(some)} for name, known in found.items()}
        assert {name: names for name, names in zero.items() if names} == ALWAYS_ZERO
