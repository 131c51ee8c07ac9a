"""What an accessor costs the managed program: nanoseconds a call, beside a bare attribute and prometheus_client.

Measured with the way to the accessor from its object, and without where a program keeps it at hand ("held").
Peers in the same run: an increment of a bare attribute, which nothing can beat, and `prometheus_client.Counter.inc`,
the usual way to count in Python. Medians of several rounds after a warm-up, in which all take turns; results of the
calls are checked.

    python bench/accessors.py [--json FILE]
"""

from __future__ import annotations

import statistics
import sys
import timeit
from collections.abc import Callable
from typing import ClassVar

import attrs
from figures import Figure, note, parser, report

from qmf.agent import Attribute, CounterAttribute, HiLoAttribute, ManagedObject, MmaAttribute
from qmf.schema import TYPES, ClassSchema, Property, Statistic

#: Calls in a round, and rounds: a round takes a few hundredths of a second, long beside the clock's own cost.
CALLS = 200_000
ROUNDS = 15

#: Nanoseconds that an accessor may take; the peers are free to take what they take.
LIMIT = 100.0
FREE = ("bare attribute +=", "prometheus Counter.inc()")


class Gauge(ManagedObject):
    """A class with a statistic of each kind."""

    _qmf_schema_: ClassVar[ClassSchema] = ClassSchema(
        package="org.example.bench",
        name="Gauge",
        properties=(Property(name="limit", type=TYPES["uint32"]),),
        statistics=(
            Statistic(name="direct", type=TYPES["uint64"]),
            Statistic(name="counter", type=TYPES["count64"]),
            Statistic(name="hilo", type=TYPES["hilo32"]),
            Statistic(name="mma", type=TYPES["mmaTime"]),
        ),
    )
    limit = Attribute[int]("limit")
    direct = Attribute[int]("direct")
    counter = CounterAttribute("counter")
    hilo = HiLoAttribute("hilo")
    mma = MmaAttribute("mma")


class Bare:
    """What a program would do without being managed."""

    def __init__(self) -> None:
        self.value = 0


@attrs.frozen
class Case:
    """Something to measure.

    Attributes:
        name: what it is.
        code: two calls, so that a value that is set changes each time.
        check: whether the calls did what they should.
    """

    name: str
    code: str
    check: Callable[[], bool]


def measure(cases: list[Case], names: dict[str, object]) -> dict[str, float]:
    """Medians of the nanoseconds of one call. All cases take turns, so that each meets the processor at every speed."""
    timers = {case.name: timeit.Timer(case.code, globals=names) for case in cases}
    rounds: dict[str, list[float]] = {name: [] for name in timers}
    for number in range(ROUNDS + 1):
        for name, timer in timers.items():
            nanoseconds = timer.timeit(CALLS // 2) / CALLS * 1e9
            if number:  # the first one warms up
                rounds[name].append(nanoseconds)
    for case in cases:
        if not case.check():
            sys.exit(f"{case.name}: the calls did not do what they should")
    return {name: statistics.median(found) for name, found in rounds.items()}


def main() -> None:
    """Measure and print."""
    arguments = parser("Cost of accessors beside their peers.").parse_args()
    gauge, other, kept, bare = Gauge(), Gauge(), Gauge(), Bare()
    names: dict[str, object] = {
        "gauge": gauge,
        "other": other,
        "bare": bare,
        "held": kept.counter,
        "hilo": kept.hilo,
        "mma": kept.mma,
    }
    cases = [
        Case("bare attribute +=", "bare.value += 1; bare.value += 1", lambda: bare.value > CALLS),
        Case("direct =", "gauge.direct = 5; gauge.direct = 6", lambda: gauge.direct == 6),
        Case("property =", "gauge.limit = 5; gauge.limit = 6", lambda: gauge.limit == 6),
        Case("counter.inc()", "gauge.counter.inc(); gauge.counter.inc()", lambda: gauge.counter.value > CALLS),
        Case("hilo.inc() .dec()", "gauge.hilo.inc(); gauge.hilo.dec()", lambda: gauge.hilo.high == 1),
        Case("hilo.set()", "other.hilo.set(5); other.hilo.set(6)", lambda: other.hilo.value == 6),
        Case("mma.sample()", "gauge.mma.sample(5); gauge.mma.sample(7)", lambda: gauge.mma.average == 6),
        Case("counter.inc(), held", "held.inc(); held.inc()", lambda: kept.counter.value > CALLS),
        Case("hilo.inc() .dec(), held", "hilo.inc(); hilo.dec()", lambda: kept.hilo.high == 1),
        Case("mma.sample(), held", "mma.sample(5); mma.sample(7)", lambda: kept.mma.average == 6),
    ]
    try:
        import prometheus_client
    except ImportError:
        note("prometheus_client is not installed: no figure for it (pip install prometheus-client)")
    else:
        counter = prometheus_client.Counter("bench", "bench", registry=prometheus_client.CollectorRegistry())
        names["counter"] = counter
        cases.append(Case("prometheus Counter.inc()", "counter.inc(); counter.inc()", lambda: True))
    figures = measure(cases, names)
    base = figures["bare attribute +="]
    peer = figures.get("prometheus Counter.inc()")
    report(
        [
            Figure(name, value, "ns", "bare attribute +=", base, limit=None if name in FREE else LIMIT)
            for name, value in figures.items()
        ]
        + [
            Figure(f"{name}, beside prometheus", value, "ns", "prometheus Counter.inc()", peer, at_most=1)
            for name, value in figures.items()
            if name not in FREE and peer is not None
        ],
        arguments.json,
    )


if __name__ == "__main__":
    main()
