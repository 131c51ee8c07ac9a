"""What counters gained between readings."""

from __future__ import annotations

import pytest

from qmf.hostagent.collectors.counters import CounterChanges


def test_the_first_reading_has_nothing_to_compare_with() -> None:
    assert CounterChanges[str]().record("eth0", 1.0, 100) is None


def test_gains_and_rates() -> None:
    changes = CounterChanges[str]()
    changes.record("eth0", 1.0, 100, 7)
    change = changes.record("eth0", 3.0, 160, 7)
    assert change is not None
    assert change.seconds == 2.0
    assert list(change.increases) == [60, 0]
    assert change.rate(0) == 30.0


def test_a_counter_that_was_reset_gained_nothing_and_goes_on_from_there() -> None:
    changes = CounterChanges[str]()
    changes.record("eth0", 1.0, 1000)
    reset = changes.record("eth0", 2.0, 10)
    assert reset is not None
    assert list(reset.increases) == [0]
    after = changes.record("eth0", 3.0, 15)
    assert after is not None
    assert list(after.increases) == [5]


@pytest.mark.parametrize("now", [1.0, 0.5])
def test_without_time_passed_there_is_no_rate(now: float) -> None:
    changes = CounterChanges[str]()
    changes.record("eth0", 1.0, 1)
    assert changes.record("eth0", now, 2) is None


def test_forgotten_keys_start_again() -> None:
    changes = CounterChanges[str]()
    changes.record("a", 1.0, 1)
    changes.record("b", 1.0, 1)
    changes.keep({"b"})
    assert changes.record("a", 2.0, 5) is None
    assert changes.record("b", 2.0, 5) is not None
