"""Detectors of events: known answers."""

from __future__ import annotations

import pytest
from pipeline.detecting import JOIN, SEQUENCE, drive, rule, signal

from qmf.pipeline.correlate.detectors.base import GONE
from qmf.pipeline.correlate.detectors.events import EVENT, MATCHING, OTHER


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
