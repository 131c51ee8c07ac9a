"""Values between and after samples, as far as they are known."""

from __future__ import annotations

import pytest

from qmf.pipeline.report.known_spans import KnownSpans
from qmf.pipeline.report.time_range import NS, TimeRange

#: An hour, in windows of 30 s.
SPAN = TimeRange(36_000 * NS, 39_600 * NS)
KEY = ("queue", "a", "q")
BEGIN, STEP = 36_000.0, 30


def spans(*up: tuple[float, float], known: float = 3600.0, ended: float | None = None) -> KnownSpans:
    return KnownSpans(
        SPAN,
        {"a": [(BEGIN + first, BEGIN + last) for first, last in up]},
        {"a": BEGIN + known},
        {} if ended is None else {KEY: BEGIN + ended},
    )


def at(points: list[tuple[float, float]]) -> list[tuple[float, float]]:
    return [(t - BEGIN, value) for t, value in points]


def gauge(own: KnownSpans, *points: tuple[float, float]) -> list[tuple[float, float]]:
    return at(own.gauge(KEY, [(BEGIN + t, value) for t, value in points]))


def counter(own: KnownSpans, *points: tuple[float, float, float]) -> list[tuple[float, float]]:
    return at(own.counter(KEY, [(BEGIN + t, BEGIN + before, value) for t, before, value in points]))


def test_a_gauge_holds_its_value_until_the_next_sample() -> None:
    found = gauge(spans((0, 3600), known=210), (0, 1.0), (90, 2.0))
    assert found == [(0, 1), (30, 1), (60, 1), (90, 2), (120, 2), (150, 2), (180, 2)]


def test_a_gauge_is_not_known_while_its_agent_is_away() -> None:
    found = gauge(spans((0, 70), (150, 3600), known=190), (0, 1.0), (150, 2.0))
    assert found == [(0, 1), (30, 1), (60, 1), (150, 2), (180, 2)]


def test_a_gauge_ends_with_its_object() -> None:
    assert gauge(spans((0, 3600), ended=80), (0, 1.0)) == [(0, 1), (30, 1), (60, 1)]


def test_nothing_is_held_where_the_agent_is_not_known() -> None:
    assert gauge(spans(), (0, 1.0), (90, 2.0)) == [(0, 1), (90, 2)]


def test_growth_belongs_to_the_time_since_the_sample_before() -> None:
    # Published each 60 s: the window between has the same rate.
    found = counter(spans((0, 3600), known=190), (60, 0, 5.0), (120, 60, 7.0))
    assert found == [(0, 5), (30, 5), (60, 5), (90, 7), (120, 7)]


def test_a_counter_that_is_not_published_any_more_does_not_grow() -> None:
    found = counter(spans((0, 3600), known=300), (0, -10, 5.0), (30, 10, 5.0))
    assert found == [(0, 5), (30, 5), *((float(t), 0.0) for t in range(60, 300, 30))]


@pytest.mark.parametrize("make", [lambda own: own.gauge(KEY, []), lambda own: own.counter(KEY, [])])
def test_no_samples(make: object) -> None:
    assert callable(make)
    assert make(spans((0, 3600))) == []
