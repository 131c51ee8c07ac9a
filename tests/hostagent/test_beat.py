"""When samples are due."""

from __future__ import annotations

from qmf.hostagent.beat import Beat


def test_a_little_lateness_does_not_add_up() -> None:
    beat = Beat(10.0, now=100.0)
    assert beat.due == 110.0
    assert beat.began(110.5) == 0.5
    assert beat.due == 120.0


def test_beats_that_were_missed_are_not_made_up_for() -> None:
    beat = Beat(10.0, now=100.0)
    assert beat.began(135.0) == 25.0
    assert beat.due == 145.0


def test_early_is_not_late() -> None:
    beat = Beat(10.0, now=100.0)
    assert beat.began(109.99) == 0.0
    assert beat.due == 120.0


def test_another_interval_counts_from_now() -> None:
    beat = Beat(10.0, now=100.0)
    beat.change(2.0, now=103.0)
    assert beat.due == 105.0
    beat.began(105.0)
    assert beat.due == 107.0
