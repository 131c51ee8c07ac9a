"""When agents were up: the report's answer is that of the audit, for the same rows in any order."""

from __future__ import annotations

import random
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from pipeline.audit.test_availability import CASES, SECOND, RunRow

from qmf.pipeline.report.presence import CONNECTED, DISCONNECTED, Sign, availability, recorded_times


def signs_of(run: str, rows: list[RunRow]) -> tuple[tuple[int, int], list[Sign]]:
    """The first and the last row of a run, and its signs."""
    found: list[Sign] = []
    for seq, (what, at, epoch) in enumerate(rows, 1):
        ns = int(at * SECOND)
        if what == "beat":
            found.append(Sign(run, seq, ns, "a", epoch, "heartbeat"))
        elif what in (DISCONNECTED, CONNECTED):
            found.append(Sign(run, seq, ns, None, None, what))
        elif what in ("added", "restarted"):
            found.append(Sign(run, seq, ns, "a", epoch, what, None, 10.0))
        elif what != "row":
            found.append(Sign(run, seq, ns, "a", epoch, "removed", what, 10.0))
    times = [int(at * SECOND) for _, at, _ in rows]
    return (min(times), max(times)), found


@pytest.mark.parametrize("case", list(CASES))
def test_one_run_as_the_audit_says(case: str) -> None:
    rows, expected = CASES[case]
    times, signs = signs_of("r1", rows)
    random.Random(case).shuffle(signs)
    found = availability({"r1": times}, signs)
    seen: list[tuple[Any, ...]] = [
        (item.state, item.epoch, item.cause, item.start_ns // SECOND, item.end_ns // SECOND) for item in found
    ]
    assert seen == [row[:5] for row in expected]


def test_several_runs_are_merged() -> None:
    first, early = signs_of("r1", [("added", 100, 1), ("beat", 150, 1)])
    second, late = signs_of("r2", [("added", 140, 1), ("goodbye", 200, 1), ("row", 260, 0)])
    third, again = signs_of("r3", [("row", 300, 0), ("added", 320, 2), ("beat", 330, 2)])
    found = availability({"r1": first, "r2": second, "r3": third}, [*early, *late, *again])
    assert [(item.state, item.start_ns // SECOND, item.end_ns // SECOND) for item in found] == [
        ("up", 100, 200),
        ("down", 200, 260),
        ("unknown", 260, 300),
        ("down", 300, 320),
        ("up", 320, 330),
    ]
    assert recorded_times({"r1": first, "r2": second, "r3": third}, [*early, *late, *again]) == [
        (100 * SECOND, 260 * SECOND),
        (300 * SECOND, 330 * SECOND),
    ]


def test_nothing_is_recorded_while_a_recorder_is_not_connected() -> None:
    times, signs = signs_of(
        "r1", [("added", 100, 1), (DISCONNECTED, 120, None), (CONNECTED, 180, None), ("beat", 200, 1)]
    )
    assert recorded_times({"r1": times}, signs) == [(100 * SECOND, 120 * SECOND), (180 * SECOND, 200 * SECOND)]
