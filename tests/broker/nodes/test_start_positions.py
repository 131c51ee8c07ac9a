"""Where receivers begin: what is read, what is wrong, and which entries lie before it."""

from __future__ import annotations

import pytest

from qmf.broker.nodes.start_positions import StartError, StartKind, StartPosition, read_start


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("head", StartPosition(StartKind.HEAD)),
        ("tail", StartPosition(StartKind.TAIL)),
        ({"sequence": 7}, StartPosition(StartKind.SEQUENCE, 7)),
        ({"sequence": "7"}, StartPosition(StartKind.SEQUENCE, 7)),
        ({"time": 1_000}, StartPosition(StartKind.TIME, 1_000)),
        ({"time": "1970-01-01T00:00:02Z"}, StartPosition(StartKind.TIME, 2_000)),
        ({"time": "1970-01-01T01:00:02+01:00"}, StartPosition(StartKind.TIME, 2_000)),
    ],
    ids=str,
)
def test_what_is_read(value: object, expected: StartPosition) -> None:
    assert read_start(value) == expected


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("middle", "must be head, tail, .*, not 'middle'"),
        (None, "must be head, tail"),
        ({}, "must be head, tail"),
        ({"time": 1, "sequence": 2}, "must be head, tail"),
        ({"place": 1}, "not 'place'"),
        ({"sequence": -1}, "sequence: must be a number from 0, not -1"),
        ({"sequence": True}, "sequence: must be a number from 0, not True"),
        ({"sequence": "seven"}, "sequence: must be a number from 0, not 'seven'"),
        ({"time": "noon"}, "time: 'noon' is no time of ISO 8601"),
        ({"time": "2026-11-29T12:00:00"}, "time: '2026-11-29T12:00:00' has no offset from UTC"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named(value: object, text: str) -> None:
    with pytest.raises(StartError, match=text):
        read_start(value)
