"""Anomalies: found where they were put, and not where there are none."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator

import pytest

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.report.anomalies import MIN_DAYS, FoundAnomaly, days_compared, find_anomalies  # noqa: E402

DAY, STEP = 86_400, 900


@pytest.fixture
def connection() -> Iterator[object]:
    with duckdb.connect(":memory:") as found:
        yield found


def found_in(
    connection: object, value: Callable[[int], float | None], *, days: int, step: int = STEP
) -> list[FoundAnomaly]:
    """The anomalies of the last day of a series, given by its values in each window."""
    rows = [("s", float(t), made) for t in range(0, days * DAY, step) if (made := value(t)) is not None]
    connection.execute("create table v (name varchar, t double, value double)")  # type: ignore[attr-defined]
    if rows:
        connection.executemany("insert into v values (?, ?, ?)", rows)  # type: ignore[attr-defined]
    end = float(days * DAY)
    return find_anomalies(connection, "v", ("name",), first=end - DAY, last=end, since=0.0, step=step)


def rhythm(t: int) -> float:
    """High at noon, low at night."""
    return 100 + 80 * math.sin(2 * math.pi * (t % DAY) / DAY)


def test_the_rhythm_of_the_day_is_usual(connection: object) -> None:
    chance = random.Random(1)
    assert found_in(connection, lambda t: rhythm(t) + chance.gauss(0, 3), days=7) == []


def test_the_value_of_noon_is_not_usual_at_night(connection: object) -> None:
    chance = random.Random(2)
    night = 6 * DAY + 18 * 3600

    def value(t: int) -> float:
        return (180 if night <= t < night + 3600 else rhythm(t)) + chance.gauss(0, 3)

    (found,) = found_in(connection, value, days=7)
    assert (found.key, found.start, found.end, found.days) == (("s",), night, night + 3600, 7)
    assert found.value == pytest.approx(180, abs=12)
    assert found.usual == pytest.approx(20, abs=12)


def test_with_few_days_the_whole_time_is_usual(connection: object) -> None:
    chance = random.Random(3)
    odd = DAY + 12 * 3600

    def value(t: int) -> float:
        return (90 if odd <= t < odd + 4 * STEP else 50) + chance.gauss(0, 2)

    (found,) = found_in(connection, value, days=2)
    assert (found.start, found.end, found.days) == (odd, odd + 4 * STEP, 0)
    assert days_compared(connection, "v", since=0, last=2 * DAY) == 2 < MIN_DAYS


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(lambda t: 5.0, id="constant"),
        pytest.param(lambda t: 0.0, id="nothing"),
        pytest.param(lambda t: 90.0 if t == 6 * DAY + 3600 else 50.0 + t % 7, id="one window only"),
        pytest.param(lambda t: float(t // STEP % 2), id="two values"),
        pytest.param(lambda t: 80.0 if t % DAY in range(0, 3600) else 2.0, id="each day"),
        pytest.param(lambda t: 80.0 if t // STEP % 60 < 4 else 2.0, id="again and again"),
        pytest.param(lambda t: None if t % DAY > 600 else 1.0, id="few values"),
        pytest.param(lambda t: 17.0 + (t // STEP % 40 == 0), id="small steps"),
    ],
)
def test_no_anomaly(connection: object, value: Callable[[int], float | None]) -> None:
    assert found_in(connection, value, days=7) == []


def test_a_constant_that_changes_is_an_anomaly(connection: object) -> None:
    odd = 6 * DAY + 10 * 3600
    (found,) = found_in(connection, lambda t: 9.0 if odd <= t < odd + 5 * STEP else 5.0, days=7)
    assert (found.start, found.end, found.value, found.usual) == (odd, odd + 5 * STEP, 9.0, 5.0)


def test_no_values(connection: object) -> None:
    assert found_in(connection, lambda t: None, days=7) == []
