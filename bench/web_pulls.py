"""Messages pulled a second over HTTP from `qmf-web`, beside RabbitMQ's management interface.

    python bench/web_pulls.py [--rounds N] [--messages N] [--clients N] [--json FILE]

Each client pulls one message after the other on a connection of its own, with the same code for both servers: by
auto-acknowledge from the embedded broker, and with RabbitMQ's `get` of one message that is acknowledged. RabbitMQ joins
if it is in the cache of scripts/brokers.py; then `qmf-web` is measured on it as well.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import contextlib
import json
import statistics
import sys
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from figures import Figure, report
from processes import Program

from qmf.messaging import Message
from qmf.messaging.aio import Connection
from scripts.brokers import CACHE, free_port, rabbitmq

_HERE = Path(__file__).resolve().parent
BODY = b"x" * 100
_GET = json.dumps({"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}).encode()
_GUEST = "Basic " + base64.b64encode(b"guest:guest").decode()


class Http:
    """One connection that stays open; as little as these servers need, so that they are measured and not the client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader = reader
        self._writer = writer
        self._host = host

    @classmethod
    @contextlib.asynccontextmanager
    async def open(cls, url: str) -> AsyncIterator[Http]:
        """A connection to the server of a URL, until the end of the block."""
        parts = urlsplit(url)
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        try:
            yield cls(reader, writer, parts.netloc)
        finally:
            writer.close()
            await writer.wait_closed()

    async def post(self, path: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], bytes]:
        """Post; the status, the headers by name in lower case, and the body."""
        more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        head = f"POST {path} HTTP/1.1\r\nHost: {self._host}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
        self._writer.write(head.encode() + body)
        first, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        found = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines if line)}
        return int(first.split()[1]), found, await self._reader.readexactly(int(found.get("content-length", "0")))


Pull = Callable[[Http, str], Awaitable[int]]


async def pull_from_qmf_web(http: Http, queue: str) -> int:
    """Pull until the queue is empty; the number of messages."""
    _, headers, _ = await http.post(f"/queues/{queue}/pull-consumers")
    count = 0
    while True:
        status, headers, body = await http.post(urlsplit(headers["msg-consume-next"]).path)
        if status == 503:
            break
        assert (status, body) == (200, BODY)
        count += 1
    return count


async def pull_from_rabbitmq(http: Http, queue: str) -> int:
    """The same with RabbitMQ's management interface."""
    count = 0
    while True:
        status, _, body = await http.post(
            f"/api/queues/%2F/{queue}/get", _GET, Authorization=_GUEST, Content_Type="application/json"
        )
        messages = json.loads(body)
        if not messages:
            return count
        assert (status, messages[0]["payload"].encode()) == (200, BODY)
        count += 1


async def measure(broker: str, url: str, pull: Pull, messages: int, clients: int) -> float:
    """Messages a second of some clients together, from a queue that is full before."""
    queue = f"bench-{uuid.uuid4().hex[:8]}"
    async with Connection(broker) as connection:
        sender = await (await connection.session()).sender(f"{queue}; {{create: always, node: {{type: queue}}}}")
        for _ in range(messages):
            await sender.send(Message(BODY), sync=False)
        await sender.sync(60)
    async with contextlib.AsyncExitStack() as stack:
        connections = [await stack.enter_async_context(Http.open(url)) for _ in range(clients)]
        begin = time.perf_counter()
        counts = await asyncio.gather(*(pull(http, queue) for http in connections))
        taken = time.perf_counter() - begin
    assert sum(counts) == messages, (sum(counts), messages)
    return messages / taken


@contextlib.contextmanager
def started(*command: str) -> Iterator[str]:
    """A program of this folder; the first line that it prints, an address."""
    program = Program([sys.executable, str(_HERE / command[0]), *command[1:]])
    try:
        yield program.line()
    finally:
        program.end()


def main() -> None:
    """Measure and report."""
    options = argparse.ArgumentParser(description="Pulling messages over HTTP.")
    options.add_argument("--rounds", type=int, default=3, help="measurements of each; the median counts")
    options.add_argument("--messages", type=int, default=5000, help="in the queue")
    options.add_argument("--clients", type=int, default=8, help="that pull at the same time")
    options.add_argument("--json", type=Path)
    arguments = options.parse_args()
    with contextlib.ExitStack() as stack:
        broker = stack.enter_context(started("broker_process.py"))
        targets: dict[str, tuple[str, str, Pull]] = {
            "embedded": (broker, stack.enter_context(started("web_process.py", broker)), pull_from_qmf_web)
        }
        if (CACHE / "rabbitmq").exists():
            folder, port = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="qmf-bench-"))), free_port()
            peer = stack.enter_context(rabbitmq(folder, port))
            targets["on RabbitMQ"] = (peer, stack.enter_context(started("web_process.py", peer)), pull_from_qmf_web)
            targets["peer"] = (peer, f"http://127.0.0.1:{port}", pull_from_rabbitmq)
        rates: dict[str, list[float]] = {name: [] for name in targets}
        for _ in range(arguments.rounds):
            for name, target in targets.items():
                rates[name].append(asyncio.run(measure(*target, arguments.messages, arguments.clients)))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    other = medians.pop("peer", None)
    beside = "" if other is None else "RabbitMQ's management over HTTP"
    title = f"messages pulled over HTTP, {arguments.clients} clients"
    report([Figure(f"{title}, {name}", value, "/s", beside, other) for name, value in medians.items()], arguments.json)


if __name__ == "__main__":
    main()
