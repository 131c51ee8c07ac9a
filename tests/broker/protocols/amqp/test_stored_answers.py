"""A link is granted when the disk has what was created for it."""

from __future__ import annotations

import asyncio
import os
import random
import signal
from pathlib import Path

import pytest
from support.processes import Process, command
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.nodes.recorder import NotStored, OnStored
from qmf.broker.store.errors import StoreError
from qmf.broker.store.journal import Journal
from qmf.messaging import aio
from qmf.messaging.exceptions import MessagingError

DURABLE = "{create: always, node: {type: queue, durable: True}}"
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


async def create_until_killed(process: Process, url: str, life: int, count: int) -> list[str]:
    """Create durable queues, many at a time, until the broker is killed after so many answers; those answered."""
    answered: list[str] = []

    async with aio.Connection(url, reconnect=False) as connection:
        session = await connection.session()

        async def create(name: str) -> None:
            await session.sender(f"{name}; {DURABLE}")
            answered.append(name)
            if len(answered) == count:
                process.popen.send_signal(signal.SIGKILL)

        tasks = [asyncio.ensure_future(create(f"q-{life}-{number}")) for number in range(100)]
        await asyncio.gather(*tasks, return_exceptions=True)
    return answered


def kill(folder: Path, kills: int, seed: int) -> None:
    chance = random.Random(seed)
    answered: list[str] = []
    for life in range(kills + 1):
        process = Process(command("qmf-broker"), "--port", "0", "--data-dir", str(folder), "--no-management")
        try:
            url = process.wait_for("Listening on").split()[-1]
            asyncio.run(find_all(url, answered))
            if life < kills:
                answered = asyncio.run(create_until_killed(process, url, life, chance.randrange(1, 90)))
                assert answered
        finally:
            process.end(signal.SIGKILL)


async def find_all(url: str, names: list[str]) -> None:
    async with aio.Connection(url) as connection:
        session = await connection.session()
        for name in names:
            await session.sender(f"{name}; {{node: {{type: queue}}}}")


@pytest.mark.slow
def test_a_queue_that_was_answered_outlives_a_kill(tmp_path: Path) -> None:
    kill(tmp_path, 2, 1)


@pytest.mark.slow
@pytest.mark.soak
def test_queues_outlive_many_kills(tmp_path: Path) -> None:
    kill(tmp_path, KILLS, random.randrange(2**32))
