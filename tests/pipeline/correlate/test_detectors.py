"""What all detectors have in common: labels, ids, the end of an agent, states stored between any two signals."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pipeline.detecting import (
    ABSENCE,
    JOIN,
    LEVELS,
    RATE,
    RATIO,
    SECOND,
    SEQUENCE,
    THRESHOLD,
    rule,
    run,
    short,
    sides,
    signal,
)

from qmf.pipeline.correlate.detectors import create_detector
from qmf.pipeline.correlate.detectors.base import GONE, DetectorContext, Signal, alert_id
from qmf.pipeline.correlate.detectors.events import EVENT, MATCHING, OTHER
from qmf.pipeline.correlate.detectors.values import DIVIDEND, DIVISOR


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
