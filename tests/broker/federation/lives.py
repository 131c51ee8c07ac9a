"""Brokers as processes that are killed and begin again, for tests."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import AsyncIterator
from pathlib import Path

from broker.management.managed import knows_agent
from support.processes import Process, command
from support.waiting import WAIT_LIMIT

from qmf.console.aio import Client
from qmf.messaging import aio
from qmf.messaging.exceptions import Empty
from qmf.messaging.message import Message
from qmf.models.broker import console as remote


class Life:
    """A broker with a data folder, which gets the same port in each of its lives."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = 0
        self._process: Process | None = None
        self.url = ""

    def start(self) -> None:
        """Begin a life."""
        self._process = process = Process(
            command("qmf-broker"), "--port", str(self._port), "--data-dir", str(self._folder)
        )
        self.url = process.wait_for("Listening on").split()[-1]
        self._port = int(self.url.rpartition(":")[2])

    def kill(self) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is not None:
            process.end(signal.SIGKILL)


@contextlib.asynccontextmanager
async def administrated(life: Life) -> AsyncIterator[remote.Broker]:
    async with Client(life.url, settle=0.0) as client:
        await knows_agent(client)
        (found,) = await client.objects(remote.Broker)
        yield found


async def send_all(life: Life, address: str, numbers: range) -> None:
    """Send durable messages, and wait until they are accepted; once each, since their broker is not killed."""
    async with aio.Connection(life.url) as connection:
        sender = await (await connection.session()).sender(address)
        for number in numbers:
            await sender.send(Message(str(number), durable=True), sync=False)
        await sender.sync(timeout=WAIT_LIMIT)


async def take_all(life: Life, queue: str, wanted: set[str]) -> list[str]:
    """Take messages until all that are wanted have come, and what else is there then."""
    found: list[str] = []
    missing = set(wanted)
    async with aio.Connection(life.url) as connection:
        session = await connection.session()
        receiver = await session.receiver(queue, capacity=100)
        while missing:
            found.append(str((await receiver.fetch(timeout=2 * WAIT_LIMIT)).content))
            missing.discard(found[-1])
            await session.acknowledge()
        with contextlib.suppress(Empty):  # what is behind the last one came twice
            while True:
                found.append(str((await receiver.fetch(timeout=0)).content))
                await session.acknowledge()
    return found
