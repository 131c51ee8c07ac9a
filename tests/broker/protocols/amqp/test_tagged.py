"""Outgoing links whose messages have delivery tags of their own: what waits for the disk, and order after a loss."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest
from broker.federation.federated import OUT, FederatedBroker, send
from support.frame_cutter import Cut, FrameCutter, Performative
from support.waiting import until

from qmf.broker.federation.link_status import PeerLinkState
from qmf.broker.nodes.counters import BrokerCounters
from qmf.broker.nodes.message import read_message
from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.settings import QueueSettings
from qmf.broker.operations.principal import BROKER
from qmf.broker.protocols.amqp.tagged import TaggedOutgoingLink
from qmf.broker.store.journal import Journal
from qmf.bus.engine.link import Link
from qmf.bus.transport import AmqpTransport
from qmf.codec import Message as CodecMessage
from qmf.codec import Section, encode_message

pytestmark = pytest.mark.slow


@asynccontextmanager
async def linked(folder: Path) -> AsyncIterator[tuple[FederatedBroker, FederatedBroker, FrameCutter]]:
    """A broker with a durable link from ``here`` to ``there`` of another one, through a proxy."""
    async with (
        FederatedBroker(port=0, queues=["there"]) as there,
        FederatedBroker(port=0, data_dir=folder) as here,
    ):
        with FrameCutter(there.url) as proxy:
            limits = here.registry.limits
            here.operations.create(BROKER, "here", read_node_declaration(("queue",), {"durable": True}, limits=limits))
            here.domain(proxy.url, durable=True)
            here.link(OUT, "here", "there", durable=True)
            await here.state(PeerLinkState.OPERATIONAL)
            yield here, there, proxy


def contents(broker: FederatedBroker, queue: str) -> list[str]:
    """What is available in a queue."""
    waiting = broker.queue(queue).contents.waiting()
    return [entry.message.data.rpartition(b"\xa1")[2][1:].decode() for entry in waiting]


async def test_a_message_is_sent_when_it_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with linked(tmp_path) as (here, there, _):
        is_on_disk = False
        waiting: list[bool] = []

        def is_stored(journal: Journal, record: int) -> bool:
            waiting.append(is_on_disk)
            return is_on_disk

        monkeypatch.setattr(Journal, "is_stored", is_stored)
        await send(here, "here", "one", "two", durable=True)
        await until(lambda: len(waiting) >= 2, "they wait for the disk")
        assert (contents(there, "there"), contents(here, "here")) == ([], [])
        is_on_disk = True
        await send(here, "here", "three", durable=True)
        await until(lambda: here.depth("here") == 0, lambda: f"{here.depth('here')}")
        assert contents(there, "there") == ["one", "two", "three"]


async def test_messages_stay_in_order_over_a_loss(tmp_path: Path) -> None:
    async with linked(tmp_path) as (here, there, proxy):
        sent = [f"{number:02}" for number in range(30)]
        proxy.cut_at(Cut(Performative.TRANSFER, to_broker=True, count=10, passed=False, refuse=True))
        await send(here, "here", *sent, durable=True)
        await here.state(PeerLinkState.WAITING)
        proxy.refuse(False)
        await until(lambda: here.depth("here") == 0, lambda: f"{here.depth('here')}")
        assert contents(there, "there") == sent


class Sent:
    """The connection of a link that always has credit; a transport as far as the link needs one.

    Attributes:
        deliveries: delivery tag and data of what was sent.
    """

    def __init__(self) -> None:
        self.deliveries: list[tuple[int, bytes]] = []
        self.engine = SimpleNamespace(
            max_frame=65_536,
            links=SimpleNamespace(credit=lambda _: 100),
            deliveries=SimpleNamespace(send=self._send),
        )

    def room(self, _: object) -> int:
        return 100

    def can_send(self, _: object) -> bool:
        return True

    def flush_soon(self) -> None:
        """What was sent has left."""

    def send_all(self, _: object, messages: list[bytes], *, delivery_tags: list[int]) -> list[int]:
        self.deliveries += zip(delivery_tags, messages, strict=True)
        return delivery_tags

    def _send(self, _: object, data: bytes, *, delivery_tag: int, message_format: int = 0) -> None:
        assert not message_format
        self.deliveries.append((delivery_tag, data))


def test_what_was_accepted_is_settled_before_anything_else_is_sent() -> None:
    """Some messages of the first connection were accepted, and others not: there is credit for these at once."""
    sent = Sent()
    queue = Queue("q", QueueSettings(), BrokerCounters(), lambda: 0.0)
    transport, end = cast(AmqpTransport, sent), cast(Link, SimpleNamespace(presettled=False))
    link = TaggedOutgoingLink(transport, end, queue, None, lasting=False)
    queue.delivery.add_consumer(link)
    messages = [encode_message(CodecMessage(body=str(number), section=Section.VALUE)) for number in range(4)]
    for data in messages:
        queue.enqueue(read_message(data, 0.0))
    assert sent.deliveries == list(enumerate(messages, start=1))
    sent.deliveries.clear()
    link.resume((), accepted=(1, 2))
    link.dispatch()
    assert sent.deliveries == [(1, b""), (2, b""), (5, messages[2]), (6, messages[3])]


async def test_a_link_that_is_deleted_gives_all_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with linked(tmp_path) as (here, there, _):
        monkeypatch.setattr(Journal, "is_stored", lambda *_: False)
        await send(here, "here", "one", "two", durable=True)
        await until(lambda: contents(here, "here") == [], "they wait for the disk")
        here.operations.forwarding.delete(BROKER, OUT.value, "link")
        assert (contents(here, "here"), contents(there, "there")) == (["one", "two"], [])
