"""When samples are due."""

from __future__ import annotations

from qmf.hostagent.schedule import SamplingSchedule


def test_a_little_lateness_does_not_add_up() -> None:
    schedule = SamplingSchedule(10.0, now=100.0)
    assert schedule.due == 110.0
    assert schedule.begin(110.5) == 0.5
    assert schedule.due == 120.0


def test_beats_that_were_missed_are_not_made_up_for() -> None:
    schedule = SamplingSchedule(10.0, now=100.0)
    assert schedule.begin(135.0) == 25.0
    assert schedule.due == 145.0


def test_early_is_not_late() -> None:
    schedule = SamplingSchedule(10.0, now=100.0)
    assert schedule.begin(109.99) == 0.0
    assert schedule.due == 120.0


def test_another_interval_counts_from_now() -> None:
    schedule = SamplingSchedule(10.0, now=100.0)
    schedule.set_interval(2.0, now=103.0)
    assert schedule.due == 105.0
    schedule.begin(105.0)
    assert schedule.due == 107.0
