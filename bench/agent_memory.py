"""What a managed object weighs: bytes of a broker's queue, with 7 properties and 47 values of statistics.

Beside it, in the same run, the least that Python can do: an object with a slot for each value. Twice: as made, and with
every statistic set to a number of its own, which Python keeps as objects, too.

    python bench/agent_memory.py [--json FILE] [--objects N]
"""

from __future__ import annotations

import gc
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

from broker_queue import change_all, queue_class
from figures import Figure, parser, report


def weigh(make: Callable[[int], object], change: Callable[[Any, int], None], count: int) -> tuple[float, float]:
    """Bytes of one object, as made and after a change."""
    kept: list[object] = [make(0)]  # what a class needs once is not an object's
    change(kept[0], 1)
    gc.collect()
    tracemalloc.start()
    before, _ = tracemalloc.get_traced_memory()
    kept.extend(make(number) for number in range(1, count + 1))
    made, _ = tracemalloc.get_traced_memory()
    for number, item in enumerate(kept):
        change(item, 100_000 + number)
    changed, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The list of them is the bench's own.
    return (made - before) / count - 8, (changed - before) / count - 8


def main() -> None:
    """Measure and print."""
    options = parser("Memory of managed objects.")
    options.add_argument(
        "--objects", type=int, default=2000, metavar="N", help="objects to weigh (default: %(default)s)"
    )
    arguments = options.parse_args()
    cls = queue_class()
    names = [f"v{number}" for number in range(54)]
    bare: Any = type("Bare", (), {"__slots__": names})

    def make_bare(number: int) -> object:
        item = bare()
        for name in names:
            setattr(item, name, 0)
        item.v0 = f"queue-{number}"
        return item

    def change_bare(item: Any, number: int) -> None:
        for offset, name in enumerate(names[7:]):
            setattr(item, name, number + offset)

    def make(number: int) -> object:
        return cls(name=f"queue-{number}", durable=False, autoDelete=False, exclusive=False, arguments={})

    made, changed = weigh(make, change_all, arguments.objects)
    bare_made, bare_changed = weigh(make_bare, change_bare, arguments.objects)
    begin = time.perf_counter()
    kept = [make(number) for number in range(arguments.objects)]
    seconds = (time.perf_counter() - begin) / len(kept)
    figures = [
        Figure("managed queue, as made", made, "bytes", "54 bare slots", bare_made),
        Figure("managed queue, all statistics changed", changed, "bytes", "54 bare slots", bare_changed),
        Figure("making a managed queue", seconds * 1e6, "µs"),
    ]
    report(figures, arguments.json)


if __name__ == "__main__":
    main()
