"""Detectors of what is absent: known answers, of heartbeats and of their intervals."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pipeline.detecting import ABSENCE, SECOND, drive, rule, run, short, signal

from qmf.pipeline.correlate.detectors import create_detector
from qmf.pipeline.correlate.detectors.base import BEGIN, GONE, OPEN, DetectorContext, Signal
from qmf.pipeline.correlate.lake_rows import ended_runs
from qmf.pipeline.record.buffers import Cells
from qmf.pipeline.record.heartbeats import HeartbeatIntervals


@pytest.mark.parametrize(
    ("keys", "beats", "gone", "silent", "wanted"),
    [
        ("", [0, 10, 20], [], [], [("raised", 20, 30)]),
        ("", [0, 10, 21], [], [], [("raised", 0 + 10, 20), ("cleared", 10, 21), ("raised", 21, 31)]),
        ("", [0], [5], [], [("raised", 0, 10)]),
        ("goodbye = false", [0], [5], [], []),
        ("goodbye = false", [0, 20], [15], [], [("raised", 0, 10), ("cleared", 0, 15), ("raised", 20, 30)]),
        # Nobody recorded: the wait begins again with the recorder.
        ("", [0], [], [(5, 50)], [("raised", 0, 60)]),
        ("", [0, 55], [], [(5, 50)], [("raised", 55, 65)]),
        ("", [0], [], [(5, 50), (55, 70)], [("raised", 0, 80)]),
        ("", [0], [], [(20, 50)], [("raised", 0, 10)]),
        ("", [60], [], [(5, 50)], [("raised", 60, 70)]),
        (
            'forget = "30s"',
            [0, 50],
            [],
            [],
            [("raised", 0, 10), ("cleared", 0, 30), ("raised", 50, 60), ("cleared", 50, 80)],
        ),
    ],
)
def test_absence(
    keys: str, beats: list[float], gone: list[float], silent: list[tuple[int, int]], wanted: object
) -> None:
    signals = sorted([signal(at) for at in beats] + [signal(at, role=GONE) for at in gone])
    spans = [(begin * SECOND, end * SECOND) for begin, end in silent]
    assert drive(rule(ABSENCE + keys), signals, 99, silent=spans) == wanted


def interval_signals(beats: Sequence[float], *, until: float, run: str = "r") -> list[Signal]:
    """The rows of heartbeats as intervals, as signals; batches are written each ten seconds."""
    found: list[Signal] = []
    now = 0.0

    def add(_time_ns: int, agent: str | None, _epoch: int | None, cells: Cells) -> None:
        _interval, _first, _count, silent, open_until = cells
        if agent is not None:
            at = round(now * SECOND)
            value = -silent if open_until is None else open_until - at  # type: ignore[operator]
            found.append(signal(now, value, role=OPEN if open_until is not None else 0, run=run))

    intervals = HeartbeatIntervals(add, lambda: round(now * SECOND))
    for at in sorted([*((at, True) for at in beats), *((10.0 * n, False) for n in range(int(until) // 10))]):
        now = at[0]
        if at[1]:
            intervals.on_heartbeat("a", 1, 10.0, round(now * SECOND))
        else:
            intervals.write()
    return found


@example([0.0, 10, 20, 120, 130])
@given(st.lists(st.integers(0, 3000).map(float), min_size=1, max_size=40, unique=True))
def test_intervals_of_heartbeats_give_the_alerts_of_heartbeats(times: list[float]) -> None:
    made = rule(ABSENCE.replace("10s", "40s"))
    beats = sorted([*times, *(at + 10 for at in times), *(at + 20 for at in times)])
    raised = drive(made, [signal(at) for at in beats], 9000)
    assert drive(made, interval_signals(beats, until=4000), 9000) == raised


def test_an_open_interval_lasts_until_its_recorder_ends() -> None:
    beats = [10.0 * number for number in range(13)]
    signals = interval_signals(beats, until=121)
    outage = [(125 * SECOND, 130 * SECOND)]
    made = rule(ABSENCE.replace("10s", "40s"))
    # The row promises ten minutes; nobody recorded from 125 to 130, and no recorder heard it again.
    assert drive(made, signals, 9000, silent=outage) == [("raised", 125, 170)]
    assert drive(made, [*signals, signal(150)], 9000, silent=outage) == [("raised", 150, 190)]
    # The outage is known only later.
    context = DetectorContext()
    detector = create_detector(made, "a", context)
    assert run(detector, signals, 124) == []
    state = detector.dump(124 * SECOND)
    assert state is not None
    for found in (detector, create_detector(made, "a", context)):
        if found is not detector:
            context.outages = ()
            found.load(state)
        context.outages = outage
        found.on_ends_known()
        assert found.due == 165 * SECOND
        assert [short(change) for change in run(found, [], 9000)] == [("raised", 125, 170)]


def test_of_two_recorders_one_is_enough() -> None:
    made = rule(ABSENCE.replace("10s", "40s"))
    both = [signal(0, 600e9, role=OPEN, run="one"), signal(1, 600e9, role=OPEN, run="two")]
    ended = signal(100, -20e9, run="one")
    assert drive(made, [*both, ended], 500) == []
    assert drive(made, [*both, ended, signal(200, -15e9, run="two")], 500) == [("raised", 185, 225)]
    # The other one was killed, and had its last row at 90: it is believed for a minute.
    runs = {"one": (0, 400 * SECOND), "two": (0, 90 * SECOND)}
    assert ended_runs(runs) == {"two": 150 * SECOND}
    detector = create_detector(made, "a", DetectorContext((), ended_runs(runs)))
    assert [short(change) for change in run(detector, [*both, ended], 500)] == [("raised", 150, 190)]


def test_what_must_be_there_is_absent_from_the_beginning() -> None:
    made = rule('kind = "absent"\nclass = "c"\nfor = "10s"')
    begin = signal(5, role=BEGIN, agent=None, object=None)
    assert drive(made, [begin], 99) == [("raised", 5, 15)]
    assert drive(made, [begin, signal(20), signal(25), signal(60)], 65) == [
        ("raised", 5, 15), ("cleared", 5, 20), ("raised", 25, 35), ("cleared", 25, 60)
    ]  # fmt: skip
    assert drive(made, [signal(1), begin], 9) == []
    assert drive(made, [begin], 99, silent=[(7 * SECOND, 50 * SECOND)]) == [("raised", 5, 60)]
