"""Detectors: known answers, and states that can be stored between any two signals."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from qmf.pipeline.correlate import Rule, parse_rules
from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.detectors import create_detector
from qmf.pipeline.correlate.detectors.base import (
    BEGIN,
    GONE,
    OPEN,
    Detector,
    DetectorContext,
    Signal,
    alert_id,
)
from qmf.pipeline.correlate.detectors.events import EVENT, MATCHING, OTHER
from qmf.pipeline.correlate.detectors.values import DIVIDEND, DIVISOR
from qmf.pipeline.correlate.lake_rows import ConnectionChange, ended_runs, outages
from qmf.pipeline.record.buffers import Cells
from qmf.pipeline.record.heartbeats import HeartbeatIntervals
from qmf.schema import Severity

SECOND = 10**9


def rule(text: str) -> Rule:
    (made,) = parse_rules(f"[r]\n{text}")
    return made


def signal(at: float, value: float | None = None, *, role: int = 0, **more: Any) -> Signal:
    ns = round(at * SECOND)
    values = {"epoch": 1, "ident": None, "agent": "a", "object": "o", "fields": None, "run": "r", "seq": ns, **more}
    return Signal(at=ns, ts=ns, role=role, value=value, **values)


def drive(
    of: Rule, signals: Sequence[Signal], until: float, *, silent: Sequence[tuple[int, int]] = ()
) -> list[tuple[str, float, float]]:
    """The changes: raised or cleared, the start of the incident, and the time of the change, in seconds."""
    detector = create_detector(of, "a\no", DetectorContext(silent))
    return [short(change) for change in run(detector, signals, until)]


def run(detector: Detector, signals: Sequence[Signal], until: float) -> list[AlertRow]:
    for item in signals:
        if detector.due < item.at:
            detector.advance(item.at)
        detector.feed(item)
    detector.advance(round(until * SECOND))
    return detector.changes


def short(change: AlertRow) -> tuple[str, float, float]:
    return (change.change, change.began_ns / SECOND, change.at_ns / SECOND)


JOIN = 'kind = "join"\nevent = {name = "e"}\nobject = {class = "c"}\nwithin = "10s"'

THRESHOLD = 'kind = "threshold"\nclass = "c"\nvalue = "x"\n'


def series(*pairs: tuple[float, float]) -> list[Signal]:
    return [signal(at, value) for at, value in pairs]


@pytest.mark.parametrize(
    ("keys", "samples", "until", "wanted"),
    [
        ("above = 5", [(1, 5), (2, 6), (3, 7), (4, 5)], 9, [("raised", 2, 2), ("cleared", 2, 4)]),
        ("below = 5", [(1, 5), (2, 4), (3, 5)], 9, [("raised", 2, 2), ("cleared", 2, 3)]),
        # Hysteresis: between the limits nothing changes.
        ("above = 5\nclear = 3", [(1, 6), (2, 4), (3, 6), (4, 3)], 9, [("raised", 1, 1), ("cleared", 1, 4)]),
        # Too short, twice; then long enough, without a sample at that time.
        (
            'above = 5\nfor = "10s"',
            [(0, 6), (9, 5), (10, 6), (19, 5), (20, 6), (25, 7)],
            99,
            [("raised", 20, 30)],
        ),
        # At the very end of the time the sample decides.
        ('above = 5\nfor = "10s"', [(0, 6), (10, 5)], 99, []),
        ('above = 5\nfor = "10s"', [(0, 6), (10, 6)], 99, [("raised", 0, 10)]),
        ('above = 5\nfor = "10s"', [(0, 6)], 10, []),
        # A stale value is discarded, before and after the alert.
        ('above = 5\nfor = "10s"\nstale = "8s"', [(0, 6), (9, 6)], 99, []),
        (
            'above = 5\nfor = "5s"\nstale = "8s"',
            [(0, 6), (4, 6), (20, 6)],
            99,
            [("raised", 0, 5), ("cleared", 0, 12), ("raised", 20, 25), ("cleared", 20, 28)],
        ),
    ],
)
def test_thresholds(keys: str, samples: list[tuple[float, float]], until: float, wanted: object) -> None:
    assert drive(rule(THRESHOLD + keys), series(*samples), until) == wanted


def test_a_deleted_object_clears_its_alert() -> None:
    signals = [signal(1, 6), signal(2, 6, role=GONE), signal(3, 6)]
    assert drive(rule(THRESHOLD + "above = 5"), signals, 9) == [("raised", 1, 1), ("cleared", 1, 2), ("raised", 3, 3)]


def test_the_evidence_is_the_first_the_worst_and_the_last_sample() -> None:
    made = rule(THRESHOLD + 'above = 5\nfor = "10s"\nmessage = "{object} of {colour}: {value:.1f} since {began}"')
    detector = create_detector(made, "a\no", DetectorContext())
    values = [(0, 6), (3, 9), (4, 8), (12, 7)]
    signals = [signal(at, value, fields='{"colour":"red"}') for at, value in values]
    (change,) = run(detector, signals, 99)
    # It was fulfilled at 10 s, when 8 was the last that was known.
    assert [(item["seq"] // SECOND, item["value"], item["colour"]) for item in json.loads(change.evidence)] == [
        (0, 6, "red"),
        (3, 9, "red"),
        (4, 8, "red"),
    ]
    assert json.loads(change.evidence)[0]["time"] == "1970-01-01T00:00:00.000000Z"
    assert change.message == "o of red: 8.0 since 1970-01-01T00:00:00.000000Z"
    assert (change.window_start_ns, change.window_end_ns, change.value) == (0, 10 * SECOND, 8)


RATE = 'kind = "rate"\nclass = "c"\nvalue = "x"\n'


@pytest.mark.parametrize(
    ("keys", "samples", "wanted"),
    [
        # Values and epochs: 10 a second is the limit.
        ("above = 10", [(0, 0, 1), (1, 10, 1), (2, 21, 1), (3, 31, 1)], [("raised", 2, 2), ("cleared", 2, 3)]),
        ("below = -10", [(0, 0, 1), (1, -10, 1), (2, -21, 1)], [("raised", 2, 2)]),
        # A gauge that falls is no restart, and another epoch is no change.
        ("above = 10", [(0, 90, 1), (1, 0, 1), (2, 100, 2), (3, 105, 2)], []),
        # A counter that falls counts from zero, as does one of another epoch.
        ("above = 10\ncounter = true", [(0, 90, 1), (1, 9, 1), (2, 20, 1)], [("raised", 2, 2)]),
        ("above = 10\ncounter = true", [(0, 90, 1), (1, 95, 2)], [("raised", 1, 1)]),
        ("above = 10\ncounter = true\ncontinued = true", [(0, 90, 1), (1, 95, 2)], []),
        ("above = 10\ncounter = true", [(0, 90, 1), (1, 95, None), (2, 96, 1)], []),
        # Over a longer time jumps are evened out: 21 in 2 s, then 22 in 2 s.
        ('above = 10\nover = "2s"', [(0, 0, 1), (1, 1, 1), (2, 20, 1), (3, 22, 1)], [("raised", 3, 3)]),
        # ... and one that is not known for so long yet is none.
        ('above = 10\nover = "2s"', [(0, 0, 1), (1, 90, 1)], []),
        # No time, no rate; what came is counted in the next step.
        ("above = 10", [(0, 0, 1), (1, 5, 1), (1, 9, 1), (2, 18, 1)], []),
        ("above = 10", [(0, 0, 1), (1, 5, 1), (1, 9, 1), (2, 20, 1)], [("raised", 2, 2)]),
        # Nothing to compare with after a long silence.
        ('above = 10\nstale = "5s"', [(0, 0, 1), (6, 100, 1), (7, 101, 1)], []),
    ],
)
def test_rates(keys: str, samples: list[tuple[float, float, int | None]], wanted: object) -> None:
    signals = [signal(at, value, epoch=epoch) for at, value, epoch in samples]
    assert drive(rule(RATE + keys), signals, 9) == wanted


ABSENCE = 'kind = "absence"\nof = "heartbeats"\nfor = "10s"\n'


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


SEQUENCE = """kind = "sequence"
within = "10s"
steps = [{event = "a"}, {event = "b"}, {event = "c"}]
"""


@pytest.mark.parametrize(
    ("events", "wanted"),
    [
        ([(0, "a"), (1, "b"), (2, "c")], [("raised", 0, 2), ("cleared", 0, 12)]),
        ([(0, "a"), (1, "c"), (2, "b")], []),
        ([(0, "a"), (5, "b"), (11, "c")], []),
        ([(0, "a"), (5, "b"), (10, "c")], [("raised", 0, 10), ("cleared", 0, 20)]),
        # The youngest beginning that has come as far counts.
        ([(0, "a"), (4, "a"), (5, "b"), (14, "c")], [("raised", 4, 14), ("cleared", 4, 24)]),
        # Others in between don't matter; what was used is used up.
        ([(0, "a"), (1, "c"), (2, "b"), (3, "c"), (4, "c")], [("raised", 0, 3), ("cleared", 0, 13)]),
        # Again while it is open is the same incident, which lasts longer.
        (
            [(0, "a"), (1, "b"), (2, "c"), (3, "a"), (4, "b"), (5, "c"), (30, "a"), (31, "b"), (32, "c")],
            [("raised", 0, 2), ("cleared", 0, 15), ("raised", 30, 32), ("cleared", 30, 42)],
        ),
    ],
)
def test_sequences(events: list[tuple[float, str]], wanted: object) -> None:
    signals = [signal(at, role=1 << "abc".index(name)) for at, name in events]
    assert drive(rule(SEQUENCE), signals, 99) == wanted


def test_one_event_is_one_step() -> None:
    made = rule('kind = "sequence"\nwithin = "10s"\nsteps = [{event = "a"}, {event = "a"}]')
    assert drive(made, [signal(0, role=3)], 9) == []
    assert drive(made, [signal(0, role=3, ident="1"), signal(0, role=3, ident="1")], 9) == []
    assert drive(made, [signal(0, role=3, ident="1"), signal(1, role=3, ident="2")], 9) == [("raised", 0, 1)]


@pytest.mark.parametrize(
    ("times", "wanted"),
    [
        ([0, 1], []),
        ([0, 1, 10], []),
        ([0, 1, 9], [("raised", 0, 9), ("cleared", 0, 10)]),
        ([0, 1, 2, 8, 9], [("raised", 0, 2), ("cleared", 0, 12)]),
        ([0, 1, 2, 10, 11, 30], [("raised", 0, 2), ("cleared", 0, 12)]),
        ([0, 1, 2, 30, 31, 32], [("raised", 0, 2), ("cleared", 0, 10), ("raised", 30, 32), ("cleared", 30, 40)]),
    ],
)
def test_counts(times: list[float], wanted: object) -> None:
    made = rule('kind = "count"\nevent = "a"\nat_least = 3\nwithin = "10s"')
    assert drive(made, [signal(at, ident=str(n)) for n, at in enumerate(times)], 99) == wanted


def test_an_event_that_was_recorded_twice_counts_once() -> None:
    made = rule('kind = "count"\nevent = "a"\nat_least = 3\nwithin = "10s"')
    assert drive(made, [signal(at, ident=str(at)) for at in (0, 0, 1, 1)], 99) == []


@pytest.mark.parametrize(
    ("signals", "wanted"),
    [
        ([(0, MATCHING), (1, EVENT), (2, EVENT), (3, OTHER)], [("raised", 1, 1), ("cleared", 1, 3)]),
        ([(0, OTHER), (1, EVENT), (2, MATCHING), (3, GONE)], [("raised", 1, 2), ("cleared", 1, 3)]),
        ([(0, MATCHING), (1, OTHER), (2, EVENT)], []),
        # Too old, or too late.
        ([(0, MATCHING), (11, EVENT)], []),
        ([(0, EVENT), (11, MATCHING)], []),
        ([(0, EVENT), (9, EVENT), (11, MATCHING)], [("raised", 9, 11)]),
    ],
)
def test_joins(signals: list[tuple[float, int]], wanted: object) -> None:
    made = rule(JOIN)
    assert drive(made, [signal(at, role=role) for at, role in signals], 99) == wanted


LEVELS = """
for = "10s"
levels = [{severity = "warn", above = 5, clear = 4}, {severity = "crit", above = 8, for = "2s"}]
"""


def severities(of: Rule, signals: Sequence[Signal], until: float) -> list[tuple[str, str, float]]:
    detector = create_detector(of, "a\no", DetectorContext())
    found = run(detector, signals, until)
    return [(change.change, Severity(change.severity).name, change.at_ns / SECOND) for change in found]


@pytest.mark.parametrize(
    ("samples", "wanted"),
    [
        ([(0, 6), (12, 3)], [("raised", "WARN", 10), ("cleared", "WARN", 12)]),
        # The higher level applies after its own time, and the lower one with it.
        ([(0, 9), (5, 6), (6, 4)], [("raised", "CRIT", 2), ("changed", "WARN", 5), ("cleared", "WARN", 6)]),
        (
            [(0, 6), (11, 9), (20, 7), (30, 9), (31, 5)],
            [("raised", "WARN", 10), ("changed", "CRIT", 13), ("changed", "WARN", 20)],
        ),
        ([(0, 9), (1, 6), (9, 4)], []),
        ([(0, 9), (3, 1)], [("raised", "CRIT", 2), ("cleared", "CRIT", 3)]),
    ],
)  # fmt: skip
def test_the_highest_level_that_applies_is_the_severity(samples: list[tuple[float, float]], wanted: object) -> None:
    assert severities(rule(THRESHOLD + LEVELS), series(*samples), 99) == wanted


def test_a_change_of_the_severity_belongs_to_the_same_incident() -> None:
    detector = create_detector(rule(THRESHOLD + LEVELS), "a\no", DetectorContext())
    raised, changed = run(detector, series((0, 6), (12, 9)), 99)
    assert (changed.began_ns, changed.labels) == (raised.began_ns, raised.labels)
    assert (raised.message, changed.message) == ("x is 6, above 5 for 10s", "x is 9, above 8 for 10s")


def test_an_alert_is_pending_until_its_time() -> None:
    detector = create_detector(rule(THRESHOLD + LEVELS), "a\no", DetectorContext())
    assert run(detector, series((0, 3), (1, 6)), 5) == []
    (waits,) = detector.pending()
    assert (waits.began_ns, waits.severity, waits.value, waits.message) == (SECOND, 4, 6, "x is 6, above 5 for 10s")
    (raised,) = run(detector, [], 12)
    assert (raised.began_ns, raised.at_ns) == (SECOND, 11 * SECOND)
    assert list(detector.pending()) == []
    run(detector, series((20, 3)), 21)
    assert list(detector.pending()) == []


@pytest.mark.parametrize(
    ("samples", "wanted"),
    [
        ([(0, 6), (1, 3)], [("raised", 0, 0), ("cleared", 0, 11)]),
        # Bad again before the time is over.
        ([(0, 6), (1, 3), (9, 6), (10, 2)], [("raised", 0, 0), ("cleared", 0, 20)]),
        # Between the limits it is neither good nor bad.
        ([(0, 6), (1, 3), (5, 4.5)], [("raised", 0, 0), ("cleared", 0, 11)]),
    ],
)
def test_an_alert_may_stay_for_some_time(samples: list[tuple[float, float]], wanted: object) -> None:
    made = rule(THRESHOLD + 'above = 5\nclear = 4\nkeep_firing_for = "10s"')
    assert drive(made, series(*samples), 99) == wanted


def test_a_rate_over_a_time_is_not_changed_by_jitter() -> None:
    detector = create_detector(rule(RATE + 'above = 11\nover = "5s"'), "a\no", DetectorContext())
    # A steady 10 a second for 5 s, then a jump at the oldest sample, which is 5.9 s old at the end.
    jitter = [-0.9, 0.004, 0.998, 2.003, 3.001, 3.996, 5.0]
    values = [-99.0, 0.04, 9.98, 20.03, 30.01, 39.96, 50.0]
    assert run(detector, series(*zip(jitter, values, strict=True)), 9) == []


def members(*items: tuple[float, str, float | None]) -> list[Signal]:
    return [
        signal(at, value, object=name, agent=name[0], role=0 if value is not None else GONE)
        for at, name, value in items
    ]


@pytest.mark.parametrize(
    ("function", "limit", "items", "wanted"),
    [
        ("sum", 10, [(0, "a1", 6), (1, "a2", 5), (2, "a1", 4)], [("raised", 1, 1), ("cleared", 1, 2)]),
        ("sum", 10, [(0, "a1", 6), (1, "a2", 5), (2, "a2", None)], [("raised", 1, 1), ("cleared", 1, 2)]),
        ("avg", 10, [(0, "a1", 6), (1, "a2", 16), (2, "a1", 2)], [("raised", 1, 1), ("cleared", 1, 2)]),
        ("min", 10, [(0, "a1", 16), (1, "a2", 6)], [("raised", 0, 0), ("cleared", 0, 1)]),
        ("max", 10, [(0, "a1", 6), (1, "a2", 11), (2, "a2", None)], [("raised", 1, 1), ("cleared", 1, 2)]),
        ("count", 1, [(0, "a1", 6), (1, "a2", 6), (2, "a1", None)], [("raised", 1, 1), ("cleared", 1, 2)]),
        ("sum", 10, [(0, "a1", 16), (2, "a1", None)], [("raised", 0, 0), ("cleared", 0, 2)]),
    ],
)  # fmt: skip
def test_the_values_of_a_group_become_one(
    function: str, limit: float, items: list[tuple[float, str, float | None]], wanted: object
) -> None:
    made = rule(f'{THRESHOLD}aggregate = "{function}"\nabove = {limit}')
    assert drive(made, members(*items), 99) == wanted


def test_the_rates_of_a_group_become_one() -> None:
    made = rule(f'{RATE}aggregate = "sum"\nabove = 10')
    items = [(0, "a1", 0), (0, "a2", 0), (1, "a1", 6), (1, "a2", 6), (2, "a1", 12), (2, "a2", 8)]
    assert drive(made, members(*items), 99) == [("raised", 1, 1), ("cleared", 1, 2)]


def test_labels_are_those_of_the_subject_and_of_the_rule() -> None:
    text = THRESHOLD + 'above = 5\nlabels = {team = "t", colour = "{colour}"}\nannotations = {more = "{value:.1f}"}\n'
    (change,) = run(
        create_detector(rule(text), "a\no", DetectorContext()), [signal(1, 6, fields='{"colour":"red"}')], 2
    )
    assert json.loads(change.labels) == {"alertname": "r", "agent": "a", "object": "o", "team": "t", "colour": "red"}
    assert json.loads(change.annotations) == {"more": "6.0"}
    grouped = rule(THRESHOLD + 'above = 5\naggregate = "sum"\nby = ["_agent", "zone", "x + 1"]')
    (change,) = run(create_detector(grouped, "a\nnorth\n7", DetectorContext()), [signal(1, 6)], 2)
    assert json.loads(change.labels) == {"alertname": "r", "agent": "a", "zone": "north", "by_3": "7"}


RATIO = """kind = "ratio"
dividend = {class = "c", value = "x"}
divisor = {class = "d", value = "y"}
above = 0.5
"""


def sides(*items: tuple[float, int, str, float]) -> list[Signal]:
    return [signal(at, value, role=role, object=name) for at, role, name, value in items]


def test_a_ratio_is_compared_when_either_side_changes() -> None:
    detector = create_detector(rule(RATIO), "a\nid", DetectorContext())
    signals = sides(
        (0, DIVIDEND, "one", 6), (1, DIVISOR, "whole", 10), (2, DIVIDEND, "two", 7), (3, DIVISOR, "whole", 13),
        (4, DIVISOR, "other", 13), (5, GONE, "other", 0), (6, GONE, "two", 0), (7, DIVISOR, "whole", 0),
    )  # fmt: skip
    found = run(detector, signals, 99)
    assert [(change.subject, *short(change)) for change in found] == [
        ("a, one", "raised", 1, 1),
        ("a, two", "raised", 2, 2),
        ("a, one", "cleared", 1, 3),
        ("a, two", "cleared", 2, 4),
        ("a, two", "raised", 5, 5),
        ("a, two", "cleared", 5, 6),
    ]
    assert found[0].value == 0.6
    assert json.loads(found[0].labels) == {"alertname": "r", "agent": "a", "object": "one"}


@pytest.mark.parametrize(
    ("text", "signals"),
    [
        (THRESHOLD + "above = 5", [signal(1, 6)]),
        (THRESHOLD + 'above = 5\naggregate = "max"', [signal(0, 3, agent="b"), signal(1, 6)]),
        (RATE + "above = 5", [signal(0, 0), signal(1, 6)]),
        (RATIO, sides((0, DIVISOR, "w", 1), (1, DIVIDEND, "o", 1))),
        ('kind = "count"\nevent = "e"\nat_least = 1\nwithin = "1h"', [signal(1)]),
        (JOIN, [signal(1, role=EVENT), signal(1, role=MATCHING)]),
    ],
)
def test_alerts_of_an_agent_that_said_goodbye_end(text: str, signals: list[Signal]) -> None:
    detector = create_detector(rule(text), "a\no", DetectorContext())
    run(detector, signals, 2)
    detector.goodbye("x", 3 * SECOND)
    assert [change.change for change in detector.changes] == ["raised"]
    detector.goodbye("a", 4 * SECOND)
    assert [short(change)[::2] for change in detector.changes] == [("raised", 1), ("cleared", 4)]


def test_what_must_be_there_is_absent_from_the_beginning() -> None:
    made = rule('kind = "absent"\nclass = "c"\nfor = "10s"')
    begin = signal(5, role=BEGIN, agent=None, object=None)
    assert drive(made, [begin], 99) == [("raised", 5, 15)]
    assert drive(made, [begin, signal(20), signal(25), signal(60)], 65) == [
        ("raised", 5, 15), ("cleared", 5, 20), ("raised", 25, 35), ("cleared", 25, 60)
    ]  # fmt: skip
    assert drive(made, [signal(1), begin], 9) == []
    assert drive(made, [begin], 99, silent=[(7 * SECOND, 50 * SECOND)]) == [("raised", 5, 60)]


def test_an_id_is_the_rule_the_subject_and_the_beginning() -> None:
    ids = {alert_id("r", "a", 1), alert_id("r", "a", 2), alert_id("r", "b", 1), alert_id("s", "a", 1)}
    assert len(ids) == 4
    assert alert_id("r", "a\nb", 1) == "028ac60755c153b5e1a54ceebd38aec9"


RULES = [
    THRESHOLD + LEVELS,
    THRESHOLD + 'above = 5\nclear = 3\nkeep_firing_for = "7s"',
    THRESHOLD + 'above = 9\naggregate = "sum"\nfor = "3s"\nstale = "9s"',
    RATE + 'above = 1\naggregate = "max"',
    RATIO + 'for = "2s"',
    'kind = "absent"\nclass = "c"\nfor = "10s"',
    THRESHOLD + 'above = 5\nclear = 3\nfor = "4s"\nstale = "9s"',
    THRESHOLD + "below = 2",
    RATE + 'above = 1\nover = "3s"\nfor = "2s"\nstale = "9s"',
    RATE + "above = 1\ncounter = true",
    ABSENCE + 'forget = "20s"\ngoodbye = false',
    SEQUENCE,
    'kind = "count"\nevent = "a"\nat_least = 3\nwithin = "10s"',
    JOIN,
]

SIGNALS = st.lists(
    st.tuples(
        st.integers(0, 12),
        st.integers(0, 8),
        st.sampled_from([GONE, 0, 1, 2, 4, 7]),
        st.sampled_from([1, 1, 1, 2, None]),
        st.booleans(),
    ),
    max_size=20,
)


#: Two dividends whose alerts are of one time: the first one is idle when the state is stored.
TWO_RATIOS = [
    (0, 0, GONE, 1, False),
    (0, 1, 0, 1, False),
    (0, 2, 1, 1, False),
    (0, 2, 0, 1, False),
    (0, 0, 1, 1, True),
    (0, 1, 1, 1, False),
]


@pytest.mark.parametrize("text", RULES)
@given(parts=SIGNALS)
@example(parts=TWO_RATIOS)
def test_states_can_be_stored_between_any_signals(
    text: str, parts: list[tuple[int, int, int, int | None, bool]]
) -> None:
    """One detector for all signals, and detectors for each part of them, with time advancing between."""
    made, at = rule(text), 0
    kind = made.kind.value
    whole = create_detector(made, "k", DetectorContext())
    piece, changes = create_detector(made, "k", DetectorContext()), []
    for number, (step, value, role, epoch, cut) in enumerate(parts):
        at += step
        if kind == "join":
            role = min(role, OTHER)
        elif kind in ("sequence", "count"):
            role = max(role, 0)
        elif kind == "ratio":
            role = min(role, DIVISOR)
        elif role != GONE:
            role = 0
        if cut:
            # A pass ends somewhere between the signals: its end is the beginning of the next.
            end = at * SECOND
            if piece.due < end:
                piece.advance(end)
            changes += piece.changes
            state = piece.dump(end)
            piece = create_detector(made, "k", DetectorContext())
            if state is not None:
                piece.load(state)
        for detector in (whole, piece):
            # Objects differ where a detector has several.
            item = signal(at, value, role=role, epoch=epoch, ident=str(number), object=f"o{number % 3}")
            if detector.due < item.at:
                detector.advance(item.at)
            detector.feed(item)
    for detector in (whole, piece):
        detector.advance((at + 50) * SECOND)
    assert changes + piece.changes == whole.changes


def test_outages_are_the_times_without_a_recorder() -> None:
    runs = {"one": (10, 20), "two": (15, 30), "three": (40, 50), "four": (70, 90)}
    assert outages(runs) == [(30, 40), (50, 70)]
    pauses = [
        ConnectionChange("four", 75, False),
        ConnectionChange("four", 80, True),
        ConnectionChange("one", 12, False),
    ]
    assert outages(runs, pauses) == [(12, 15), (30, 40), (50, 70), (75, 80)]
    assert outages({"one": (0, 9)}, [ConnectionChange("one", 5, False)]) == [(5, (1 << 63) - 1)]
    assert outages({}) == []
