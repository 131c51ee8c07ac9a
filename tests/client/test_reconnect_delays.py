"""Delays before a client connects again."""

from __future__ import annotations

from itertools import islice

import pytest

from qmf.client import ReconnectDelays


def test_delays_double_until_the_longest() -> None:
    assert list(ReconnectDelays(1, 10, 0)) == [1, 2, 4, 8, 10]
    assert list(ReconnectDelays(1, 10, 2)) == [1, 2, 4, 8, 10, 10, 10]
    endless = ReconnectDelays(5, 5)
    assert list(islice(endless, 3)) == [5, 5, 5]
    assert list(islice(endless, 2)) == [5, 5]


@pytest.mark.parametrize(("shortest", "longest"), [(0, 1), (-1, 1), (2, 1)])
def test_delays_that_make_no_sense(shortest: float, longest: float) -> None:
    with pytest.raises(ValueError, match="waiting times must be positive and in order"):
        ReconnectDelays(shortest, longest)
