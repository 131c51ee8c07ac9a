"""Events a second, from an agent to a console that looks at an argument of each; and objects whose statistics changed.

Agent, broker and console are three processes; the console is this one. The rate counts from the first event that came
to the last, and the program ends when one is missing.

Peers, where the environment names them (see processes.py): a libqmf2 console with a libqmf2 agent over a qpidd, and our
console with the same agent.

    python bench/events_rate.py [--json FILE] [--events N] [--objects N] [--rounds N]
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import sys
import time

from figures import Figure, note, parser, report
from processes import Program, has_libqmf2, libqmf2_agent, libqmf2_console, own_agent, own_broker, qpidd

from qmf.console.aio import Client, EventRaised, Notification, ObjectUpdated

#: The rate of libqmf2, times this, is wanted: from our agent, and from one of libqmf2.
OWN, FOREIGN = 5.0, 1.0


class Counter:
    """Counts notifications, and notes when the first and the last one came.

    Looks at one argument of each event, as the console of libqmf2 does (peers/console.cpp).
    """

    def __init__(self, count: int) -> None:
        self._left = self._count = count
        self._first = self._last = 0.0
        self._done = asyncio.Event()
        #: What the argument of the next events has to be.
        self._names = map("queue-{}".format, range(count))
        self.begin = 0.0

    def take(self, item: Notification) -> None:
        """Look at a notification."""
        if isinstance(item, EventRaised):
            name = item.event.arguments["qName"]
            if name != (expected := next(self._names)):
                sys.exit(f"event {name} came instead of {expected}")
        elif not (isinstance(item, ObjectUpdated) and item.object.msgTotalEnqueues):
            return
        if self._left == self._count:
            self._first = time.perf_counter()
        self._left -= 1
        if self._left == 0:
            self._last = time.perf_counter()
            self._done.set()

    async def rate(self, *, whole: bool) -> float:
        """Notifications a second: between the first and the last one, or from `begin` to the last one."""
        await asyncio.wait_for(self._done.wait(), 120)
        return self._count / (self._last - (self.begin if whole else self._first))


async def measure(url: str, agent: Program, order: str, count: int, rounds: int) -> float:
    """Median of the rates of what an agent does on an order."""
    rates = []
    async with Client(url, events=order == "events", data=order == "change") as client:
        await client.locate()
        if order == "change":
            await client.objects("queue", package="org.apache.qpid.broker", timeout=120)
        for _ in range(rounds + 1):
            counter = Counter(count)
            stop = client.listen(counter.take)
            counter.begin = time.perf_counter()
            agent.tell(f"{order} {count}")
            # An agent sends changes at its own pace once it is told to: that is part of it.
            rates.append(await counter.rate(whole=order == "change"))
            stop()
            if await asyncio.to_thread(agent.line) != "done":
                sys.exit("the agent failed")
    return statistics.median(rates[1:])  # the first one learns the schema


def libqmf2_rate(count: int, rounds: int) -> float:
    """The same between libqmf2's programs."""
    rates = []
    with libqmf2_agent(0, "cpp") as agent, libqmf2_console("cpp") as console:
        for _ in range(rounds + 1):
            if console.ask(f"events {count}") != "waiting":
                sys.exit("the console of libqmf2 failed")
            agent.tell(f"events {count}")
            rates.append(count / float(console.line()))
            agent.line()
    return statistics.median(rates[1:])


def main() -> None:
    """Measure and report."""
    options = parser("Rates of events and of changed objects.")
    options.add_argument("--events", type=int, default=50_000, metavar="N", help="events (default: %(default)s)")
    options.add_argument("--objects", type=int, default=10_000, metavar="N", help="objects (default: %(default)s)")
    options.add_argument("--rounds", type=int, default=5, metavar="N", help="rounds (default: %(default)s)")
    arguments = options.parse_args()
    note("events and changes of our agent")
    with own_broker() as (url, _), own_agent(url, arguments.objects) as agent:
        events = asyncio.run(measure(url, agent, "events", arguments.events, arguments.rounds))
        changes = asyncio.run(measure(url, agent, "change", arguments.objects, arguments.rounds))
    figures = [
        Figure("events, our agent and console", events, "events/s"),
        Figure("changed statistics, our agent and console", changes, "objects/s"),
    ]
    url_or_none = qpidd()
    if url_or_none is not None and has_libqmf2():
        note("events between libqmf2's agent and console, over qpidd")
        peer, name = libqmf2_rate(arguments.events, arguments.rounds), "libqmf2 console and agent"
        note("events of libqmf2's agent to our console")
        with libqmf2_agent(0, "cpp") as agent:
            foreign = asyncio.run(measure(url_or_none, agent, "events", arguments.events, arguments.rounds))
        figures[:1] = [
            Figure("events, our agent and console", events, "events/s", name, peer, at_least=OWN),
            Figure("events, libqmf2 agent, our console", foreign, "events/s", name, peer, at_least=FOREIGN),
        ]
    report(figures, arguments.json)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
