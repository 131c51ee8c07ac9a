"""The links of a client."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path

import attrs
import pytest
from broker.raw_clients import Client, connect
from broker.visible_broker import VisibleBroker
from support.processes import Process, command
from support.waiting import until

from qmf.broker import AmqpOptions, Broker
from qmf.broker.nodes.recorder import NotStored, OnStored
from qmf.broker.store.errors import StoreError
from qmf.broker.store.journal import Journal
from qmf.bus.engine.events import ConnectionClosed, LinkAttached, LinkDetached
from qmf.bus.engine.values import Durability, ExpiryPolicy, Terminus
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError, NotFound


@pytest.mark.parametrize("answers", [True, False])
async def test_a_refused_link_leaves_no_queue(answers: bool) -> None:
    """Its queue was made before the binding that cannot be made. The client confirms the detach, or disconnects."""
    async with VisibleBroker(port=0) as broker:
        client = Client(*await connect(broker))
        client.engine.links.attach(
            "in",
            is_sender=False,
            terminus=Terminus("amq.fanout"),
            properties={"qmf.link-bindings": [{"exchange": "missing"}]},
        )
        await client.exchange(LinkDetached)
        if answers:
            client.engine.links.attach("other", is_sender=True, terminus=Terminus("amq.topic"))
            await client.exchange(LinkAttached)  # the broker has read the answer to its detach
            assert not broker.registry.queues
        client.writer.close()
        await until(lambda: broker.connections == 0, "the end of the connection")
        assert not broker.registry.queues


async def test_links_per_connection_are_limited() -> None:
    async with Broker(port=0, amqp=AmqpOptions(max_links=3)) as broker:
        client = Client(*await connect(broker))
        for number in range(5):
            client.engine.links.attach(str(number), is_sender=True, terminus=Terminus("amq.topic"))
        await client.exchange(LinkDetached, 2)
        detached = [event for event in client.seen if isinstance(event, LinkDetached)]
        assert {event.condition for event in detached} == {"amqp:resource-limit-exceeded"}
        client.writer.close()


DURABLE = "{create: always, node: {type: queue, durable: True}}"
#: A durable subscription; its queue has the name of `Client`'s container before that of the link.
NEWS = Terminus("amq.topic", durability=Durability.UNSETTLED_STATE, expiry=ExpiryPolicy.NEVER)
#: How often the broker is killed in `make soak`.
KILLS = int(os.environ.get("QMF_SOAK_KILLS", "200"))


class Disk:
    """Units of the store that are written, and not reported."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.held: list[tuple[OnStored, NotStored | None]] = []
        close_unit = Journal.close_unit

        def hold(journal: Journal, on_stored: OnStored | None) -> bool:
            return close_unit(
                journal, None if on_stored is None else lambda error: self.held.append((on_stored, error))
            )

        monkeypatch.setattr(Journal, "close_unit", hold)

    def report(self, error: NotStored | None = None) -> None:
        (on_stored, found) = self.held.pop()
        on_stored(error or found)


@pytest.mark.parametrize(
    "address", [f"q; {DURABLE}", "amq.topic; {link: {name: news, durable: true}}"], ids=["queue", "subscription"]
)
async def test_an_answer_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    async with Broker(port=0, data_dir=tmp_path) as broker, aio.Connection(broker.url) as connection:
        session = await connection.session()
        disk = Disk(monkeypatch)
        answer = asyncio.ensure_future(session.receiver(address))
        await until(lambda: disk.held, "a unit of the store")
        assert not answer.done()
        disk.report()
        await answer
        assert not (await answer).available()


async def subscribed(broker: Broker) -> Client:
    """A client with a durable subscription, and another link."""
    client = Client(*await connect(broker))
    client.engine.links.attach("news", is_sender=False, terminus=NEWS)
    client.engine.links.attach("transient", is_sender=False, terminus=Terminus("amq.topic"))
    await client.exchange(LinkAttached, 2)
    return client


def close_links(client: Client) -> None:
    for event in client.seen:
        if isinstance(event, LinkAttached):
            client.engine.links.detach(event.link)


async def test_the_end_of_a_subscription_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Broker(port=0, data_dir=tmp_path) as broker:
        client, disk = await subscribed(broker), Disk(monkeypatch)
        close_links(client)
        answers = asyncio.ensure_future(client.exchange(LinkDetached, 2))
        await until(lambda: disk.held, "a unit of the store")
        await asyncio.sleep(0)
        assert not answers.done()
        disk.report()
        await answers
        client.writer.close()


async def test_an_end_that_the_disk_refuses_ends_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Broker(port=0, data_dir=tmp_path) as broker:
        client, disk = await subscribed(broker), Disk(monkeypatch)
        close_links(client)
        end = asyncio.ensure_future(client.exchange(ConnectionClosed))
        await until(lambda: disk.held, "a unit of the store")
        disk.report(StoreError(tmp_path, "the disk is full"))
        await end
        (event,) = [event for event in client.seen if isinstance(event, ConnectionClosed)]
        assert "cannot store: the disk is full" in event.description
        client.writer.close()


async def test_what_is_transient_or_there_does_not_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Broker(port=0, data_dir=tmp_path, queues=["there"]) as broker, aio.Connection(broker.url) as connection:
        session = await connection.session()
        disk = Disk(monkeypatch)
        for address in ("there", "q; {create: always, node: {type: queue}}", "amq.topic"):
            await session.receiver(address)
        assert not disk.held


async def test_a_disk_that_refuses_ends_the_link(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Broker(port=0, data_dir=tmp_path) as broker, aio.Connection(broker.url) as connection:
        session = await connection.session()
        disk = Disk(monkeypatch)

        async def use() -> None:
            receiver = await session.receiver(f"q; {DURABLE}")
            await receiver.fetch(30)

        using = asyncio.ensure_future(use())
        await until(lambda: disk.held, "a unit of the store")
        disk.report(StoreError(tmp_path, "the disk is full"))
        with pytest.raises(MessagingError, match="cannot store: the disk is full"):
            await using
        assert (await session.receiver("amq.topic")).available() == 0  # the session goes on


async def test_a_client_that_closes_meanwhile_has_its_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with Broker(port=0, data_dir=tmp_path) as broker:
        connection = aio.Connection(broker.url, reconnect=False)
        await connection.open()
        session = await connection.session()
        disk = Disk(monkeypatch)
        answer = asyncio.ensure_future(session.receiver(f"q; {DURABLE}"))
        await until(lambda: disk.held, "a unit of the store")
        closing = asyncio.ensure_future(connection.close())
        await until(lambda: not broker.connections or disk.held, "the client's end")
        disk.report()
        await closing
        await until(lambda: not broker.connections, "the end of the connection")
        assert answer.done() or answer.cancel()


@attrs.frozen
class Answered:
    """What a client was told before the broker was killed: queues that were created, subscriptions that have ended."""

    created: list[str] = attrs.field(factory=list)
    ended: list[str] = attrs.field(factory=list)


async def use_until_killed(process: Process, url: str, life: int, count: int) -> Answered:
    """Create durable queues, end durable subscriptions, many at a time, until the broker is killed after `count`."""
    answered = Answered()

    async with aio.Connection(url, reconnect=False, container_id="creator") as connection:
        session = await connection.session()

        def on_answer(answers: list[str], name: str) -> None:
            answers.append(name)
            if len(answered.created) + len(answered.ended) == count:
                process.popen.send_signal(signal.SIGKILL)

        async def create(name: str) -> None:
            await session.sender(f"{name}; {DURABLE}")
            on_answer(answered.created, name)

        async def end_all(names: list[str]) -> None:
            host, _, port = url.removeprefix("amqp://").rpartition(":")
            client = Client(*await asyncio.open_connection(host, int(port)))
            links = client.engine.links
            try:
                for name in names:
                    links.attach(name, is_sender=False, terminus=NEWS)
                while len(answered.ended) < len(names):
                    client.seen.clear()
                    await client.exchange(object)
                    for event in client.seen:
                        if isinstance(event, LinkAttached):
                            links.detach(event.link)
                        elif isinstance(event, LinkDetached):
                            on_answer(answered.ended, event.link.name)
            finally:
                client.writer.close()

        names = [f"{life}-{number}" for number in range(50)]
        tasks = [asyncio.ensure_future(create(f"q-{name}")) for name in names]
        await asyncio.gather(end_all(names), *tasks, return_exceptions=True)
    return answered


def kill(folder: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    answered = Answered()
    for life in range(kills + 1):
        process = Process(command("qmf-broker"), "--port", "0", "--data-dir", str(folder), "--no-management")
        try:
            url = process.wait_for("Listening on").split()[-1]
            asyncio.run(find_all(url, answered))
            if life < kills:
                answered = asyncio.run(use_until_killed(process, url, life, chance.randrange(20, 90)))
                assert answered.created
        finally:
            process.end(signal.SIGKILL)


async def find_all(url: str, answered: Answered) -> None:
    async with aio.Connection(url) as connection:
        session = await connection.session()
        for name in answered.created:
            await session.sender(f"{name}; {{node: {{type: queue}}}}")
        for name in answered.ended:
            with pytest.raises(NotFound):
                await session.receiver(f"client_{name}")


@pytest.mark.slow
def test_what_was_answered_outlives_a_kill(tmp_path: Path) -> None:
    kill(tmp_path, 2, 1)


@pytest.mark.slow
@pytest.mark.soak
def test_what_was_answered_outlives_many_kills(tmp_path: Path) -> None:
    kill(tmp_path, KILLS, random.randrange(2**32))
