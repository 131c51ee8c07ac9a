"""For benchmarks: many consoles of ours in one process, each on a connection of its own, beside `queue_agent.py`.

    python bench/scale_consoles.py URL COUNT

Prints "ready", then does what lines on standard input name: "follow N" follows N queues in each console, "changes N"
waits until each has received N changes, "events N" waits for N events in each, "calls N" calls a method N times from
each. The last three print "waiting" first, and all print "done" and the seconds that passed. "count 0" begins to count
events, and prints "counting". "counted 0" prints how many came, how many did not, the least sum of both of a console,
and the milliseconds within which half, and 99 of 100, came of those whose delays were looked at. Ends with its input.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import sys
import time
from collections.abc import Callable

from qmf.console.aio import Client, EventRaised, Follow, Missed, Notification, RemoteObject

PACKAGE = "org.apache.qpid.broker"
#: Seconds between the publications of a subscription.
INTERVAL = 1.0
#: How many consoles open at the same time.
AT_ONCE = 20
#: Of so many events, one is looked at for its delay.
LOOKED_AT = 64


class Count:
    """Counts the events of a console, those that did not arrive, and the delays of some, in seconds.

    Looks at one argument of each event, as a program does.
    """

    def __init__(self, delays: list[float]) -> None:
        self.came = self.missed = 0
        self._delays = delays

    def take(self, item: Notification) -> None:
        """Count a notification."""
        if isinstance(item, EventRaised):
            if not item.event.arguments["qName"]:
                sys.exit("an event without name of the queue")
            self.came += 1
            if self.came % LOOKED_AT == 0:
                self._delays.append((time.time_ns() - item.event.timestamp) / 1e9)
        elif isinstance(item, Missed):
            self.missed += item.events or 0


class Party:
    """The consoles, and what they follow."""

    def __init__(self, clients: list[Client]) -> None:
        self._clients = clients
        self._followed: list[Follow[RemoteObject]] = []
        self._counts: list[Count] = []
        self._delays: list[float] = []
        self._stops: list[Callable[[], None]] = []

    def count(self) -> str:
        """Begin to count events."""
        for stop in self._stops:
            stop()
        self._delays = []
        self._counts = [Count(self._delays) for _ in self._clients]
        self._stops = [client.listen(count.take) for client, count in zip(self._clients, self._counts, strict=True)]
        return "counting"

    def counted(self) -> str:
        """What was counted since `count`."""
        came, missed = sum(one.came for one in self._counts), sum(one.missed for one in self._counts)
        least = min(one.came + one.missed for one in self._counts)
        delays = statistics.quantiles(self._delays, n=100) if len(self._delays) > 1 else [0.0] * 99
        return f"{came} {missed} {least} {delays[49] * 1e3:.2f} {delays[98] * 1e3:.2f}"

    async def follow(self, count: int) -> None:
        """Follow all queues in each console until it has so many."""
        self._followed = [client.follow("queue", package=PACKAGE, interval=INTERVAL) for client in self._clients]
        await self.changes(count)

    async def changes(self, count: int) -> None:
        """Take so many changes in each console."""

        async def take(followed: Follow[RemoteObject]) -> None:
            for _ in range(count):
                await anext(followed)

        await asyncio.gather(*map(take, self._followed))

    async def events(self, count: int) -> None:
        """Take so many events in each console, in the order in which they were raised."""

        async def take(client: Client) -> None:
            came, complete = 0, asyncio.Event()

            def look(item: Notification) -> None:
                nonlocal came
                if isinstance(item, EventRaised):
                    if item.event.arguments["qName"] != f"queue-{came}":
                        sys.exit(f"event {item.event.arguments['qName']} came as number {came}")
                    came += 1
                    if came == count:
                        complete.set()

            stop = client.listen(look)
            await complete.wait()
            stop()

        await asyncio.gather(*map(take, self._clients))

    async def calls(self, count: int) -> None:
        """Call a method so many times from each console, one call after the other."""

        async def call(client: Client) -> None:
            (target,) = await client.objects("broker", package=PACKAGE)
            for number in range(count):
                if (await target.call("echo", number, "hello"))["sequence"] != number:
                    sys.exit("a call got the answer of another one")

        await asyncio.gather(*map(call, self._clients))


async def serve(url: str, count: int) -> None:
    """Run the consoles until the input ends."""
    loop = asyncio.get_running_loop()
    async with contextlib.AsyncExitStack() as stack:
        clients = [Client(url, data=False) for _ in range(count)]
        for at in range(0, count, AT_ONCE):
            await asyncio.gather(*map(stack.enter_async_context, clients[at : at + AT_ONCE]))
        party = Party(clients)
        actions = {"follow": party.follow, "changes": party.changes, "events": party.events, "calls": party.calls}
        answers = {"count": party.count, "counted": party.counted}
        print("ready", flush=True)
        while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
            word, number = line.split()
            if word in answers:
                print(answers[word](), flush=True)
                continue
            began = time.perf_counter()
            action = asyncio.create_task(actions[word](int(number)))
            if word != "follow":
                await asyncio.sleep(0)
                print("waiting", flush=True)
            await action
            print("done", time.perf_counter() - began, flush=True)


if __name__ == "__main__":
    asyncio.run(serve(sys.argv[1], int(sys.argv[2])))
