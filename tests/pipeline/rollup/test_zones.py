"""Days and windows of time zones, by Python's rules and as SQL."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.pipeline.rollup.zones import UTC, WindowGrid, Zone

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.duckdb_queries import connect

SECOND = 10**9

#: Clocks are changed at night, at midnight, by half an hour, and a day is left out.
ZONES = ("Europe/Berlin", "America/Havana", "America/Sao_Paulo", "Australia/Lord_Howe", "Pacific/Apia", "UTC")


def test_a_day_is_as_long_as_the_clocks_say() -> None:
    berlin = Zone("Europe/Berlin")
    lengths = {
        day: (berlin.end_ns(day) - berlin.start_ns(day)) // SECOND // 3600
        for day in ("2026-03-28", "2026-03-29", "2026-10-25")
    }
    assert lengths == {"2026-03-28": 24, "2026-03-29": 23, "2026-10-25": 25}
    assert berlin.days_of(["2026-03-29"]) == ["2026-03-29", "2026-03-30"]
    assert UTC.days_of(["2026-03-29"]) == ["2026-03-29"]


@pytest.fixture(scope="module")
def connection() -> Iterator[Any]:
    with closing(connect()) as made:
        yield made


@given(
    name=st.sampled_from(ZONES),
    size=st.sampled_from([60, 900, 3600, 21_600, 86_400]),
    times=st.lists(st.integers(1_262_304_000 * SECOND, 1_420_070_400 * SECOND), min_size=1, max_size=20),
)
def test_windows_are_those_of_the_day_in_sql_as_well(connection: Any, name: str, size: int, times: list[int]) -> None:
    zone = Zone(name)
    grid = WindowGrid(size, zone.spans(min(times), max(times)))
    rows = connection.execute(
        # A step each: expressions within expressions would repeat the days of a zone by their product.
        f"select t, start, {grid.end('start')}, {grid.day('second')} from ("
        f"select t, {grid.start('t')} as start, t // 1000000000 as second from (select unnest({times}) as t))"
    ).fetchall()
    for time, start, end, day in rows:
        first, last = zone.start_ns(zone.day(time)), zone.end_ns(zone.day(time))
        assert day * SECOND == first
        assert zone.floor_ns(time, size) == start * SECOND <= time < end * SECOND <= last
        assert end - start == size or end * SECOND == last
