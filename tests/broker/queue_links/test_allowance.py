"""Limits of count and rate, by a clock of the test's own."""

from __future__ import annotations

import pytest

from qmf.broker.queue_links.allowance import Allowance


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_without_limits_there_is_always_room() -> None:
    allowance = Allowance(0, 0, Clock())
    assert allowance.room(1_000_000) > 1_000_000
    assert (allowance.wait(), allowance.is_used_up) == (0.0, False)


def test_a_limit_of_the_whole_counts_what_is_under_way() -> None:
    allowance = Allowance(5, 0, Clock(), passed=2)
    assert (allowance.room(0), allowance.room(2), allowance.room(4)) == (3, 1, 0)
    allowance.passed = 5
    assert (allowance.room(0), allowance.is_used_up) == (0, True)


def test_a_rate_gives_a_message_now_and_the_others_in_time() -> None:
    clock = Clock()
    allowance = Allowance(0, 20, clock)
    assert allowance.room(0) == 1
    allowance.take(1)
    assert allowance.room(0) == 0
    assert allowance.wait() == pytest.approx(0.05)
    clock.now += 0.05
    assert (allowance.room(0), allowance.wait()) == (1, 0.0)
    clock.now += 60  # nothing is saved up for longer than a moment
    assert allowance.room(0) == 2


def test_who_found_no_room_has_to_wait_even_if_there_is_some_a_moment_later() -> None:
    clock = Clock()
    allowance = Allowance(0, 20, clock)
    allowance.take(1)
    assert allowance.room(0) == 0
    clock.now += 0.06
    assert allowance.wait() > 0
    assert (allowance.room(0), allowance.wait()) == (1, 0.0)
