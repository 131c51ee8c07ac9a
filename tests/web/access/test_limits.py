"""Limits per client, by a clock of the test."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.web.access.limits import FORGET, MAX_CLIENTS, MAX_DELAY, CountLimit, FailureDelays
from qmf.web.problems import Problem


class Clock:
    """Time that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_delays_grow_and_end() -> None:
    clock = Clock()
    delays = FailureDelays(3, clock)
    found = []
    for _ in range(12):
        delays.on_failure("ann", "192.0.2.1")
        found.append(delays.wait("ann", "192.0.2.1"))
        clock.now += found[-1]
        assert delays.wait("ann", "192.0.2.1") == 0
    assert found == [0, 0, 1, 2, 4, 8, 16, 32, MAX_DELAY, MAX_DELAY, MAX_DELAY, MAX_DELAY]
    delays.on_failure("ann", "192.0.2.1")
    assert delays.wait("ann", "192.0.2.1")
    assert not delays.wait("ann", "192.0.2.2")
    assert not delays.wait("bob", "192.0.2.1")
    delays.on_success("ann", "192.0.2.1")
    assert not delays.wait("ann", "192.0.2.1")


def test_old_failures_are_forgotten() -> None:
    clock = Clock()
    delays = FailureDelays(1, clock)
    for _ in range(5):
        delays.on_failure("ann", "a")
    clock.now += MAX_DELAY + FORGET + 1
    delays.on_failure("ann", "a")
    assert delays.wait("ann", "a") == 1


@given(st.lists(st.sampled_from("abc"), max_size=30))
def test_only_the_own_failures_count(tries: list[str]) -> None:
    clock = Clock()
    delays = FailureDelays(2, clock)
    for name in tries:
        delays.on_failure(name, "x")
    for name in "abc":
        assert bool(delays.wait(name, "x")) == (tries.count(name) >= 2)


def test_clients_beyond_those_that_are_remembered() -> None:
    delays = FailureDelays(1, Clock())
    for number in range(MAX_CLIENTS + 1):
        delays.on_failure(str(number), "x")
    assert not delays.wait("0", "x")
    assert delays.wait(str(MAX_CLIENTS), "x")


def test_so_many_at_a_time() -> None:
    limit = CountLimit(2, "streams")
    first = limit.acquire("user ann")
    with limit.one("user ann"), limit.one("user bob"):
        assert limit.open == 3
        with pytest.raises(Problem, match="user ann has 2 streams already"):
            limit.acquire("user ann")
    first()
    first()
    assert limit.open == 0
