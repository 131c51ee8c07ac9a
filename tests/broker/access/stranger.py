"""A broker on which bob, who may log in, is allowed nothing; and whether he has changed, sent or received something."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from broker.access.test_control import USERS, control, session_of
from broker.protocols.mqtt.wire_client import connect, mqtt_broker
from broker.visible_broker import VisibleBroker

from qmf.broker.protocols.stomp.options import StompOptions
from qmf.messaging.message import Message

RULES = "acl allow ann@QPID all all\nacl deny all all\n"
#: To know what there is, allows nothing to be done with it.
ACCESS = "acl allow bob@QPID access\n"


def nodes(broker: VisibleBroker) -> dict[str, object]:
    """What there is, with its messages, consumers and bindings."""
    found: dict[str, object] = {
        queue.name: (len(queue.contents), len(queue.delivery.consumers), queue.exclusive)
        for queue in broker.registry.queues
    }
    for exchange in broker.registry.exchanges:
        found[f"exchange {exchange.name}"] = sorted(
            (queue.name, str(binding.spec)) for queue in broker.registry.queues for binding in exchange.bindings(queue)
        )
    return found


@asynccontextmanager
async def unchanged(folder: Path, rules: str = "", **options: Any) -> AsyncIterator[VisibleBroker]:
    """A broker with a queue ``q`` that has a message, where nothing has happened in the end.

    Args:
        folder: for its file of rules.
        rules: before those by which ann may do everything, and nobody else anything.
        options: further ones of the broker.
    """
    async with (
        mqtt_broker(
            users=USERS,
            access=control(folder, rules + RULES),
            queues=["q"],
            stomp=StompOptions(port=0),
            ws_port=0,
            **options,
        ) as broker,
        session_of(broker, "ann") as session,
    ):
        topics = await session.receiver("amq.topic/#")
        await (await session.sender("q")).send(Message("ann"), sync=True)
        watcher = await connect(broker, "ann-1", username="ann", password=b"a")
        assert await watcher.subscribe("#", qos=1) == (1,)
        before = nodes(broker)
        yield broker
        assert nodes(broker) == before
        assert await watcher.nothing_waits()
        assert topics.available() == 0
        await (await session.sender("amq.topic")).send(Message("last", subject="k"), sync=True)
        assert (await topics.fetch(10)).content == "last"
