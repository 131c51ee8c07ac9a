"""What is remembered of links, over a restart."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest
from support.waiting import until

from qmf.broker.nodes.message import read_message
from qmf.broker.nodes.node_declaration import read_node_declaration
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.store import journal
from qmf.broker.store.errors import StoreDamaged
from qmf.broker.store.folder import DATABASE
from qmf.broker.store.persistence import Persistence
from qmf.codec import Message as AmqpMessage
from qmf.codec import Section, encode_message

#: The largest delivery tag.
LAST = (1 << 64) - 1


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[NodeRegistry]:
    """The nodes of a broker with a data folder."""
    registry = NodeRegistry()
    persistence = Persistence(folder, registry)
    yield registry
    await persistence.close()


def publish(registry: NodeRegistry) -> Queue:
    """A durable message is in a durable queue."""
    if (queue := registry.queue("q")) is None:
        queue = registry.declare_queue("q", read_node_declaration(("queue",), {"durable": True}).queue)
    data = encode_message(AmqpMessage(section=Section.DATA, body=b"x", durable=True))
    registry.publish(queue, read_message(data, 0.0))
    return queue


async def stored(registry: NodeRegistry) -> None:
    """The current unit is on the disk."""
    done = asyncio.get_running_loop().create_future()
    assert registry.recorder is not None
    if registry.recorder.close_unit(done.set_result):
        assert await done is None


async def test_what_was_accepted_is_remembered_with_its_message(tmp_path: Path) -> None:
    async with opened(tmp_path) as registry:
        memory = registry.memories.find("link")
        publish(registry)
        for tag in (5, LAST):
            memory.begin({tag: None})
            memory.accept([tag])
        await stored(registry)
        memory.begin({6: None})  # nothing is stored with it
        memory.accept([6])
    async with opened(tmp_path) as registry:
        assert sorted(registry.memories.find("link").accepted) == [5, LAST]
        registry.memories.find("link").confirm([5])
    async with opened(tmp_path) as registry:
        assert registry.memories.find("link").accepted == [LAST]
        registry.memories.remove("link")
    async with opened(tmp_path) as registry:
        assert (len(registry.memories), registry.memories.find("link").accepted) == (0, [])


async def test_messages_that_came_together_are_remembered_until_the_last_of_them_is_confirmed(tmp_path: Path) -> None:
    async with opened(tmp_path) as registry:
        memory = registry.memories.find("link")
        for tags in ([1, 3], [LAST]):
            publish(registry)
            memory.begin(dict.fromkeys(tags))
            await stored(registry)
            memory.accept(tags)
        memory.confirm([1, LAST])
    async with opened(tmp_path) as registry:
        memory = registry.memories.find("link")
        assert memory.accepted == [1, 3]  # the first one is confirmed once more
        memory.confirm([1, 3])
        publish(registry)
        memory.begin({7: None})  # has the number of a record that is gone
        memory.accept([7])
    async with opened(tmp_path) as registry:
        assert registry.memories.find("link").accepted == [7]


async def test_a_memory_that_is_damaged_is_named(tmp_path: Path) -> None:
    async with opened(tmp_path) as registry:
        memory = registry.memories.find("link")
        publish(registry)
        memory.begin({1: None})
    with closing(sqlite3.connect(tmp_path / DATABASE)) as connection, connection:
        connection.execute("UPDATE acceptance SET tags = 'text'")
    with pytest.raises(StoreDamaged, match=r"acceptances 1 of link .* cannot be read: no numbers of eight bytes"):
        Persistence(tmp_path, NodeRegistry())


async def test_what_is_confirmed_is_forgotten_without_other_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "FORGET_WITHIN", 0.0)
    async with opened(tmp_path) as registry:
        memory = registry.memories.find("link")
        publish(registry)
        memory.begin({1: None})
        memory.accept([1])
        await stored(registry)
        memory.confirm([1])
        await asyncio.sleep(0)  # the timer is due
        await until(lambda: not registry.recorder or not registry.recorder.close_unit(None), lambda: "")
    async with opened(tmp_path) as registry:
        assert registry.memories.find("link").accepted == []


async def test_ids_of_messages_are_not_used_again(tmp_path: Path) -> None:
    records = []
    for _ in range(3):
        async with opened(tmp_path) as registry:
            queue = publish(registry)
            (entry,) = queue.contents.waiting()
            records.append(entry.record)
            assert registry.recorder is not None
            assert entry.record is not None
            assert not registry.recorder.is_stored(entry.record)
            await stored(registry)
            assert registry.recorder.is_stored(entry.record)
            queue.contents.remove(entry)
    assert len(set(records)) == 3


async def test_who_waits_for_the_disk_is_called_once(tmp_path: Path) -> None:
    calls: list[str] = []
    async with opened(tmp_path) as registry:
        assert registry.recorder is not None
        publish(registry)
        registry.recorder.when_stored(lambda: calls.append("stored"))
        await stored(registry)
        publish(registry)
        await stored(registry)
    assert calls == ["stored"]
