"""Calling a method: the time of one call after the other, and calls a second with 64 in flight.

Peers, where the environment names them (see processes.py): a libqmf2 console calling a libqmf2 agent over a qpidd, and
our console calling the same agent.

    python bench/calls.py [--json FILE] [--calls N]
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import sys
import time

from figures import Figure, note, parser, report
from processes import has_libqmf2, libqmf2_agent, libqmf2_console, own_agent, own_broker, qpidd

from qmf.console.aio import Client

IN_FLIGHT = 64
#: Wanted beside libqmf2's console, with the same agent: the time of one call, and the rate of many.
TIME, RATE = 1.25, 0.5


async def measure(url: str, agent: str, count: int) -> tuple[float, float, float]:
    """Median and 99th percentile of a call in µs, and calls a second of many in flight."""
    async with Client(url, events=False, data=False) as client:
        name = next(item.name for item in await client.locate() if item.name.endswith(f":{agent}"))
        (target,) = await client.objects("broker", package="org.apache.qpid.broker", agent=name)
        times = []
        for number in range(-count // 10, count):
            begin = time.perf_counter()
            result = await target.call("echo", abs(number), "hello")
            times.append((time.perf_counter() - begin) * 1e6)
            if result["sequence"] != abs(number):
                sys.exit("a call got the answer of another one")
        times = times[-count:]
        numbers = iter(range(count * 2))

        async def caller() -> None:
            for number in numbers:
                if (await target.call("echo", number, "hello"))["sequence"] != number:
                    sys.exit("a call got the answer of another one")

        begin = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for _ in range(IN_FLIGHT):
                group.create_task(caller())
        rate = count * 2 / (time.perf_counter() - begin)
    return statistics.median(times), statistics.quantiles(times, n=100)[98], rate


def libqmf2(count: int) -> tuple[float, float, float]:
    """The same of libqmf2's console and agent."""
    with libqmf2_agent(0, "cpp"), libqmf2_console("cpp") as console:
        console.ask(f"calls {count // 10}")
        half, most = map(float, console.ask(f"calls {count}").split())
        rate = count * 2 / float(console.ask(f"flight {count * 2}"))
    return half, most, rate


def main() -> None:
    """Measure and report."""
    options = parser("Method calls.")
    options.add_argument("--calls", type=int, default=3000, metavar="N", help="calls (default: %(default)s)")
    arguments = options.parse_args()
    note("calls to our agent")
    with own_broker() as (url, _), own_agent(url, 0):
        half, most, rate = asyncio.run(measure(url, "bench", arguments.calls))
    figures = [
        Figure("call, our agent: median", half, "µs"),
        Figure("call, our agent: 99 %", most, "µs"),
        Figure(f"calls, our agent, {IN_FLIGHT} in flight", rate, "calls/s"),
    ]
    url_or_none = qpidd()
    if url_or_none is not None and has_libqmf2():
        note("calls between libqmf2's console and agent, over qpidd")
        peer = libqmf2(arguments.calls)
        note("our console calls the same agent")
        with libqmf2_agent(0, "cpp"):
            half, most, rate = asyncio.run(measure(url_or_none, "cpp", arguments.calls))
        name = "libqmf2 console"
        figures += [
            Figure("call, libqmf2 agent: median", half, "µs", name, peer[0], at_most=TIME),
            Figure("call, libqmf2 agent: 99 %", most, "µs", name, peer[1]),
            Figure(f"calls, libqmf2 agent, {IN_FLIGHT} in flight", rate, "calls/s", name, peer[2], at_least=RATE),
        ]
    report(figures, arguments.json)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
