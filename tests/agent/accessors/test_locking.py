"""No update is lost: what accessors rely on is there, and threads that do their worst come to exact sums."""

from __future__ import annotations

import dis
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import pytest
from agent.warehouse import Shelf
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples

from qmf.agent import Counter, CounterAttribute, HiLo, HiLoAttribute, ManagedObject, Mma, MmaAttribute
from qmf.agent.accessors.bounded_counter import bounded_counter_class
from qmf.agent.accessors.locking import HAS_GLOBAL_LOCK, locking_subclass
from qmf.agent.layout import object_state
from qmf.agent.layout.change_marks import STATISTICS_CELL
from qmf.agent.layout.class_layout import STATISTICS
from qmf.agent.model.managed_object import layout_of
from qmf.agent.model.object_values import take_update
from qmf.agent.model.value_readers import make_taker
from qmf.errors import ConstraintError
from qmf.schema import TYPES, ClassSchema, Statistic

#: Attributes that make up the state of an accessor.
STATE = {"_value", "_high", "_low", "_samples", "_total", "_min", "_max", "_noted"}

#: Calls that end the method: nothing is written after them.
LAST = {"range_error"}


class Lift(ManagedObject):
    """Counters with bounds of all sorts."""

    _qmf_schema_: ClassVar[ClassSchema] = ClassSchema(
        package="org.example.stock",
        name="Lift",
        statistics=(
            Statistic(name="in", type=TYPES["count64"]),
            Statistic(name="out", type=TYPES["count8"]),
            Statistic(name="lifts", type=TYPES["count32"], minimum=3, maximum=1000),
        ),
    )
    in_ = CounterAttribute("in")
    out = CounterAttribute("out")
    lifts = CounterAttribute("lifts")


def tuned(name: str) -> type[Counter]:
    """The class of counters for a statistic of `Lift`."""
    return bounded_counter_class(layout_of(Lift).by_name[name])


METHODS = [
    *((Counter, name) for name in ("inc", "dec", "set", "_read", "_end_interval")),
    *((HiLo, name) for name in ("inc", "dec", "set", "_start_with", "_read", "_end_interval", "_merge_interval")),
    *((Mma, name) for name in ("sample", "_read", "_end_interval", "_merge_interval")),
    *((tuned(name), method) for name in ("in", "out", "lifts") for method in ("inc", "dec", "set")),
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


@pytest.mark.skipif(not HAS_GLOBAL_LOCK, reason="accessors have locks here")
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


class Bench(ManagedObject):
    """One accessor of each kind, plain or guarded, that threads work on."""

    _qmf_schema_: ClassVar[ClassSchema] = ClassSchema(
        package="org.example.stock",
        name="Bench",
        statistics=(
            Statistic(name="counter", type=TYPES["count64"]),
            Statistic(name="small", type=TYPES["count32"]),
            Statistic(name="hilo", type=TYPES["hilo32"]),
            Statistic(name="mma", type=TYPES["mmaTime"]),
        ),
    )
    counter = CounterAttribute()
    small = CounterAttribute()
    hilo = HiLoAttribute()
    mma = MmaAttribute()

    def __init__(self, wrap: Callable[[Any], Any]) -> None:
        super().__init__()
        layout = layout_of(Bench)
        for name, cls in (("counter", Counter), ("small", Counter), ("hilo", HiLo), ("mma", Mma)):
            field = layout.by_name[name]
            setattr(self, field.slot, wrap(cls)(object_state.cells(self), field))

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


def wrap_tuned(cls: type[Any]) -> Callable[..., Any]:
    """Counters as generated classes have them."""
    if cls is not Counter:
        return cls
    return lambda cells, field: bounded_counter_class(field)(cells, field)


WRAPS = [
    pytest.param(lambda cls: cls, id="plain"),
    pytest.param(wrap_tuned, id="tuned"),
    pytest.param(locking_subclass, id="locking"),
]


NUMBERS = st.integers(-(2**65), 2**65) | st.integers(-4, 1200)


@pytest.mark.parametrize("name", ["in_", "out", "lifts"])
@examples(30)
@given(st.lists(st.tuples(st.sampled_from(["inc", "dec", "set"]), NUMBERS)))
def test_tuned_counters_count_like_plain_ones(name: str, steps: list[tuple[str, int]]) -> None:
    lift = Lift()
    mine: Counter = getattr(lift, name)
    cells, plain_cells = object_state.cells(lift), [False, False, None, None]
    plain = Counter(plain_cells, layout_of(Lift).by_name[name.strip("_")])
    assert (type(mine) is not Counter, repr(mine)) == (HAS_GLOBAL_LOCK, repr(plain))
    for method, number in steps:
        cells[STATISTICS_CELL] = plain_cells[STATISTICS_CELL] = False
        outcomes = []
        for counter in (mine, plain):
            try:
                outcomes.append(getattr(counter, method)(number))
            except ConstraintError as error:
                outcomes.append(str(error))
        assert outcomes[0] == outcomes[1]
        assert (mine.value, cells[STATISTICS_CELL]) == (plain.value, plain_cells[STATISTICS_CELL])


@pytest.mark.slow
@pytest.mark.usefixtures("hectic")
@pytest.mark.parametrize("wrap", WRAPS)
def test_eight_threads_come_to_exact_sums(wrap: Callable[[Any], Any]) -> None:
    if wrap is not locking_subclass and not HAS_GLOBAL_LOCK:
        pytest.skip("accessors have locks here")
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
    cells, take = object_state.cells(bench), make_taker(layout_of(Bench), STATISTICS, locked=wrap is locking_subclass)
    intervals: list[tuple[int, ...]] = []
    highest = lowest = 0
    alive = True
    while alive:
        alive = any(worker.is_alive() for worker in workers)
        if cells[STATISTICS_CELL] or not alive:
            cells[STATISTICS_CELL] = False
            (_, _, _, high, low, *interval), _ = take(bench)
            intervals.append(tuple(interval))
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
            taken = take_update(shelf, 0)
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


def test_locking_accessors_are_accessors() -> None:
    bench = Bench(locking_subclass)
    assert isinstance(bench.hilo, HiLo)
    assert repr(bench.counter) == "<Counter Bench.counter 0>"
    bench.mma.sample(3)
    bench.mma.sample(4)
    assert (bench.mma.average, bench.mma.min, bench.mma.max, bench.mma.samples) == (3.5, 3, 4, 2)
    bench.hilo.set(5)
    assert (bench.hilo.value, bench.hilo.high, bench.hilo.low) == (5, 5, 5)
    assert locking_subclass(Counter) is locking_subclass(Counter)
