"""Values over time."""

from __future__ import annotations

import itertools

import pytest

from qmf.console.aio import ObjectId
from qmf.views.rates import growth_rates
from qmf.web.pages.live import series as module
from qmf.web.pages.live.series import KEPT, OLDER, RECENT, PlottedSeries, SeriesStore, TooManySeriesError

ORDERS = ObjectId("queue:orders", "agent")


def test_points_come_in_order_and_older_ones_are_ignored() -> None:
    series = PlottedSeries()
    for at, value in ((1.0, 5.0), (2.0, 6.0), (1.5, 7.0), (2.0, 8.0), (3.0, 9.0)):
        series.add(at, value)
    assert list(series.points()) == [(1.0, 5.0), (2.0, 6.0), (3.0, 9.0)]
    assert series.last_time == 3.0


def test_a_plot_begins_with_the_value_that_held_at_its_edge() -> None:
    series = PlottedSeries()
    for at in range(10):
        series.add(at, at)
    assert list(series.points(6.5)) == [(6.0, 6.0), (7.0, 7.0), (8.0, 8.0), (9.0, 9.0)]
    assert list(series.points(100)) == [(9.0, 9.0)]


def test_a_value_that_was_not_published_stayed_as_it_was() -> None:
    series = PlottedSeries()
    series.add(0, 10, quiet=2)
    series.add(2, 20, quiet=2)
    series.add(60, 120, quiet=2)
    assert list(series.points()) == [(0, 10), (2, 20), (58, 20), (60, 120)]
    assert list(growth_rates(series.points())) == [(2, 5), (58, 0), (60, 50)]


def test_memory_is_bounded_and_reaches_back_to_the_beginning() -> None:
    series = PlottedSeries()
    day = 86_400
    for at in range(day):
        series.add(at, at % 100)
    points = list(series.points())
    assert len(series) == len(points) <= RECENT + OLDER
    assert points[0] == (0.0, 0.0)
    assert points[-1][0] == day - 1
    assert [at for at, _ in points[-RECENT:]] == [float(at) for at in range(day - RECENT, day)]
    gaps = [two[0] - one[0] for one, two in itertools.pairwise(points[:-RECENT])]
    assert max(gaps) <= 2 * min(gaps)


def test_series_of_objects_stay_for_a_while_and_survive_restarts_of_the_agent() -> None:
    now = 0.0
    store = SeriesStore(lambda: now)
    release = store.watch([(ORDERS, "depth"), (ORDERS, "depth")])
    again = store.watch([(ObjectId("queue:orders", "agent", 7), "depth")])
    assert len(store) == 1
    found = store.series_of(ORDERS)["depth"]
    found.add(1, 2)
    release()
    release()
    now = 10 * KEPT
    store.expire()
    assert store.get((ORDERS, "depth")) is found
    again()
    now += KEPT - 1
    store.expire()
    assert store.get((ORDERS, "depth")) is found
    now += 2
    store.expire()
    assert len(store) == 0
    assert store.series_of(ORDERS) == {}


def test_too_many_series_are_refused_and_those_left_alone_go_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_SERIES", 2)
    store = SeriesStore(lambda: 0.0)
    store.watch([(ORDERS, "a")])
    release = store.watch([(ORDERS, "b")])
    with pytest.raises(TooManySeriesError, match="2 values are being recorded"):
        store.watch([(ORDERS, "c")])
    release()
    store.watch([(ORDERS, "c")])
    assert sorted(store.series_of(ORDERS)) == ["a", "c"]
