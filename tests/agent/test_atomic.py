"""No update is lost: what accessors rely on is there, and threads that do their worst come to exact sums."""

from __future__ import annotations

import dis
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agent.warehouse import Shelf

from qmf.agent import Counter, HiLo, Mma
from qmf.agent.guarded import HAS_GLOBAL_LOCK, guarded
from qmf.agent.layout import STATISTICS_CELL, Cells, Field
from qmf.agent.model import layout_of

#: Attributes that make up the state of an accessor.
STATE = {"_value", "_high", "_low", "_samples", "_total", "_min", "_max"}

#: Calls that end the method: nothing is written after them.
LAST = {"out_of_range"}

METHODS = [
    *((Counter, name) for name in ("inc", "dec", "set", "_read", "_take")),
    *((HiLo, name) for name in ("inc", "dec", "set", "_begin", "_read", "_take", "_restore")),
    *((Mma, name) for name in ("sample", "_read", "_take", "_restore")),
]


def critical(method: Callable[..., object]) -> list[dis.Instruction]:
    """The instructions from the first read of state to the last write, or to the last read where none is written."""
    code = list(dis.get_instructions(method))
    touched = [i for i, item in enumerate(code) if item.opname.startswith(("LOAD_ATTR", "STORE_ATTR"))]
    touched = [i for i in touched if str(code[i].argval) in STATE]
    written = [i for i in touched if code[i].opname.startswith("STORE")]
    return code[touched[0] : (written or touched)[-1] + 1]


def breaks(part: list[dis.Instruction]) -> Iterator[str]:
    """Where the interpreter may switch threads or run other code."""
    called = ""
    for item in part:
        name = item.opname
        if name in ("LOAD_GLOBAL", "LOAD_METHOD"):
            called = str(item.argval)
        if name.startswith(("JUMP_BACKWARD", "RESUME", "FOR_ITER", "BUILD_", "YIELD", "SEND")) or (
            name.startswith("CALL") and called not in LAST
        ):
            yield f"{name} {called}"


@pytest.mark.skipif(not HAS_GLOBAL_LOCK, reason="accessors are guarded here")
@pytest.mark.parametrize(("cls", "name"), METHODS)
def test_nothing_can_come_between_reading_and_writing(cls: type, name: str) -> None:
    part = critical(getattr(cls, name))
    assert part
    assert list(breaks(part)) == []


def test_the_check_finds_what_it_looks_for() -> None:
    class Wrong:
        _value: Any = 0

        def inc(self) -> None:
            self._value = max(self._value, 1)

        def swap(self) -> None:
            pair = [self._value]
            self._value = pair

    assert list(breaks(critical(Wrong.inc)))
    assert list(breaks(critical(Wrong.swap)))


class Bench:
    """One accessor of each kind, plain or guarded, that threads work on."""

    def __init__(self, wrap: Callable[[Any], Any]) -> None:
        layout = layout_of(Shelf)
        self.cells: Cells = [False, False]
        self.counter: Counter = wrap(Counter)(self.cells, layout.by_name["in"])
        self.small: Counter = wrap(Counter)(self.cells, layout.by_name["out"])
        self.hilo: HiLo = wrap(HiLo)(self.cells, self._wide(layout.by_name["users"]))
        self.mma: Mma = wrap(Mma)(self.cells, layout.by_name["wait"])

    @staticmethod
    def _wide(field: Field) -> Field:
        wide = Field(field.item, "Shelf", "users")
        wide.low, wide.high = -(10**6), 10**6
        return wide

    def work(self, number: int, rounds: int) -> None:
        for n in range(rounds):
            self.counter.inc()
            self.small.inc(3)
            self.small.dec(2)
            self.hilo.inc(2)
            self.hilo.dec()
            self.mma.sample(number * rounds + n)


@pytest.fixture
def hectic() -> Iterator[None]:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


WRAPS = [pytest.param(lambda cls: cls, id="plain"), pytest.param(guarded, id="guarded")]


@pytest.mark.slow
@pytest.mark.usefixtures("hectic")
@pytest.mark.parametrize("wrap", WRAPS)
def test_eight_threads_come_to_exact_sums(wrap: Callable[[Any], Any]) -> None:
    if wrap is not guarded and not HAS_GLOBAL_LOCK:
        pytest.skip("accessors are guarded here")
    bench = Bench(wrap)
    threads, rounds = 8, 3000
    start = threading.Barrier(threads + 1)

    def work(number: int) -> None:
        start.wait()
        bench.work(number, rounds)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for worker in workers:
        worker.start()
    start.wait()
    intervals: list[tuple[int, ...]] = []
    highest = lowest = 0
    alive = True
    while alive:
        alive = any(worker.is_alive() for worker in workers)
        if bench.cells[STATISTICS_CELL] or not alive:
            bench.cells[STATISTICS_CELL] = False
            intervals.append(bench.mma._take()[0])
            (_, high, low), _ = bench.hilo._take()
            highest, lowest = max(highest, high), min(lowest, low)
    total = threads * rounds
    assert (bench.counter.value, bench.small.value, bench.hilo.value) == (total, total, total)
    assert (highest >= total, lowest) == (True, 0)
    assert sum(item[0] for item in intervals) == total
    filled = [item for item in intervals if item[0]]
    assert (min(item[1] for item in filled), max(item[2] for item in filled)) == (0, total - 1)
    # Averages are rounded down, each by less than one per sample.
    summed = sum(count * average for count, _, _, average in filled)
    assert 0 <= total * (total - 1) // 2 - summed < total


@pytest.mark.usefixtures("hectic")
def test_plain_values_are_never_missed() -> None:
    shelf = Shelf(number=1)
    done = threading.Event()
    seen: list[object] = []

    def watch() -> None:
        last = False
        while not last:
            last = done.is_set()
            taken = shelf._qmf_take()
            if taken is not None:
                seen.append(taken.values["since"])

    watcher = threading.Thread(target=watch)
    watcher.start()
    for number in range(20_000):
        shelf.since = number
    done.set()
    watcher.join()
    assert seen[-1] == 19_999
    assert seen == sorted(seen, key=lambda value: int(str(value)))


def test_guarded_accessors_are_accessors() -> None:
    bench = Bench(guarded)
    assert isinstance(bench.hilo, HiLo)
    assert repr(bench.counter) == "<Counter Shelf.in 0>"
    bench.mma.sample(3)
    bench.mma.sample(4)
    assert (bench.mma.average, bench.mma.min, bench.mma.max, bench.mma.samples) == (3.5, 3, 4, 2)
    bench.hilo.set(5)
    assert (bench.hilo.value, bench.hilo.high, bench.hilo.low) == (5, 5, 5)
    assert guarded(Counter) is guarded(Counter)
