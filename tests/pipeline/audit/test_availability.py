"""Availability of agents: known answers for the rows of recorders, read in any order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

pytest.importorskip("duckdb")

from pipeline.audit_parts import Row, audit_tables

from qmf.pipeline.audit.availability import availability
from qmf.pipeline.audit.schemas import PARTS, TABLES
from qmf.pipeline.audit.state import PRESENCE_PARTS, part_table

SECOND = 10**9

#: A row of a recorder's run: kind, time by its clock in seconds, and epoch of a heartbeat or change.
RunRow = tuple[str, float, int | None]


def changes_of(run: str, rows: Sequence[RunRow], agent: str = "a") -> dict[str, list[tuple[Any, ...]]]:
    """Parts made from single rows of a lake."""
    found: dict[str, list[tuple[Any, ...]]] = {"runs": [], "signs": [], "changes": []}
    for seq, (what, at, epoch) in enumerate(rows, 1):
        ns = int(at * SECOND)
        found["runs"].append((run, ns, ns))
        if what == "beat":
            found["signs"].append((agent, epoch, run, seq, ns, seq, ns))
        elif what in ("disconnected", "connected again"):
            found["changes"].append((run, seq, ns, None, None, what, "", None))
        elif what in ("added", "restarted"):
            found["changes"].append((run, seq, ns, agent, epoch, what, None, 10.0))
        elif what != "row":
            found["changes"].append((run, seq, ns, agent, epoch, "removed", what, 10.0))
    return found


def seen(*of: dict[str, list[Row]]) -> list[Row]:
    """The intervals: agent, state, epoch, cause, start, end in seconds; an ongoing one ends with "..."."""
    with audit_tables() as tables:
        for one in of:
            for name, rows in one.items():
                tables.add(name, PARTS[name], rows)
        tables.state.fold(PRESENCE_PARTS)
        query = availability(*map(part_table, PRESENCE_PARTS))
        found = tables.rows(f"select * from ({query}) order by agent, start_ns", TABLES["availability"])
    return [
        (
            *(row[name] for name in ("agent", "state", "epoch", "cause")),
            row["start_ns"] // SECOND,
            row["end_ns"] // SECOND,
        )
        + (("...",) if row["ongoing"] else ())
        for row in found
    ]


ADDED: RunRow = ("added", 100, 1)

#: Rows of one run, and the intervals that follow.
CASES: dict[str, tuple[list[RunRow], list[tuple[Any, ...]]]] = {
    "there": ([("row", 95, 0), ADDED, ("beat", 110, 1), ("row", 200, 0)], [("up", 1, "added", 100, 200, "...")]),
    "goodbye": (
        [ADDED, ("goodbye", 150, 1), ("row", 200, 0)],
        [("up", 1, "added", 100, 150), ("down", None, "goodbye", 150, 200, "...")],
    ),
    "silent: down since three intervals": (
        [ADDED, ("beat", 130, 1), ("silent", 160, 1), ("added", 190, 1), ("row", 200, 0)],
        [
            ("up", 1, "added", 100, 130),
            ("down", None, "silent", 130, 190),
            ("up", 1, "added", 190, 200, "..."),
        ],
    ),
    "silent: but never before the last sign": (
        [ADDED, ("beat", 145, 1), ("silent", 160, 1), ("row", 200, 0)],
        [("up", 1, "added", 100, 145), ("down", None, "silent", 145, 200, "...")],
    ),
    "restart with another epoch": (
        [ADDED, ("restarted", 140, 2), ("row", 200, 0)],
        [("up", 1, "added", 100, 140), ("up", 2, "restarted", 140, 200, "...")],
    ),
    "restart with the same epoch": (
        [ADDED, ("restarted", 140, 1), ("row", 200, 0)],
        [("up", 1, "added", 100, 140), ("up", 1, "restarted", 140, 200, "...")],
    ),
    "no connection, and the agent is there again": (
        [
            ADDED,
            ("disconnected", 140, 0),
            ("disconnected", 140, 1),
            ("connected again", 170, 0),
            ("added", 171, 1),
            ("row", 200, 0),
        ],
        [
            ("up", 1, "added", 100, 140),
            ("unknown", None, "not recorded", 140, 171),
            ("up", 1, "added", 171, 200, "..."),
        ],
    ),
    "no connection, and the agent is gone": (
        [ADDED, ("disconnected", 140, 1), ("connected again", 170, 0), ("row", 200, 0)],
        [
            ("up", 1, "added", 100, 140),
            ("unknown", None, "not recorded", 140, 170),
            ("down", None, "absent", 170, 200, "..."),
        ],
    ),
    "known before its epoch": (
        [("added", 100, None), ("beat", 110, 4), ("row", 200, 0)],
        [("up", 4, "added", 100, 200, "...")],
    ),
    "heartbeats alone, as after a retention": (
        [("beat", 110, 4), ("beat", 120, 4), ("row", 200, 0)],
        [("up", 4, "heartbeat", 110, 200, "...")],
    ),
    "the recorder's clock steps back": (
        [ADDED, ("beat", 150, 1), ("goodbye", 120, 1), ("row", 125, 0), ("row", 200, 0)],
        [("up", 1, "added", 100, 150), ("down", None, "goodbye", 150, 200, "...")],
    ),
}


#: Seconds from case to case, where all are looked at in one go.
APART = 1000


def test_one_run() -> None:
    runs = []
    for number, (rows, _) in enumerate(CASES.values()):
        moved = [(what, at + number * APART, epoch) for what, at, epoch in rows]
        runs.append(changes_of(f"r{number}", moved, f"{number:02}"))
    found = seen(*runs)
    for number, (name, (_, expected)) in enumerate(CASES.items()):
        begin = number * APART
        # What comes after is what later runs don't hear of this agent.
        own = [row[1:6] for row in found if row[0] == f"{number:02}" and row[4] < begin + 200]
        assert [(*row[:3], row[3] - begin, row[4] - begin) for row in own] == [row[:5] for row in expected], name


def test_the_state_between_runs_is_unknown() -> None:
    first = changes_of("r1", [ADDED, ("beat", 140, 1), ("row", 150, 0)])
    second = changes_of("r2", [("row", 300, 0), ("added", 301, 1), ("row", 400, 0)])
    gone = changes_of("r3", [("row", 500, 0), ("row", 600, 0)])
    assert [row[1:] for row in seen(first, second, gone)] == [
        ("up", 1, "added", 100, 150),
        ("unknown", None, "not recorded", 150, 301),
        ("up", 1, "added", 301, 400),
        ("unknown", None, "not recorded", 400, 500),
        ("down", None, "absent", 500, 600, "..."),
    ]


def test_an_agent_is_up_if_one_recorder_received_its_rows() -> None:
    one = changes_of(
        "r1", [ADDED, ("disconnected", 130, 1), ("connected again", 140, 0), ("added", 160, 1), ("row", 200, 0)]
    )
    other = changes_of("r2", [("added", 90, 1), ("goodbye", 180, 1), ("row", 190, 0)])
    assert [row[1:] for row in seen(one, other)] == [("up", 1, "added", 90, 200, "...")]


def test_an_agent_without_rows_has_no_state() -> None:
    first = changes_of("r1", [("row", 10, 0), ("row", 50, 0)])
    second = changes_of("r2", [("row", 60, 0), ADDED, ("row", 120, 0)])
    assert [row[1:] for row in seen(first, second)] == [("up", 1, "added", 100, 120, "...")]


def test_order_repetition_and_piecewise_merging_do_not_matter() -> None:
    chance = random.Random(4)
    runs = []
    for number in range(3):
        at, run_rows = 1000.0 * number, []
        for _ in range(25):
            at += chance.uniform(0, 40)
            what = chance.choice(["beat", "beat", "added", "restarted", "silent", "goodbye", "disconnected", "row"])
            run_rows += [(what, at, chance.choice([1, 1, 2]))]
        runs.append(changes_of(f"r{number}", run_rows))
    whole = seen(*runs)
    assert len({row[1] for row in whole}) == 3
    # No hole and no overlap.
    assert all(one[5] == other[4] for one, other in pairwise(whole))
    rows = [(name, row) for run in runs for name, found in run.items() for row in found]
    shuffled = rows + chance.sample(rows, 20)
    chance.shuffle(shuffled)
    halves = shuffled[: len(shuffled) // 2], shuffled[len(shuffled) // 2 :]
    with audit_tables() as tables:
        for half in halves:
            for name in PRESENCE_PARTS:
                tables.add(name, PARTS[name], [row for kind, row in half if kind == name])
            tables.state.fold(PRESENCE_PARTS)
        merged = {name: tables.parts(name) for name in PRESENCE_PARTS}
    assert seen(merged) == whole
