"""A full disk: new messages are refused, and what is acknowledged is written from a reserve."""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker.visible_broker import VisibleBroker

from qmf.broker.store import store as store_module
from qmf.broker.store.database import open_database
from qmf.broker.store.reserve import Reserve
from qmf.messaging import Message
from qmf.messaging.aio import Connection, Session
from qmf.messaging.exceptions import MessagingError

QUEUE = "q; {create: always, node: {durable: True, x-declare: {arguments: {'qpid.max_size': 0}}}}"
MIB = 1024 * 1024


def test_a_reserve_takes_space_and_gives_it_back(tmp_path: Path) -> None:
    file = tmp_path / "reserve"
    reserve = Reserve(file, 3 * MIB)
    assert (reserve.take(), reserve.take(), reserve.held, file.stat().st_size) == (True, True, True, 3 * MIB)
    assert reserve.release()
    assert (reserve.held, file.stat().st_size) == (False, 0)
    file.unlink()
    assert not reserve.release()
    assert not Reserve(tmp_path / "missing" / "reserve").take()


@contextlib.contextmanager
def small_disk(path: Path, size: int) -> Iterator[Path]:
    """A file system in memory; skipped where this user may not mount one."""
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(path)], capture_output=True, check=False
    )
    if made.returncode:
        pytest.skip(f"no file system can be mounted here: {made.stderr.decode().strip()}")
    try:
        yield path
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def fill(path: Path) -> None:
    """Leave no room on the disk."""
    with contextlib.suppress(OSError), path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(64 * 1024))
    with contextlib.suppress(OSError), path.open("ab", buffering=0) as file:
        while True:
            file.write(bytes(512))


async def refused(session: Session, text: str) -> bool:
    """Send a message; True if the broker refuses it."""
    sender = await session.sender("q")
    try:
        await sender.send(Message(text, durable=True))
    except MessagingError as error:
        if "the disk is full" not in str(error):
            raise
        return True
    finally:
        await sender.close()
    return False


@pytest.mark.slow
async def test_acknowledgements_are_stored_on_a_full_disk_and_new_messages_refused(tmp_path: Path) -> None:
    with small_disk(tmp_path, 56 * MIB) as disk:
        (disk / "first").write_bytes(bytes(16 * MIB))
        async with VisibleBroker(port=0, data_dir=disk / "data") as broker:
            connection = await Connection.establish(broker.url, timeout=30)
            session = await connection.session()
            await session.sender(QUEUE)
            sent = 0
            while not await refused(session, "x" * 300_000):
                sent += 1
                assert sent < 200, "the disk was never full"
            fill(disk / "other")
            receiver = await session.receiver("q", capacity=10)
            for _ in range(10):
                await receiver.fetch(timeout=30)
                await session.acknowledge()
            assert await refused(session, "y" * 300_000)
            for name in ("first", "other"):
                (disk / name).unlink()
            for _ in range(100):
                if not await refused(session, "last"):
                    break
            else:
                pytest.fail("there is room again, and the broker does not notice")
            await connection.close()
        async with VisibleBroker(port=0, data_dir=disk / "data") as broker:
            (queue,) = broker.registry.queues
            assert queue.contents.depth.count == sent - 10 + 1


@pytest.mark.slow
async def test_a_broker_starts_on_a_full_disk_and_stores_what_is_acknowledged(tmp_path: Path) -> None:
    with small_disk(tmp_path, 40 * MIB) as disk:
        async with VisibleBroker(port=0, data_dir=disk / "data") as broker:
            connection = await Connection.establish(broker.url, timeout=30)
            sender = await (await connection.session()).sender(QUEUE)
            for _ in range(20):
                await sender.send(Message("x" * 100_000, durable=True))
            await connection.close()
        fill(disk / "other")
        async with VisibleBroker(port=0, data_dir=disk / "data") as broker:
            connection = await Connection.establish(broker.url, timeout=30)
            session = await connection.session()
            receiver = await session.receiver("q", capacity=10)
            for _ in range(10):
                await receiver.fetch(timeout=30)
                await session.acknowledge()
            await connection.close()
        async with VisibleBroker(port=0, data_dir=disk / "data") as broker:
            (queue,) = broker.registry.queues
            assert queue.contents.depth.count == 10


async def test_a_transaction_that_only_acknowledges_is_committed_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[sqlite3.Connection] = []

    def limited(path: Path) -> sqlite3.Connection:
        opened.append(open_database(path))
        return opened[-1]

    monkeypatch.setattr(store_module, "open_database", limited)
    async with VisibleBroker(port=0, data_dir=tmp_path) as broker:
        connection = await Connection.establish(broker.url, timeout=30)
        session = await connection.session(transactional=True)
        sender = await session.sender(QUEUE)
        for text in "abc":
            await sender.send(Message(text, durable=True))
        await session.commit()
        opened[-1].execute("PRAGMA max_page_count = 1")  # not below what there is
        await sender.send(Message("x" * 300_000, durable=True))
        with pytest.raises(MessagingError, match="the disk is full"):
            await session.commit()
        receiver = await session.receiver("q")
        assert (await receiver.fetch(timeout=30)).content == "a"
        await session.acknowledge()
        await session.commit()
        await connection.close()
    async with VisibleBroker(port=0, data_dir=tmp_path) as broker:
        (queue,) = broker.registry.queues
        assert queue.contents.depth.count == 2
