"""Show the rates of incoming and outgoing messages of queues, until Ctrl-C: generated classes, followed with asyncio.

`client.follow(Queue)` keeps all queues up to date in the way that the broker supports, and mypy knows the properties of
a queue.

    python examples/queue_rates.py
    python examples/queue_rates.py amqp://broker.example.org:5672 --interval 10 --match 'orders.*'
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fnmatch
import sys
from collections.abc import Sequence

import attrs

from qmf.console.aio import Client, Follow
from qmf.console.typed import object_id
from qmf.errors import QmfError
from qmf.models.broker.console import Queue
from qmf.protocol import ObjectId


@attrs.frozen
class Reading:
    """The counters of a queue at one time, in seconds of the loop's clock."""

    time: float
    incoming: int
    outgoing: int


def main(argv: Sequence[str] | None = None) -> int:
    """Run the program; returns its exit code."""
    options = arguments().parse_args(argv)
    try:
        asyncio.run(watch(options.url, options.interval, options.match, options.count))
    except KeyboardInterrupt:
        return 0
    except BrokenPipeError:
        sys.stderr.close()  # the reader of the output has ended
        return 0
    except QmfError as error:
        print(f"queue_rates: {error}", file=sys.stderr)
        return 1
    return 0


async def watch(url: str, interval: float, match: str, count: int) -> None:
    """Print a table every interval, `count` times; without end if that is 0."""
    async with Client(url, events=False, data=False) as client, client.follow(Queue, interval=interval) as queues:
        last = read(queues)
        rounds = 0
        while rounds != count or not count:
            await drain(queues, interval)
            now = read(queues)
            show(queues, last, now, match)
            last = now
            rounds += 1


async def drain(queues: Follow[Queue], seconds: float) -> None:
    """Discard the changes of so many seconds. The followed objects are up to date without them; only these are used."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            async for _ in queues:
                pass


def read(queues: Follow[Queue]) -> dict[ObjectId, Reading]:
    """The counters of all queues."""
    now = asyncio.get_running_loop().time()
    return {object_id(queue): Reading(now, queue.msgTotalEnqueues, queue.msgTotalDequeues) for queue in queues.objects}


def show(queues: Follow[Queue], last: dict[ObjectId, Reading], now: dict[ObjectId, Reading], match: str) -> None:
    """Print one table of the queues that existed at both times."""
    rows = []
    for queue in queues.objects:
        key = object_id(queue)
        if key in last and key in now and fnmatch.fnmatch(queue.name, match):
            before, after = last[key], now[key]
            seconds = after.time - before.time
            rates = ((after.incoming - before.incoming) / seconds, (after.outgoing - before.outgoing) / seconds)
            rows.append((queue.name, queue.msgDepth, *rates))
    width = max([len(row[0]) for row in rows] + [5])
    print(f"{'Queue':{width}}  {'Messages':>10}  {'in/s':>10}  {'out/s':>10}")
    for name, depth, incoming, outgoing in sorted(rows):
        print(f"{name:{width}}  {depth:>10}  {incoming:>10.1f}  {outgoing:>10.1f}")
    print(flush=True)


def arguments() -> argparse.ArgumentParser:
    """The options of the command line."""
    parser = argparse.ArgumentParser(prog="queue_rates", description="Show message rates of queues.")
    parser.add_argument("url", nargs="?", default="amqp://127.0.0.1:5672", help="broker (%(default)s)")
    parser.add_argument("--interval", type=seconds, default=5.0, help="seconds between tables (%(default)g)")
    parser.add_argument("--match", default="*", metavar="GLOB", help="only queues whose name matches")
    parser.add_argument("--count", type=int, default=0, metavar="N", help="end after so many tables")
    return parser


def seconds(text: str) -> float:
    """Convert an option to seconds."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < 86_400:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds above 0")
    return value


if __name__ == "__main__":
    sys.exit(main())
