"""Heartbeats as intervals: each heartbeat is in one of them, and each that was missed lies between two."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from qmf.pipeline.lake.heartbeats import LONGEST_NS
from qmf.pipeline.record.buffers import Cells
from qmf.pipeline.record.heartbeats import HeartbeatIntervals, missed_after_ns

SECOND = 10**9
DAY = 86_400


@attrs.frozen
class Row:
    """A row, with times in seconds; `written` is its arrival."""

    agent: str | None
    epoch: int | None
    written: float
    first: float
    last: float
    count: int
    silent: float
    goes_on: bool


class Recorder:
    """Heartbeats at given times, and the rows made of them; batches are written every ten seconds."""

    def __init__(self) -> None:
        self.now = 0.0
        self.rows: list[Row] = []
        self.intervals = HeartbeatIntervals(self._add, lambda: round(self.now * SECOND))

    def _add(self, time_ns: int, agent: str | None, epoch: int | None, cells: Cells) -> None:
        _interval, first, count, silent, until = cells
        assert isinstance(first, int)
        assert isinstance(count, int)
        assert isinstance(silent, int)
        times = (first / SECOND, time_ns / SECOND)
        self.rows.append(Row(agent, epoch, self.now, *times, count, silent / SECOND, until is not None))

    def hear(self, *beats: tuple[float, str], interval: float = 10.0, epoch: int = 1) -> None:
        """Heartbeats at times, of agents."""
        for at, agent in beats:
            while self.now // 10 < at // 10:
                self.now = (self.now // 10 + 1) * 10
                self.intervals.write()
            self.now = at
            self.intervals.on_heartbeat(agent, epoch, interval, round(at * SECOND))

    def of(self, agent: str | None = "a") -> list[Row]:
        return [row for row in self.rows if row.agent == agent]

    def numbers(self, agent: str | None = "a") -> list[tuple[float, float, int, bool]]:
        return [(row.first, row.last, row.count, row.goes_on) for row in self.of(agent)]


def regular(first: float, last: float, agent: str = "a") -> list[tuple[float, str]]:
    """A heartbeat each ten seconds."""
    return [(first + 10 * number, agent) for number in range(int(last - first) // 10 + 1)]


def test_an_hour_of_heartbeats_is_seven_rows() -> None:
    recorder = Recorder()
    recorder.hear(*regular(0, 3600))
    assert recorder.numbers() == [(0, 0, 1, True)] + [
        (600 * at + 10, 600 * at + 600, 60, True) for at in range(6)
    ]  # fmt: skip
    assert sum(row.count for row in recorder.of(None)) == 360
    assert {row.silent for row in recorder.rows} == {0}


def test_a_missed_heartbeat_ends_an_interval() -> None:
    recorder = Recorder()
    recorder.hear(*regular(0, 60), *regular(100, 120))
    assert recorder.numbers() == [(0, 0, 1, True), (10, 60, 6, False), (100, 100, 1, True)]
    (_, ended, _) = recorder.of()
    # The next batch notices it.
    assert (ended.written, ended.silent) == (80, 20)


def test_the_end_of_an_agent_and_that_of_the_recorder_end_intervals() -> None:
    recorder = Recorder()
    recorder.hear(*regular(0, 20), *regular(22, 32, "b"))
    recorder.intervals.end("a")
    recorder.intervals.end("unknown")
    recorder.intervals.close()
    assert recorder.numbers() == [(0, 0, 1, True), (10, 20, 2, False)]
    assert recorder.numbers("b") == [(22, 22, 1, True), (32, 32, 1, False)]
    assert recorder.intervals.age() == 0


def test_a_row_belongs_to_one_day_and_one_start_of_the_agent() -> None:
    recorder = Recorder()
    recorder.hear(*regular(DAY - 20, DAY + 20))
    recorder.hear((DAY + 30, "a"), epoch=2)
    assert recorder.numbers() == [
        (DAY - 20, DAY - 20, 1, True),
        (DAY - 10, DAY - 10, 1, True),
        (DAY, DAY + 20, 3, False),
        (DAY + 30, DAY + 30, 1, True),
    ]
    assert [row.epoch for row in recorder.of()] == [1, 1, 1, 2]


@pytest.mark.parametrize("shift", [-5000, 5000])
def test_a_recorders_clock_that_is_set_begins_a_new_interval(shift: float) -> None:
    recorder = Recorder()
    recorder.now = 10_000
    recorder.hear(*regular(10_000, 10_020))
    recorder.now += shift
    recorder.intervals.on_heartbeat("a", 1, 10.0, 10_030 * SECOND)
    assert recorder.numbers() == [(10_000, 10_000, 1, True), (10_010, 10_020, 2, False), (10_030, 10_030, 1, True)]


def test_age_grows_while_agents_are_there() -> None:
    recorder = Recorder()
    recorder.now = 5
    assert recorder.intervals.age() == 0
    recorder.hear((7, "a"))
    recorder.intervals.write()
    recorder.now = 9
    assert recorder.intervals.age() == 2


@pytest.mark.parametrize(("interval", "limit"), [(10, 15), (1, 3), (0.1, 2.1), (0, 90)])
def test_half_an_interval_late_is_missed(interval: float, limit: float) -> None:
    assert missed_after_ns(interval) == round(limit * SECOND)


@given(st.lists(st.tuples(st.integers(1, 400), st.sampled_from("ab")), max_size=60))
def test_gaps_are_those_of_the_heartbeats(steps: Sequence[tuple[int, str]]) -> None:
    times = itertools.accumulate(step for step, _agent in steps)
    beats: list[tuple[float, str]] = list(zip(times, (agent for _step, agent in steps), strict=True))
    recorder = Recorder()
    recorder.hear(*beats)
    recorder.intervals.close()
    for agent in "ab":
        own = [at for at, name in beats if name == agent]
        wanted = [(one, two) for one, two in itertools.pairwise(own) if two - one > 15]
        rows = recorder.of(agent)
        assert sum(row.count for row in rows) == len(own)
        assert [
            (one.last, two.first) for one, two in itertools.pairwise(rows) if not one.goes_on
        ] == wanted  # fmt: skip
        assert all(row.last == row.written - row.silent for row in rows)
        assert all(
            two.written - one.written <= LONGEST_NS / SECOND + 25
            for one, two in itertools.pairwise(rows)
            if one.goes_on
        )
        assert not rows or not rows[-1].goes_on
