"""What received objects weigh: memory of a console that holds queues, as they came and with all values read.

Beside it, in the same run, the least that Python can do: an object with a slot for each of the 54 values.

    python bench/console_memory.py [--json FILE] [--objects N]
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import tracemalloc
from typing import Any

from figures import Figure, note, parser, report
from get_objects import PACKAGE, check, read_all
from processes import own_agent, own_broker

from qmf.console.aio import Client


async def weigh(url: str, count: int) -> tuple[float, float]:
    """Bytes of an object, as received and after all values were read."""
    async with Client(url, events=False, data=False) as client:
        check(await client.objects("queue", package=PACKAGE), count)
        gc.collect()
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        found = await client.objects("queue", package=PACKAGE, timeout=120)
        gc.collect()
        came, _ = tracemalloc.get_traced_memory()
        read_all(found)
        gc.collect()
        read, _ = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        check(found, count)
    return (came - before) / count, (read - before) / count


def bare(count: int) -> float:
    """Bytes of an object with 54 slots, most of them numbers of its own."""
    names = [f"v{number}" for number in range(54)]
    cls: Any = type("Bare", (), {"__slots__": names})
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    kept = []
    for number in range(count):
        item = cls()
        for offset, name in enumerate(names):
            setattr(item, name, 100_000 + number + offset)
        kept.append(item)
    weight, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return (weight - before) / count


def main() -> None:
    """Measure and report."""
    options = parser("Memory of received objects.")
    options.add_argument("--objects", type=int, default=5000, metavar="N", help="objects (default: %(default)s)")
    arguments = options.parse_args()
    note("weighing received objects")
    with own_broker() as (url, _), own_agent(url, arguments.objects):
        came, read = asyncio.run(weigh(url, arguments.objects))
    least = bare(arguments.objects)
    figures = [
        Figure("received queue", came, "bytes", "54 bare slots", least),
        Figure("received queue, all values read", read, "bytes", "54 bare slots", least),
    ]
    report(figures, arguments.json)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
