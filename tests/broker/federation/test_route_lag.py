"""How far routes are behind, from measurements."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from qmf.broker.federation.route_lag import MOST, RouteLag, RouteRate


def test_nothing_waits() -> None:
    lag = RouteLag()
    assert (lag.waiting, lag.behind(9.0, 0)) == (None, 0.0)
    lag.measure(10.0, 500, 0)
    assert lag.waiting == 0
    assert lag.behind(99.0, 500) == 0.0


def test_what_waits_since_the_last_measurement_without_it() -> None:
    lag = RouteLag()
    lag.measure(10.0, 500, 0)
    lag.measure(20.0, 503, 3)
    assert lag.behind(25.0, 500) == 15.0


def test_a_route_that_is_busy_is_not_behind() -> None:
    """There are always messages on their way, but never the same ones."""
    lag = RouteLag()
    for step in range(100):
        lag.measure(10.0 * step, 1_000 * step + 50, 50)
    assert lag.behind(990.0, 99_000) == 10.0


def test_a_route_that_is_as_far_behind_as_it_was_says_so() -> None:
    lag = RouteLag()
    lag.measure(0.0, 100, 0)
    for step in range(1, 31):
        lag.measure(float(step), 100 + 10 * step, 50 if step > 5 else 10 * step)
    assert lag.behind(30.0, 350) == 5.0


def test_another_connection_begins_anew() -> None:
    lag = RouteLag()
    lag.measure(0.0, 5, 5)
    lag.forget()
    assert (lag.waiting, lag.behind(9.0, 0)) == (None, 0.0)


@given(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=4 * MOST))
def test_no_message_is_older_than_said(steps: list[tuple[int, int]]) -> None:
    """Messages come and pass in each step of a second; what is said is at least the age of the oldest one."""
    lag = RouteLag()
    times: list[int] = []
    passed = 0
    lag.measure(-1.0, 0, 0)
    for now, (come, gone) in enumerate(steps):
        times += [now] * come
        passed = min(len(times), passed + gone)
        lag.measure(float(now), len(times), len(times) - passed)
        oldest = now - times[passed] if passed < len(times) else 0
        assert lag.behind(float(now), passed) >= oldest
    assert (lag.behind(float(len(steps)), passed) > 0) == (passed < len(times))


def test_a_rate_is_that_since_the_last_measurement() -> None:
    rate = RouteRate()
    assert [rate.measure(at, count) for at, count in ((10.0, 5), (12.0, 9), (12.0, 20), (13.0, 20))] == [0, 2, 0, 0]
