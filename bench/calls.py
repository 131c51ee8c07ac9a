"""Calling a method: the time of one call after the other, and calls a second with 64 in flight.

Peers, where the environment names them (see processes.py): a libqmf2 console calling a libqmf2 agent over a qpidd, and
our console calling the same agent. Both take turns in short rounds, so that both have the same neighbours; figures are
medians of the rounds.

    python bench/calls.py [--json FILE] [--calls N] [--rounds N]
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import sys
import time
from collections.abc import Iterator

import attrs
from figures import Figure, note, parser, report
from processes import Program, has_libqmf2, libqmf2_agent, libqmf2_console, own_agent, own_broker, qpidd

from qmf import _event_loop
from qmf.console.aio import Client
from qmf.console.aio.objects.remote_object import RemoteObject

IN_FLIGHT = 64
#: Wanted beside libqmf2's console, with the same agent: the time of one call, and the rate of many.
TIME, RATE = 1.25, 1.0


@attrs.frozen
class Round:
    """What one round has measured.

    Attributes:
        half, most: median and 99th percentile of one call after the other, in µs.
        rate: calls a second of many in flight.
        cpu: processor time of the console for one of these, in µs.
    """

    half: float
    most: float
    rate: float
    cpu: float


async def own_round(target: RemoteObject, count: int) -> Round:
    """Our console's, in this process."""
    times = []
    for number in range(count):
        begin = time.perf_counter()
        result = await target.call("echo", number, "hello")
        times.append((time.perf_counter() - begin) * 1e6)
        if result["sequence"] != number:
            sys.exit("a call got the answer of another one")
    numbers = iter(range(count * 2))

    async def caller() -> None:
        for number in numbers:
            if (await target.call("echo", number, "hello"))["sequence"] != number:
                sys.exit("a call got the answer of another one")

    begin, used = time.perf_counter(), time.process_time()
    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(caller())
    rate = count * 2 / (time.perf_counter() - begin)
    cpu = (time.process_time() - used) / (count * 2) * 1e6
    return Round(statistics.median(times), statistics.quantiles(times, n=100)[98], rate, cpu)


def libqmf2_round(console: Program, count: int) -> Round:
    """The same of libqmf2's console."""
    half, most = map(float, console.ask(f"calls {count}").split())
    used = console.cpu()
    rate = count * 2 / float(console.ask(f"flight {count * 2}"))
    return Round(half, most, rate, (console.cpu() - used) / (count * 2) * 1e6)


async def measure(
    url: str, agent: str, count: int, rounds: int, console: Program | None = None
) -> tuple[Round, Round | None]:
    """Medians of our rounds, and of those of libqmf2's console where there is one."""
    ours: list[Round] = []
    theirs: list[Round] = []
    async with Client(url, events=False, data=False) as client:
        name = next(item.name for item in await client.locate() if item.name.endswith(f":{agent}"))
        (target,) = await client.objects("broker", package="org.apache.qpid.broker", agent=name)
        await own_round(target, count // 5)
        if console is not None:
            libqmf2_round(console, count // 5)
        for _ in range(rounds):
            ours.append(await own_round(target, count))
            if console is not None:
                theirs.append(libqmf2_round(console, count))
    return medians(ours), medians(theirs) if theirs else None


def medians(rounds: list[Round]) -> Round:
    """The median of each figure."""
    return Round(*(statistics.median(values) for values in zip(*map(attrs.astuple, rounds), strict=True)))


def figures_of(who: str, ours: Round, theirs: Round | None = None) -> Iterator[Figure]:
    """The figures of calls to one agent."""
    peer = "" if theirs is None else "libqmf2 console"
    half, most, rate, cpu = (None,) * 4 if theirs is None else attrs.astuple(theirs)
    yield Figure(f"call, {who}: median", ours.half, "µs", peer, half, at_most=TIME)
    yield Figure(f"call, {who}: 99 %", ours.most, "µs", peer, most)
    yield Figure(f"calls, {who}, {IN_FLIGHT} in flight", ours.rate, "calls/s", peer, rate, at_least=RATE)
    yield Figure(f"calls, {who}, {IN_FLIGHT} in flight: console's processor time", ours.cpu, "µs", peer, cpu)


def main() -> None:
    """Measure and report."""
    options = parser("Method calls.")
    options.add_argument("--calls", type=int, default=1000, metavar="N", help="calls a round (default: %(default)s)")
    options.add_argument("--rounds", type=int, default=7, metavar="N", help="rounds (default: %(default)s)")
    arguments = options.parse_args()
    count, rounds = arguments.calls, arguments.rounds
    note("calls to our agent")
    with own_broker() as (url, _), own_agent(url, 0):
        figures = [*figures_of("our agent", _event_loop.run(measure(url, "bench", count, rounds))[0])]
    url_or_none = qpidd()
    if url_or_none is not None and has_libqmf2():
        note("calls of libqmf2's console and ours to a libqmf2 agent, over qpidd")
        with libqmf2_agent(0, "cpp"), libqmf2_console("cpp") as console:
            ours, theirs = _event_loop.run(measure(url_or_none, "cpp", count, rounds, console))
        figures += figures_of("libqmf2 agent", ours, theirs)
    report(figures, arguments.json)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
