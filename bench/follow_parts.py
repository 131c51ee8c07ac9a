"""For benchmarks: an agent whose objects change, consoles that follow them, and consoles that only take messages.

    python bench/follow_parts.py agent URL OBJECTS
    python bench/follow_parts.py consoles URL COUNT
    python bench/follow_parts.py takers URL COUNT

Each says "ready". The agent changes all its objects once a second from the line "change" on. Consoles print the delays
of the changes that came since the last line "delays", in milliseconds; takers print the bytes that came since the last
line "bytes". All end with their input.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
from uuid import uuid4

from queue_agent import make_queue

from qmf.agent import Agent
from qmf.bus import AmqpBus
from qmf.bus.base import Binding, ReceivedMessage
from qmf.console.aio import Client, ObjectChange, RemoteObject
from qmf.models.broker.agent import Broker, Queue, Vhost
from qmf.protocol import (
    ROW_FORM,
    Content,
    Envelope,
    SubscribeRefresh,
    SubscribeRequest,
    SubscribeResponse,
    SubscribeShare,
    console_key,
    decode,
    direct_exchange,
    encode,
    topic_exchange,
)
from qmf.schema import ClassKey

PACKAGE, DOMAIN = "org.apache.qpid.broker", "default"
AGENT = ("example.org", "follow", "bench")
#: Seconds between changes, and between publications.
INTERVAL = 1.0
#: Seconds that a connection may take to open, and a request: the machine may be busy.
OPEN = 120.0
#: How many open at the same time.
AT_ONCE = 20
#: Bytes of a message that may be more than one of objects: answers and shared keys.
SMALL = 1000


async def line() -> str:
    """The next line of the input; empty at its end."""
    text: str = await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
    return text.strip()


async def agent(url: str, count: int) -> None:
    """An agent with so many queues, which change once a second: a counter becomes the time, in microseconds."""
    vendor, product, instance = AGENT
    made = Agent(url, vendor=vendor, product=product, instance=instance, interval=10)
    await made.start(OPEN)
    try:
        broker = Broker(name="bench")
        made.add(broker)
        vhost = Vhost(name="/", brokerRef=broker)
        made.add(vhost)
        queues = [make_queue(number, vhost) for number in range(count)]
        for queue in queues:
            made.add(queue)
        print("ready", flush=True)
        await line()
        changing = asyncio.create_task(change(queues))
        await line()
        changing.cancel()
    finally:
        await made.close()


async def change(queues: list[Queue]) -> None:
    """Change all of them once a second."""
    while True:
        for queue in queues:
            queue.msgTotalEnqueues.set(time.time_ns() // 1000)
        await asyncio.sleep(INTERVAL)


async def consoles(url: str, count: int) -> None:
    """Consoles that follow the queues."""
    delays: list[float] = []

    def look(item: ObjectChange[RemoteObject]) -> None:
        sent = item.object["msgTotalEnqueues"]
        if item.statistics and not item.properties and isinstance(sent, int):
            delays.append(time.time() * 1e3 - sent / 1e3)

    async def follow(client: Client) -> None:
        async for item in client.follow("queue", package=PACKAGE, interval=INTERVAL):
            look(item)

    async with contextlib.AsyncExitStack() as stack:
        clients = [Client(url, data=False, timeout=OPEN) for _ in range(count)]
        for client in clients:
            await client.open(OPEN)
            stack.push_async_callback(client.close)
        tasks = [asyncio.create_task(follow(client)) for client in clients]
        print("ready", flush=True)
        while await line():
            print(*(f"{delay:.0f}" for delay in delays), flush=True)
            delays.clear()
        for task in tasks:
            task.cancel()


class Taker:
    """A console that takes messages as one of ours does, and does not look at the objects in them."""

    def __init__(self, url: str) -> None:
        self.bytes = 0
        self.sharing = asyncio.Event()
        self._bus = AmqpBus(url)
        self._key = console_key(str(uuid4()))
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        """Connect and subscribe."""
        await self._bus.open(OPEN)
        await self._bus.subscribe(Binding(topic_exchange(DOMAIN), self._key), self._take)
        request = SubscribeRequest(
            class_key=ClassKey(PACKAGE, "queue"),
            interval=INTERVAL,
            lifetime=600,
            row_form=ROW_FORM,
            can_share=True,
        )
        await self._send(request, reply_to=f"{topic_exchange(DOMAIN)}/{self._key}", correlation_id="1")

    async def close(self) -> None:
        """Disconnect."""
        await self._bus.close()

    async def _send(self, content: Content, reply_to: str | None = None, correlation_id: str | None = None) -> None:
        to, subject = direct_exchange(DOMAIN), ":".join(AGENT)
        message = Envelope(content=content, to=to, subject=subject, reply_to=reply_to, correlation_id=correlation_id)
        await self._bus.send(encode(message))

    def _take(self, received: ReceivedMessage) -> None:
        self.bytes += len(received.data)
        if len(received.data) < SMALL:
            message = decode(received.data)
            if isinstance(message, Envelope) and isinstance(message.content, SubscribeShare):
                self._spawn(message.content)
            elif isinstance(message, Envelope) and not isinstance(message.content, SubscribeResponse):
                sys.exit(f"a taker received {message.content}")
        received.settle()

    def _spawn(self, content: SubscribeShare) -> None:
        if content.first_sequence:
            self.sharing.set()
            return
        task = asyncio.create_task(self._bind(content))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _bind(self, content: SubscribeShare) -> None:
        await self._bus.subscribe(Binding(topic_exchange(DOMAIN), content.shared_key), self._take)
        await self._send(SubscribeRefresh(subscription_id=content.subscription_id, bound=True))


async def takers(url: str, count: int) -> None:
    """Consoles that take messages only."""
    made = [Taker(url) for _ in range(count)]
    for at in range(0, count, AT_ONCE):
        await asyncio.gather(*(taker.open() for taker in made[at : at + AT_ONCE]))
    await asyncio.gather(*(taker.sharing.wait() for taker in made))
    print("ready", flush=True)
    while await line():
        print(sum(taker.bytes for taker in made), flush=True)
        for taker in made:
            taker.bytes = 0
    await asyncio.gather(*(taker.close() for taker in made))


if __name__ == "__main__":
    asyncio.run({"agent": agent, "consoles": consoles, "takers": takers}[sys.argv[1]](sys.argv[2], int(sys.argv[3])))
