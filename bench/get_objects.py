"""Getting all queues of a broker: objects a second, cost per object as their number grows, processor time, memory.

Agent, broker and console are three processes; the console is this one. Each round checks how many objects came and that
values are what the agent set. "read" is the same with each of the 54 values of each object read.

Peers, where the environment names them (see processes.py): a libqmf2 console with a libqmf2 agent over a qpidd, and our
console with the same agent and with the qpidd itself.

    python bench/get_objects.py [--json FILE] [--objects N...] [--rounds N]
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import sys
import time
from collections.abc import Sequence

import psutil
from figures import Figure, note, parser, report
from processes import Program, has_libqmf2, libqmf2_agent, libqmf2_console, own_agent, own_broker, qpidd

from qmf.console.aio import Client, RemoteObject

PACKAGE = "org.apache.qpid.broker"
#: What libqmf2's console reaches at least, times this, is wanted: from our agent, and from foreign ones.
OWN, FOREIGN = 10.0, 1.5


async def rounds(url: str, agent: str, count: int, repeat: int, *, read: bool) -> tuple[float, float]:
    """What it takes to get all queues: the median of the seconds, and seconds of this process's processor time."""
    times, used = [], []
    async with Client(url, events=False, data=False) as client:
        name = next(item.name for item in await client.locate() if item.name.endswith(f":{agent}"))
        for _ in range(repeat + 1):
            begin, before = time.perf_counter(), time.process_time()
            found = await client.objects("queue", package=PACKAGE, agent=name, timeout=120)
            if read:
                read_all(found)
            times.append(time.perf_counter() - begin)
            used.append(time.process_time() - before)
            check(found, count)
            del found
    return statistics.median(times[1:]), statistics.median(used[1:])  # the first one learns the schema


def read_all(found: Sequence[RemoteObject]) -> None:
    """Read every value."""
    for obj in found:
        if len(obj.properties) + len(obj.statistics) < 50:
            sys.exit(f"{obj} lacks values")


def check(found: Sequence[RemoteObject], count: int) -> None:
    """End the program unless the objects are those that the agent has."""
    if len(found) != count or len({obj.object_id for obj in found}) != count:
        sys.exit(f"{len(found)} objects came, not {count}")
    for obj in (found[0], found[count // 2], found[-1]):
        number = int(obj.name.removeprefix("queue-"))
        if obj.msgTotalEnqueues != number or obj.consumerCount != number:
            sys.exit(f"{obj} has wrong values")


def libqmf2_seconds(count: int, repeat: int) -> float:
    """The same between libqmf2's programs."""
    with libqmf2_agent(count, "cpp"), libqmf2_console("cpp") as console:
        times = []
        for _ in range(repeat + 1):
            came, seconds = console.ask("objects 1").split()
            if int(came) != count:
                sys.exit(f"{came} objects came to the console of libqmf2, not {count}")
            times.append(float(seconds))
    return statistics.median(times[1:])


def own(count: int, repeat: int) -> tuple[list[Figure], float]:
    """Our agent, our broker, our console. Gives objects a second, too."""
    me = psutil.Process()
    with own_broker() as (url, broker), own_agent(url, count) as agent:
        asyncio.run(rounds(url, "bench", count, 1, read=False))  # warm up
        parts: list[Program] = [broker, agent]
        before = [part.cpu() for part in parts]
        seconds, mine = asyncio.run(rounds(url, "bench", count, repeat, read=False))
        got = (repeat + 1) * count
        used = [part.cpu() - start for part, start in zip(parts, before, strict=True)]
        read, _ = asyncio.run(rounds(url, "bench", count, repeat, read=True))
        figures = [
            Figure(f"get {count:,} objects, our agent", count / seconds, "objects/s"),
            Figure(f"get {count:,} objects, our agent, all values read", count / read, "objects/s"),
            Figure(f"  processor time, {count:,}: broker", used[0] / got * 1e6, "µs/object"),
            Figure(f"  processor time, {count:,}: agent", used[1] / got * 1e6, "µs/object"),
            Figure(f"  processor time, {count:,}: console", mine / count * 1e6, "µs/object"),
            Figure(f"  memory, {count:,}: agent", agent.memory(), "MB"),
            Figure(f"  memory, {count:,}: console", me.memory_info().rss / 1e6, "MB"),
        ]
    return figures, count / seconds


def main() -> None:
    """Measure and report."""
    options = parser("Get objects of the queue class.")
    options.add_argument("--objects", type=int, nargs="+", default=[100, 1_000, 10_000], metavar="N")
    options.add_argument("--rounds", type=int, default=7, metavar="N", help="rounds (default: %(default)s)")
    arguments = options.parse_args()
    most = max(arguments.objects)
    figures: list[Figure] = []
    rates: dict[int, float] = {}
    for count in sorted(arguments.objects):
        note(f"getting {count:,} objects from our agent")
        more, rates[count] = own(count, arguments.rounds)
        figures += more
    least = min(arguments.objects)
    if least != most:
        growth = Figure(
            f"cost per object, {most:,} beside {least:,}",
            1e6 / rates[most],
            "µs",
            f"{least:,} objects",
            1e6 / rates[least],
            at_most=1.1,
        )
        figures.append(growth)
    url = qpidd()
    if url is not None and has_libqmf2():
        note("the same between libqmf2's agent and console, over qpidd")
        peer = most / libqmf2_seconds(most, arguments.rounds)
        name = "libqmf2 console and agent"
        figures[-1:] = [figures[-1], Figure(f"{name}, {most:,} objects", peer, "objects/s")]
        own_rate = Figure(f"our console and agent, {most:,}", rates[most], "objects/s", name, peer, at_least=OWN)
        note("our console with libqmf2's agent")
        with libqmf2_agent(most, "cpp2"):
            foreign = most / asyncio.run(rounds(url, "cpp2", most, arguments.rounds, read=False))[0]
            all_read = most / asyncio.run(rounds(url, "cpp2", most, arguments.rounds, read=True))[0]
        note("our console and agent over qpidd")
        with own_agent(url, most, "ours"):
            over = most / asyncio.run(rounds(url, "ours", most, arguments.rounds, read=False))[0]
        figures += [
            own_rate,
            Figure(f"our console, libqmf2 agent, {most:,}", foreign, "objects/s", name, peer, at_least=FOREIGN),
            Figure("  all values read", all_read, "objects/s", name, peer),
            Figure(f"our console and agent over qpidd, {most:,}", over, "objects/s", name, peer),
        ]
    report(figures, arguments.json)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
