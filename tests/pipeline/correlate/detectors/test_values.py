"""Detectors of thresholds, rates and ratios: known answers."""

from __future__ import annotations

import json

import pytest
from pipeline.detecting import RATE, RATIO, SECOND, THRESHOLD, drive, rule, run, series, short, sides, signal

from qmf.pipeline.correlate.detectors import create_detector
from qmf.pipeline.correlate.detectors.base import GONE, DetectorContext, Signal
from qmf.pipeline.correlate.detectors.values import DIVIDEND, DIVISOR


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
