"""What a managed object weighs: bytes of a broker's queue, with 7 properties and 47 values of statistics.

Beside it, in the same run, the least that Python can do: an object with a slot for each value. Twice: as made, and with
every statistic set to a number of its own, which Python keeps as objects, too.

    python bench/agent_memory.py [--json FILE] [--objects N]
"""

from __future__ import annotations

import argparse
import gc
import json
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

from broker_queue import change_all, queue_class


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
    parser = argparse.ArgumentParser(description="Memory of managed objects.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there, too")
    parser.add_argument(
        "--objects", type=int, default=2000, metavar="N", help="objects to weigh (default: %(default)s)"
    )
    arguments = parser.parse_args()
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
    figures = {
        "made_bytes": made,
        "changed_bytes": changed,
        "bare_made_bytes": bare_made,
        "bare_changed_bytes": bare_changed,
        "make_us": seconds * 1e6,
    }
    print(f"{'':22}{'as made':>10}{'all changed':>13}")
    print(f"{'managed queue':22}{made:8.0f} B{changed:11.0f} B")
    print(f"{'54 bare slots':22}{bare_made:8.0f} B{bare_changed:11.0f} B")
    print(f"{'ratio':22}{made / bare_made:10.1f}{changed / bare_changed:13.1f}")
    print(f"making one takes {seconds * 1e6:.0f} µs")
    if arguments.json is not None:
        arguments.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
