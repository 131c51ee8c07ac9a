"""How often are the anomalies of a report wrong, and how often are they missed?

Runs the detector of `qmf-pipeline report` over the last day of series without anomalies (noise, random walks, rhythms
of the day, heavy tails, constants, counters that are reset), and of the same series with one that was put in: an hour
in which the values are shifted by several standard deviations of the noise, or are those of another time of the day.
Prints, beside a plain rule of 3 standard deviations over the whole time, which also needs 3 windows in succession in
the last column:

- false alarms: series of 100 with any anomaly that is none, and anomalies per series and day;
- hits: series of 100 whose anomaly was found, at least a part of it.

    python bench/report_anomalies.py [--series N] [--days N] [--minutes N]
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np

from qmf.pipeline.report.anomalies import MIN_WINDOWS, find_anomalies

DAY = 86_400

Values = np.ndarray[Any, np.dtype[np.float64]]
#: Makes series: how many, of how many windows, of which so many are a day.
Make = Callable[[np.random.Generator, int, int, int], Values]


def phase(windows: int, per_day: int) -> Values:
    """The time of day of each window, from 0 to 2 pi."""
    return 2 * np.pi * (np.arange(windows) % per_day) / per_day


def normal(chance: np.random.Generator, series: int, windows: int, _per_day: int) -> Values:
    """Independent values."""
    found: Values = 100 + 5 * chance.standard_normal((series, windows))
    return found


def walk(chance: np.random.Generator, series: int, windows: int, _per_day: int) -> Values:
    """A sum of independent steps."""
    return np.cumsum(chance.standard_normal((series, windows)), axis=1)


def slow(chance: np.random.Generator, series: int, windows: int, per_day: int) -> Values:
    """Each value depends on the one before, with a memory of two hours."""
    kept = float(np.exp(-12 / per_day))
    steps = chance.standard_normal((series, windows)) * 5 * np.sqrt(1 - kept**2)
    found: Values = np.empty_like(steps)
    last = 5 * chance.standard_normal(series)
    for at in range(windows):
        last = kept * last + steps[:, at]
        found[:, at] = last + 100
    return found


def rhythm(chance: np.random.Generator, series: int, windows: int, per_day: int) -> Values:
    """High at one time of the day, low at another."""
    found: Values = 100 + 80 * np.sin(phase(windows, per_day)) + 5 * chance.standard_normal((series, windows))
    return found


def working(chance: np.random.Generator, series: int, windows: int, per_day: int) -> Values:
    """Busy for eight hours of the day, with noise in proportion, otherwise nearly nothing."""
    busy = (phase(windows, per_day) > 2) & (phase(windows, per_day) < 4.1)
    return np.where(busy, 1000.0, 10.0) * chance.lognormal(0, 0.2, (series, windows))


def heavy(chance: np.random.Generator, series: int, windows: int, _per_day: int) -> Values:
    """Log-normal: a few values are many times the median."""
    return chance.lognormal(0, 1, (series, windows))


def wild(chance: np.random.Generator, series: int, windows: int, _per_day: int) -> Values:
    """Student's t with two degrees of freedom: no variance at all."""
    return 100 + chance.standard_t(2, (series, windows))


def bursts(chance: np.random.Generator, series: int, windows: int, _per_day: int) -> Values:
    """Mostly nothing; now and then a burst of one to six windows."""
    found = np.zeros((series, windows))
    for own in found:
        for at in np.flatnonzero(chance.random(windows) < 0.02):
            own[at : at + chance.integers(1, 7)] = chance.lognormal(3, 1)
    return found


def constant(_chance: np.random.Generator, series: int, windows: int, _per_day: int) -> Values:
    """One value."""
    return np.full((series, windows), 42.0)


def whole(chance: np.random.Generator, series: int, windows: int, _per_day: int) -> Values:
    """A small whole number, mostly the same."""
    return chance.poisson(0.1, (series, windows)).astype(np.float64) + 17


def resets(chance: np.random.Generator, series: int, windows: int, _per_day: int) -> Values:
    """The rate of a counter that is reset now and then: the growth of one window is then counted from 0."""
    found = 200 + 10 * chance.standard_normal((series, windows))
    found[chance.random((series, windows)) < 0.01] *= 0.3
    return found


QUIET: dict[str, Make] = {
    "normal": normal,
    "memory of 2 h": slow,
    "random walk": walk,
    "rhythm": rhythm,
    "working hours": working,
    "log-normal": heavy,
    "Student t(2)": wild,
    "bursts": bursts,
    "constant": constant,
    "whole numbers": whole,
    "counter resets": resets,
}

#: Those with an anomaly: the series, and how many of what follows, see `put_in`.
LOUD: dict[str, tuple[Make, str, float]] = {
    "normal + 5 s": (normal, "shift", 25),
    "normal + 10 s": (normal, "shift", 50),
    "rhythm + 10 s": (rhythm, "shift", 50),
    "rhythm, other half": (rhythm, "half", 0),
    "work at night": (working, "half", 0),
    "log-normal x 20": (heavy, "times", 20),
    "constant + 50 %": (constant, "times", 1.5),
    "rate becomes 0": (resets, "times", 0),
    "memory + 10 s": (slow, "shift", 50),
}


def put_in(chance: np.random.Generator, values: Values, how: str, size: float, per_day: int) -> list[tuple[int, int]]:
    """Change an hour of the last day of each series; returns the windows."""
    found = []
    windows = values.shape[1]
    hour = max(MIN_WINDOWS, per_day // 24)
    for own in values:
        at = windows - per_day + int(chance.integers(0, per_day - hour))
        if how == "half":
            # The largest or the smallest hour of the day before, where it is furthest away.
            at = windows - per_day + per_day * 3 // 4
            before = own[windows - 2 * per_day : windows - per_day]
            best = int(np.argmax(np.convolve(before, np.ones(hour), "valid")))
            own[at : at + hour] = before[best : best + hour]
        elif how == "shift":
            own[at : at + hour] += size
        else:
            own[at : at + hour] *= size
        found.append((at, at + hour))
    return found


def detected(values: Values, step: int) -> list[list[tuple[float, float]]]:
    """The anomalies of the last day of each series, by the report's detector."""
    series, windows = values.shape
    with duckdb.connect(":memory:") as connection:
        columns = {
            "name": np.repeat(np.arange(series), windows),
            "t": np.tile(np.arange(windows) * float(step), series),
            "value": values.ravel(),
        }
        connection.register("given", columns)
        connection.execute("create table v as select * from given")
        end = float(windows * step)
        found = find_anomalies(connection, "v", ("name",), first=end - DAY, last=end, since=0.0, step=step)
    by_series: list[list[tuple[float, float]]] = [[] for _ in range(series)]
    for item in found:
        by_series[item.key[0]].append((item.start, item.end))
    return by_series


def by_sigma(values: Values, step: int, least: int) -> list[list[tuple[float, float]]]:
    """Windows of the last day beyond 3 standard deviations of the whole time, `least` in succession."""
    per_day = DAY // step
    found: list[list[tuple[float, float]]] = []
    for own in values:
        far = np.abs(own - own.mean()) > 3 * own.std()
        far[own == own.mean()] = False
        edges = np.flatnonzero(np.diff(np.concatenate([[0], far[-per_day:].astype(int), [0]])))
        begin = len(own) - per_day
        pairs = zip(edges[::2], edges[1::2], strict=True)
        found.append([((begin + a) * step, (begin + b) * step) for a, b in pairs if b - a >= least])
    return found


def rates(found: list[list[tuple[float, float]]]) -> str:
    """Series of 100 with any, and number per series."""
    some = sum(1 for own in found if own) / len(found)
    return f"{some * 100:6.1f} {sum(map(len, found)) / len(found):7.3f}"


def hits(found: list[list[tuple[float, float]]], put: list[tuple[int, int]], step: int) -> str:
    """Series of 100 of which a part of the anomaly was found."""
    count = sum(
        any(start < last * step and end > first * step for start, end in own)
        for own, (first, last) in zip(found, put, strict=True)
    )
    return f"{count / len(put) * 100:6.1f}"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--series", type=int, default=400, metavar="N", help="of each kind; default: %(default)s")
    parser.add_argument("--days", type=int, default=8, metavar="N", help="with the last; default: %(default)s")
    parser.add_argument("--minutes", type=int, default=10, metavar="N", help="of a window; default: %(default)s")
    options = parser.parse_args()
    step = options.minutes * 60
    per_day = DAY // step
    windows = options.days * per_day
    print(
        f"{options.series} series of {options.days} days in windows of {options.minutes} min; the last day is searched"
    )
    print(f"{'false alarms':20} {'report':>14} {'3 sigma':>14} {'3 s, 3 windows':>15}")
    for name, make in QUIET.items():
        values = make(np.random.default_rng(1), options.series, windows, per_day)
        ours, plain, patient = detected(values, step), by_sigma(values, step, 1), by_sigma(values, step, MIN_WINDOWS)
        print(f"{name:20} {rates(ours)} {rates(plain)}  {rates(patient)}", flush=True)
    print(f"{'hits':20} {'report':>6} {'3 sigma':>14} {'3 s, 3 windows':>15}")
    for name, (make, how, size) in LOUD.items():
        chance = np.random.default_rng(2)
        values = make(chance, options.series, windows, per_day)
        put = put_in(chance, values, how, size, per_day)
        ours, plain, patient = detected(values, step), by_sigma(values, step, 1), by_sigma(values, step, MIN_WINDOWS)
        print(
            f"{name:20} {hits(ours, put, step)} {hits(plain, put, step):>14} {hits(patient, put, step):>15}", flush=True
        )


if __name__ == "__main__":
    main()
