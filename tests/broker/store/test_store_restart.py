"""A broker with a data folder that is started again: durable nodes, bindings and messages are there."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import proton
import pytest
from broker.visible_broker import VisibleBroker
from proton.reactor import LinkOption
from proton.utils import BlockingConnection
from support.waiting import until

from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.nodes.recorder import NotStored
from qmf.broker.operations.principal import BROKER
from qmf.broker.server import Broker
from qmf.broker.store.checking import check_store
from qmf.broker.store.errors import StoreLocked
from qmf.messaging import Empty, Message, NotFound
from qmf.messaging.aio import Connection, Session

DURABLE = "{create: always, node: {type: queue, durable: True%s}}"


@contextlib.asynccontextmanager
async def session(folder: Path, *, transactional: bool = False) -> AsyncIterator[Session]:
    """A session on a broker that lives as long."""
    async with Broker(port=0, data_dir=folder) as broker:
        connection = await Connection.establish(broker.url, timeout=30)
        try:
            yield await connection.session(transactional=transactional)
        finally:
            await connection.close()


async def send(session: Session, address: str, *texts: str, durable: bool = True, ttl: float | None = None) -> None:
    sender = await session.sender(address)
    for text in texts:
        await sender.send(Message(text, durable=durable, ttl=ttl))
    await sender.close()


async def contents(session: Session, address: str) -> Sequence[str]:
    """The messages of a queue, which are acknowledged."""
    receiver = await session.receiver(address)
    found = []
    with contextlib.suppress(Empty):
        while True:
            found.append(str((await receiver.fetch(timeout=0)).content))
    await session.acknowledge()
    await receiver.close()
    return found


async def test_persistent_messages_of_durable_queues_are_there_again_in_their_order(tmp_path: Path) -> None:
    async with session(tmp_path) as before:
        await send(before, "kept; " + DURABLE % "", "a", "b", "c")
        await send(before, "kept", "transient", durable=False)
        await send(before, "gone; {create: always}", "d")
    async with session(tmp_path) as after:
        assert await contents(after, "kept") == ["a", "b", "c"]
        with pytest.raises(NotFound, match="gone"):
            await after.receiver("gone")


async def test_what_was_acknowledged_stays_away(tmp_path: Path) -> None:
    async with session(tmp_path) as before:
        await send(before, "q; " + DURABLE % "", "a", "b", "c")
        receiver = await before.receiver("q", capacity=3)
        first, second = await receiver.fetch(timeout=30), await receiver.fetch(timeout=30)
        await before.acknowledge(second)
        assert first.content == "a"
    async with session(tmp_path) as after:
        assert await contents(after, "q") == ["a", "c"]
    async with session(tmp_path) as again:
        assert await contents(again, "q") == []


async def test_what_may_have_been_delivered_before_says_so(tmp_path: Path) -> None:
    async with session(tmp_path) as before:
        await send(before, "received; " + DURABLE % "", "a", "b")
        await send(before, "browsed; " + DURABLE % "", "c")
        assert not (await (await before.receiver("received", capacity=1)).fetch(timeout=30)).redelivered
        await (await before.receiver("browsed; {mode: browse}")).fetch(timeout=30)
    for _ in range(2):
        async with session(tmp_path) as after:
            browser = await after.receiver("received; {mode: browse}")
            # That of which message is not recorded: all of the queue may have been.
            assert [(await browser.fetch(timeout=30)).redelivered for _ in range(2)] == [True, True]
            browser = await after.receiver("browsed; {mode: browse}")
            assert not (await browser.fetch(timeout=30)).redelivered
    async with session(tmp_path) as after:
        await send(after, "received", "new")
        receiver = await after.receiver("received")
        assert [(await receiver.fetch(timeout=30)).redelivered for _ in range(3)] == [True, True, False]


async def test_a_transaction_is_there_whole(tmp_path: Path) -> None:
    async with session(tmp_path) as before:
        await send(before, "from; " + DURABLE % "", "a", "b")
        await send(before, "to; " + DURABLE % "")
    async with session(tmp_path, transactional=True) as moving:
        receiver = await moving.receiver("from")
        sender = await moving.sender("to")
        message = await receiver.fetch(timeout=30)
        await sender.send(Message("moved " + str(message.content), durable=True))
        await moving.acknowledge()
        await moving.commit()
        message = await receiver.fetch(timeout=30)
        await sender.send(Message("never", durable=True))
        await moving.acknowledge()
    async with session(tmp_path) as after:
        assert await contents(after, "from") == ["b"]
        assert await contents(after, "to") == ["moved a"]


async def test_exchanges_and_bindings_are_there_again(tmp_path: Path) -> None:
    node = "{create: always, node: {type: topic, durable: True, x-declare: {type: direct}}}"
    bound = DURABLE % ", x-bindings: [{exchange: news, key: sport}]"
    async with session(tmp_path) as before:
        await send(before, f"news/none; {node}")
        await send(before, f"q; {bound}")
    async with session(tmp_path) as after:
        await send(after, "news/sport", "goal")
        await send(after, "news/weather", "rain")
        assert await contents(after, "q") == ["goal"]
    report = check_store(tmp_path)
    assert (report.definitions, report.faults) == (3, ())


async def test_what_was_deleted_stays_away(tmp_path: Path) -> None:
    async with session(tmp_path) as before:
        await send(before, "q; " + DURABLE % "", "a")
        await (await before.sender("q; {delete: always}")).close()
    async with session(tmp_path) as after:
        with pytest.raises(NotFound, match="'q'"):
            await after.receiver("q")
    assert check_store(tmp_path).definitions == 0


async def test_a_last_value_queue_keeps_the_last_values(tmp_path: Path) -> None:
    declare = ", x-declare: {arguments: {'qpid.last_value_queue_key': key}}"
    async with session(tmp_path) as before:
        sender = await before.sender("q; " + DURABLE % declare)
        for key, text in (("x", "1"), ("y", "2"), ("x", "3")):
            await sender.send(Message(text, durable=True, properties={"key": key}))
    async with session(tmp_path) as after:
        assert sorted(await contents(after, "q")) == ["2", "3"]


async def test_times_to_live_go_on_while_the_broker_is_down(tmp_path: Path) -> None:
    async with session(tmp_path) as before:
        await send(before, "q; " + DURABLE % "", "short", ttl=0.05)
        await send(before, "q", "long", ttl=600)
    async with session(tmp_path) as after:

        async def only_long() -> bool:
            receiver = await after.receiver("q; {mode: browse}")
            found = []
            with contextlib.suppress(Empty):
                while True:
                    found.append((await receiver.fetch(timeout=0)).content)
            await receiver.close()
            return found == ["long"]

        for _ in range(200):
            if await only_long():
                break
        assert await contents(after, "q") == ["long"]


async def test_a_queue_that_flows_to_disk_keeps_all_messages(tmp_path: Path) -> None:
    declare = ", x-declare: {arguments: {'qpid.policy_type': flow-to-disk, 'qpid.max_count': 2}}"
    async with session(tmp_path) as it:
        await send(it, "q; " + DURABLE % declare, "a", "b", "c", durable=False)
        await send(it, "q", "d")
        assert await contents(it, "q") == ["a", "b", "c", "d"]


async def test_a_folder_has_one_broker(tmp_path: Path) -> None:
    async with Broker(port=0, data_dir=tmp_path):
        with pytest.raises(StoreLocked, match="in use by process"):
            await Broker(port=0, data_dir=tmp_path).start()
    async with Broker(port=0, data_dir=tmp_path):
        pass


async def test_a_damaged_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_bytes(b"no database" * 1000)
    with pytest.raises(NotStored, match="is damaged"):
        await Broker(port=0, data_dir=tmp_path).start()


AUTO_DELETE = ", x-declare: {auto-delete: True%s}"


async def test_a_queue_that_deletes_itself_does_so_after_a_restart(tmp_path: Path) -> None:
    """Its receiver was there when the broker stopped. One that never had a receiver stays."""
    async with session(tmp_path) as before:
        await send(before, "used; " + DURABLE % (AUTO_DELETE % ""), "a")
        await send(before, "unused; " + DURABLE % (AUTO_DELETE % ""), "b")
        await before.receiver("used")
    async with VisibleBroker(port=0, data_dir=tmp_path) as broker:
        assert [queue.name for queue in broker.registry.queues] == ["unused"]
    assert list(check_store(tmp_path).messages) == ["unused"]


async def test_a_queue_that_is_kept_for_some_time_is_deleted_that_long_after_a_restart(tmp_path: Path) -> None:
    arguments = ", arguments: {'qpid.auto_delete_timeout': %d}"
    async with session(tmp_path) as before:
        for name, seconds in (("short", 1), ("long", 3600)):
            await send(before, f"{name}; " + DURABLE % (AUTO_DELETE % (arguments % seconds)), "a")
            await before.receiver(name)
    async with VisibleBroker(port=0, data_dir=tmp_path) as broker:
        await until(lambda: [queue.name for queue in broker.registry.queues] == ["long"], "the end of the queue")
    async with session(tmp_path) as after:
        assert await contents(after, "long") == ["a"]


async def test_what_is_created_and_deleted_at_once_is_gone(tmp_path: Path) -> None:
    async with VisibleBroker(port=0, data_dir=tmp_path) as broker:
        queue = broker.operations.create(BROKER, "short", read_node_declaration(("queue",), {"durable": True}))
        broker.operations.delete(BROKER, queue)
    assert check_store(tmp_path).definitions == 0


async def test_a_subscription_that_expires_does_so_after_a_restart(tmp_path: Path) -> None:
    options = proton_subscription(expiry=proton.Terminus.EXPIRE_WITH_LINK, timeout=1)
    async with VisibleBroker(port=0, data_dir=tmp_path) as broker:
        await asyncio.to_thread(subscribe, broker.url, options)
    async with VisibleBroker(port=0, data_dir=tmp_path) as broker:
        await until(lambda: not broker.registry.queues, "the end of the subscription")
    assert check_store(tmp_path).definitions == 0


def proton_subscription(*, expiry: int, timeout: int) -> LinkOption:
    class Expiring(LinkOption):
        def apply(self, link: proton.Link) -> None:
            link.source.durability = proton.Terminus.DELIVERIES
            link.source.expiry_policy = expiry
            link.source.timeout = timeout

    return Expiring()


def subscribe(url: str, options: LinkOption) -> None:
    """Attach, and be gone without a detach."""
    connection = BlockingConnection(url.removeprefix("amqp://"), timeout=30, container_id="me")
    connection.create_receiver("amq.topic", name="mine", options=options, credit=1)
    connection.close()
