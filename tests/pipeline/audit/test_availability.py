"""Availability of agents: known answers for the rows of recorders, read in any order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from pipeline.local import local_frame

pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.audit import parts  # noqa: E402
from qmf.pipeline.audit.availability import availability  # noqa: E402
from qmf.pipeline.audit.schemas import PARTS, TABLES  # noqa: E402

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

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


def seen(spark: SparkSession, *of: dict[str, list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """The intervals: agent, state, epoch, cause, start, end in seconds; an ongoing one ends with "..."."""
    frames = {
        name: parts.folded(
            name, local_frame(spark, [row for one in of for row in one[name]], PARTS[name])
        ).localCheckpoint()
        for name in ("runs", "signs", "changes")
    }
    table = availability(frames["runs"], frames["signs"], frames["changes"])
    assert [(field.name, field.dataType) for field in table.schema] == [
        (field.name, field.dataType) for field in TABLES["availability"]
    ]
    return [
        (row.agent, row.state, row.epoch, row.cause, row.start_ns // SECOND, row.end_ns // SECOND)
        + (("...",) if row.ongoing else ())
        for row in sorted(table.collect(), key=lambda row: (row.agent, row.start_ns))
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


def test_one_run(spark: SparkSession) -> None:
    runs = []
    for number, (rows, _) in enumerate(CASES.values()):
        moved = [(what, at + number * APART, epoch) for what, at, epoch in rows]
        runs.append(changes_of(f"r{number}", moved, f"{number:02}"))
    found = seen(spark, *runs)
    for number, (name, (_, expected)) in enumerate(CASES.items()):
        begin = number * APART
        # What comes after is what later runs don't hear of this agent.
        own = [row[1:6] for row in found if row[0] == f"{number:02}" and row[4] < begin + 200]
        assert [(*row[:3], row[3] - begin, row[4] - begin) for row in own] == [row[:5] for row in expected], name


def test_the_state_between_runs_is_unknown(spark: SparkSession) -> None:
    first = changes_of("r1", [ADDED, ("beat", 140, 1), ("row", 150, 0)])
    second = changes_of("r2", [("row", 300, 0), ("added", 301, 1), ("row", 400, 0)])
    gone = changes_of("r3", [("row", 500, 0), ("row", 600, 0)])
    assert [row[1:] for row in seen(spark, first, second, gone)] == [
        ("up", 1, "added", 100, 150),
        ("unknown", None, "not recorded", 150, 301),
        ("up", 1, "added", 301, 400),
        ("unknown", None, "not recorded", 400, 500),
        ("down", None, "absent", 500, 600, "..."),
    ]


def test_an_agent_is_up_if_one_recorder_received_its_rows(spark: SparkSession) -> None:
    one = changes_of(
        "r1", [ADDED, ("disconnected", 130, 1), ("connected again", 140, 0), ("added", 160, 1), ("row", 200, 0)]
    )
    other = changes_of("r2", [("added", 90, 1), ("goodbye", 180, 1), ("row", 190, 0)])
    assert [row[1:] for row in seen(spark, one, other)] == [("up", 1, "added", 90, 200, "...")]


def test_an_agent_without_rows_has_no_state(spark: SparkSession) -> None:
    first = changes_of("r1", [("row", 10, 0), ("row", 50, 0)])
    second = changes_of("r2", [("row", 60, 0), ADDED, ("row", 120, 0)])
    assert [row[1:] for row in seen(spark, first, second)] == [("up", 1, "added", 100, 120, "...")]


def test_order_repetition_and_piecewise_merging_do_not_matter(spark: SparkSession) -> None:
    chance = random.Random(4)
    runs = []
    for number in range(3):
        at, run_rows = 1000.0 * number, []
        for _ in range(25):
            at += chance.uniform(0, 40)
            what = chance.choice(["beat", "beat", "added", "restarted", "silent", "goodbye", "disconnected", "row"])
            run_rows += [(what, at, chance.choice([1, 1, 2]))]
        runs.append(changes_of(f"r{number}", run_rows))
    whole = seen(spark, *runs)
    assert len({row[1] for row in whole}) == 3
    # No hole and no overlap.
    assert all(one[5] == other[4] for one, other in pairwise(whole))
    rows = [(name, row) for run in runs for name, found in run.items() for row in found]
    shuffled = rows + chance.sample(rows, 20)
    chance.shuffle(shuffled)
    frames = {}
    for name in ("runs", "signs", "changes"):
        own = [row for kind, row in shuffled if kind == name]
        half = parts.folded(name, local_frame(spark, own[: len(own) // 2], PARTS[name]))
        rest = local_frame(spark, own[len(own) // 2 :], PARTS[name])
        frames[name] = [tuple(row) for row in parts.folded(name, rest.unionByName(half)).collect()]
    assert seen(spark, frames) == whole
