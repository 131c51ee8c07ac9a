"""Limits of values: levels of severity, and the times before an alert and after it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from pipeline.detecting import LEVELS, SECOND, THRESHOLD, drive, rule, run, series

from qmf.pipeline.correlate import Rule
from qmf.pipeline.correlate.detectors import create_detector
from qmf.pipeline.correlate.detectors.base import DetectorContext, Signal
from qmf.schema import Severity


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
