"""What the benches of the pipeline share: a lake of one class, runs in processes of their own, peaks of memory."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import psutil

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.record.buffers import RowBuffers, RowConverter
from qmf.pipeline.record.lake_writer import LakeWriter
from qmf.schema import TYPES, ClassSchema, Statistic

OBJECTS = 100
VALUES = 7
SECOND = 10**9

CLASS = ClassSchema(
    package="org.example.bench",
    name="thing",
    hash=UUID(int=1),
    statistics=(
        Statistic(name="done", type=TYPES["count64"]),
        Statistic(name="load", type=TYPES["double"]),
        Statistic(name="level", type=TYPES["int32"]),
        Statistic(name="delay", type=TYPES["mma64"]),
    ),
)

_RUN = "00000000000000000001_1"


def fill(lake: DeltaLake, samples: int, each: int, level: Callable[[int], int]) -> float:
    """Record so many samples as the recorder does, each second one of all objects, with `each` rows to a commit.

    `level` gives the statistic of that name by the second. Returns the seconds taken.
    """
    table = ClassVersion.from_schema(CLASS)
    converters = RowConverter(table)
    buffers = RowBuffers()
    started = time.perf_counter()
    schema = (_RUN, 0, 0, 0, 0, None, None, table.package, table.name, table.hash, False, table.to_json(), "", None)
    buffers.add(RowKind.SCHEMAS, None, 0, schema)
    writer = LakeWriter(lake, "bench")
    batches = 0
    for n in range(samples):
        second = n // OBJECTS
        time_ns = second * SECOND
        values: dict[str, object] = {"done": n, "load": n / 7, "level": level(second)}
        values |= {"delayCount": 3, "delayMin": 1, "delayMax": 9, "delayAvg": n % 9}
        own = (f"thing-{n % OBJECTS}", 0, 0, 0, False, True)
        common = (_RUN, n + 1, time_ns // 1000, time_ns, time_ns, "bench", 1)
        buffers.add(RowKind.OBJECTS, table, time_ns, (*common, *own, *converters.cells(values, statistics=True)))
        if n % each == each - 1 or n == samples - 1:
            batches += 1
            writer.commit(batches, buffers.take())
    return time.perf_counter() - started


def peak(pid: int) -> float:
    """The most memory that a process ever had resident, in MB; 0 when it is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmHWM:")), 0.0)


@contextmanager
def peaks() -> Iterator[dict[str, float]]:
    """What processes need that this one starts meanwhile; up to date each 0.2 s.

    Yields:
        peaks in MB, of `java` and of the largest of Spark's `python` workers; and the `processor` seconds of all.
    """
    found: dict[str, float] = {"java": 0.0, "python": 0.0, "processor": 0.0}
    used: dict[int, float] = {}  # also of those that have ended
    ended = threading.Event()

    def look() -> None:
        me = psutil.Process()
        while not ended.wait(0.2):
            for child in me.children(recursive=True):
                try:
                    name, times = child.name(), child.cpu_times()
                except psutil.NoSuchProcess:
                    continue
                used[child.pid] = times.user + times.system
                # What Java forks is for a moment as large as Java, under the name of the thread that did it.
                kind = next((kind for kind in ("java", "python") if name.startswith(kind)), None)
                if kind is not None:
                    found[kind] = max(found[kind], peak(child.pid))
            found["processor"] = sum(used.values())

    looker = threading.Thread(target=look)
    looker.start()
    try:
        yield found
    finally:
        ended.set()
        looker.join()


def each_size(
    program: str, text: str, heading: str, one: Callable[[int], dict[str, Any]], line: Callable[[dict[str, Any]], str]
) -> int:
    """Run `one` for each size that the command line names, in a process of its own so that peaks are its own.

    Prints the heading and a line for each. Returns 1 when some run's `right` is false, else 0.
    """
    parser = argparse.ArgumentParser(description=text.partition("\n")[0])
    parser.add_argument("values", nargs="*", type=int, default=[1_000_000, 10_000_000])
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(one(options.values[0])))
        return 0
    print(f"{'values':>12} {heading}", flush=True)
    right = True
    for values in options.values:
        run = subprocess.run(
            [sys.executable, program, "--one", str(values)], stdout=subprocess.PIPE, text=True, check=True
        )
        found = json.loads(run.stdout.splitlines()[-1])
        right &= found["right"]
        print(f"{values:12,} {line(found)}", flush=True)
    print("answers agree" if right else "answers differ")
    return 0 if right else 1
