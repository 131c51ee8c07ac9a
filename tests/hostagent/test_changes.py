"""What counters gained between readings."""

from __future__ import annotations

import pytest

from qmf.hostagent.changes import Changes


def test_the_first_reading_has_nothing_to_compare_with() -> None:
    assert Changes[str]().step("eth0", 1.0, 100) is None


def test_gains_and_rates() -> None:
    changes = Changes[str]()
    changes.step("eth0", 1.0, 100, 7)
    step = changes.step("eth0", 3.0, 160, 7)
    assert step is not None
    assert step.seconds == 2.0
    assert list(step.gains) == [60, 0]
    assert step.rate(0) == 30.0


def test_a_counter_that_was_reset_gained_nothing_and_goes_on_from_there() -> None:
    changes = Changes[str]()
    changes.step("eth0", 1.0, 1000)
    reset = changes.step("eth0", 2.0, 10)
    assert reset is not None
    assert list(reset.gains) == [0]
    after = changes.step("eth0", 3.0, 15)
    assert after is not None
    assert list(after.gains) == [5]


@pytest.mark.parametrize("now", [1.0, 0.5])
def test_without_time_passed_there_is_no_rate(now: float) -> None:
    changes = Changes[str]()
    changes.step("eth0", 1.0, 1)
    assert changes.step("eth0", now, 2) is None


def test_forgotten_keys_start_again() -> None:
    changes = Changes[str]()
    changes.step("a", 1.0, 1)
    changes.step("b", 1.0, 1)
    changes.keep({"b"})
    assert changes.step("a", 2.0, 5) is None
    assert changes.step("b", 2.0, 5) is not None
