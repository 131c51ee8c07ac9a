"""Growth, rates and changes of values."""

from __future__ import annotations

import pytest

from qmf.schema import TYPES
from qmf.views.rates import RateTracker, counter_growth, growth_rate, growth_rates


@pytest.mark.parametrize(
    ("kind", "before", "now", "grown"),
    [
        ("count64", 10, 15, 5),
        ("count64", 10, 10, 0),
        ("count64", 100, 3, 3),
        ("count64", 100, 0, 0),
        ("count64", 100, 60, -40),
        ("count64", 2**64 - 1, 3, 3),
        ("count32", 2**32 - 1, 3, 4),
        ("count32", 2**31, 3, 3),
        ("count8", 250, 4, 10),
        ("count8", 100, 4, 4),
    ],
)
def test_growth(kind: str, before: int, now: int, grown: int) -> None:
    assert counter_growth(TYPES[kind], before, now) == grown


def test_rates_between_points() -> None:
    assert growth_rate(TYPES["count64"], 10, 30, 4.0) == 5
    assert growth_rate(TYPES["count64"], 10, 30, 4.0, restarted=True) == 7.5
    assert list(growth_rates([(0, 100), (10, 5), (20, 15)])) == [(10, 0.5), (20, 1)]  # was reset
    assert list(growth_rates([(0, 100), (10, 30), (10, 40)])) == [(10, -7)]  # was decreased
    assert list(growth_rates([])) == []


def test_rates() -> None:
    rates = RateTracker()
    kind = TYPES["count64"]

    def take(value: object, at: float, epoch: int = 1) -> float | None:
        return rates.update("x", kind, value, at, epoch)

    assert take(100, 10) is None
    assert take(150, 20) == 5
    assert take(150, 20) == 5  # no time has passed
    assert take(150, 30) == 0
    assert take(10, 40) == 1  # was reset
    assert take(8, 50) == -0.2  # was decreased
    assert take(1000, 60, epoch=2) == 100  # the agent was restarted: it counted from zero
    assert take(None, 70) is None
    assert take(2000, 80) is None
    assert take(True, 90) is None
