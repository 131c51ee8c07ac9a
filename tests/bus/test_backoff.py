"""Waits between attempts."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.bus import Backoff


def first(backoff: Backoff, count: int) -> list[float]:
    return list(itertools.islice(backoff.delays(), count))


def test_waits_double_up_to_the_limit() -> None:
    assert first(Backoff(first=0.5, factor=2, limit=3, jitter=0.5, random=lambda: 0.0), 5) == [0.5, 1, 2, 3, 3]


def test_jitter_shortens_waits_by_chance() -> None:
    chances = iter([0.0, 0.5, 0.9])
    backoff = Backoff(first=1, factor=1, limit=1, jitter=0.5, random=lambda: next(chances))
    assert first(backoff, 3) == pytest.approx([1, 0.75, 0.55])


@given(st.floats(0, 0.999))
def test_waits_are_spread_over_their_steps(chance: float) -> None:
    for wait, step in zip(
        first(Backoff(random=lambda: chance), 12), first(Backoff(random=lambda: 0.0), 12), strict=True
    ):
        assert wait == pytest.approx(step * (1 - chance))
        assert 0 < wait <= step <= 30


def test_every_loss_starts_from_the_beginning() -> None:
    backoff = Backoff(random=lambda: 0.0)
    assert first(backoff, 3) == first(backoff, 3)
