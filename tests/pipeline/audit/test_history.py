"""Lifetimes of objects and histories of properties: known answers, clocks that step, and any order of reading."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

pytest.importorskip("duckdb")

from pipeline.audit_parts import audit_tables

from qmf.pipeline.audit.history import history, lifetimes
from qmf.pipeline.audit.schemas import LIFE_KEY, PARTS, TABLES
from qmf.pipeline.audit.state import part_table

SECOND = 10**9


def state(agent: str, what: str, epoch: int | None, cause: str, start: float, end: float) -> tuple[Any, ...]:
    """A row of the table of availability; the last one of an agent is not marked, since nothing here asks for it."""
    return (agent, what, epoch, cause, None, int(start * SECOND), None, int(end * SECOND), False)


#: Agents: a ends with a goodbye, b is lost and comes back, c restarts, d stays, e says goodbye and is back at once.
STATES = [
    *(state("a", "up", 1, "added", 0, 100), state("a", "down", None, "goodbye", 100, 500)),
    *(state("b", "up", 1, "added", 0, 100), state("b", "down", None, "silent", 100, 200)),
    *(state("b", "up", 1, "added", 200, 500),),
    *(state("c", "up", 1, "added", 0, 100), state("c", "unknown", None, "not recorded", 100, 200)),
    *(state("c", "up", 2, "added", 200, 500),),
    state("d", "up", 1, "added", 0, 500),
    *(state("e", "up", 1, "added", 0, 100), state("e", "down", None, "goodbye", 100, 101)),
    *(state("e", "up", 2, "added", 101, 500),),
]


def thing(
    agent: str,
    name: str,
    first: float,
    last: float,
    *,
    created: float = 0,
    epoch: int = 1,
    deleted: float | None = None,
    transient: bool = True,
) -> tuple[Any, ...]:
    """A part of an object's lifetime, received when it was published."""
    gone = None if deleted is None else int(deleted * SECOND)
    stamps = (int(first * SECOND), int(last * SECOND), int(last * SECOND), gone)
    return ("p", "c", agent, name, int(created * SECOND), epoch, transient, *stamps)


#: Parts of each object's life, then how it ended and when.
LIFETIMES: dict[str, tuple[list[tuple[Any, ...]], list[tuple[str | None, float | None]]]] = {
    "destroyed": ([thing("d", "destroyed", 1, 50), thing("d", "destroyed", 60, 70, deleted=65)], [("destroyed", 65)]),
    "alive": ([thing("d", "alive", 1, 50)], [(None, None)]),
    "ended": ([thing("a", "ended", 1, 50)], [("agent ended", 100)]),
    # What was sent before the goodbye may arrive after it.
    "late": ([thing("a", "late", 1, 103)], [("agent ended", 100)]),
    "lost": ([thing("b", "lost", 1, 50)], [("agent lost", 100)]),
    "found": ([thing("b", "found", 1, 250)], [(None, None)]),
    "restarted": ([thing("c", "restarted", 1, 90)], [("agent restarted", 200)]),
    "outlives": ([thing("c", "outlives", 1, 90, transient=False)], [(None, None)]),
    "again": (
        [thing("c", "again", 1, 90), thing("c", "again", 210, 300, epoch=2)],
        [("agent restarted", 200), (None, None)],
    ),
    "replaced": (
        [thing("d", "replaced", 10, 20, created=9), thing("d", "replaced", 31, 40, created=30)],
        [("replaced", 30), (None, None)],
    ),
    "back": (
        [thing("e", "back", 1, 99.5), thing("e", "back", 101, 110, epoch=2)],
        [("agent ended", 100), (None, None)],
    ),
}


def lived(objects: list[tuple[Any, ...]]) -> list[Mapping[str, Any]]:
    with audit_tables() as tables:
        tables.add("objects", PARTS["objects"], objects)
        tables.state.fold(["objects"])
        states = tables.put("states", TABLES["availability"], STATES)
        query = f"select * from ({lifetimes(part_table('objects'), states)}) order by object, first_seen_ns"
        return tables.rows(query, TABLES["lives"])


def test_ends_of_lifetimes() -> None:
    found = lived([part for given, _ in LIFETIMES.values() for part in given])
    for name, (given, ends) in LIFETIMES.items():
        own = [row for row in found if row["object"] == name]
        assert [
            (row["ended_by"], None if row["ended_ns"] is None else row["ended_ns"] / SECOND) for row in own
        ] == ends, name
        assert own[0]["first_seen_ns"] == min(part[7] for part in given)
        assert own[-1]["last_seen_ns"] == max(part[8] for part in given)
        assert all((row["created"] is None) == (row["created_ns"] == 0) for row in own)


def message(
    seq: int,
    told: float,
    heard: float | None = None,
    *,
    run: str = "r1",
    name: str = "one",
    epoch: int = 1,
    **values: Any,
) -> tuple[Any, ...]:
    """A message with properties."""
    heard_ns = int((told if heard is None else heard) * SECOND)
    return ("p", "c", "d", name, 0, epoch, run, seq, int(told * SECOND), heard_ns, values)


def histories(*messages: tuple[Any, ...], end: float | None = None) -> list[tuple[Any, ...]]:
    """Object, property, value, from, to, ended by, in seconds."""
    ends = [
        (*key[:4], None, key[4], key[5], *(None,) * 5, None if end is None else int(end * SECOND), end and "destroyed")
        for key in {row[: len(LIFE_KEY)] for row in messages}
    ]
    with audit_tables() as tables:
        tables.add("properties", PARTS["properties"], messages)
        tables.state.fold(["properties"])
        lifetimes = tables.put("lifetimes", TABLES["lives"], ends)
        found = tables.rows(history(part_table("properties"), lifetimes), TABLES["history"])
    rows = [
        (
            *(row["object"], row["property"], row["value"], row["valid_from_ns"] / SECOND),
            *(row["valid_to_ns"] and row["valid_to_ns"] / SECOND, row["ended_by"]),
        )
        for row in found
    ]
    return sorted(rows, key=lambda row: (row[0], row[1], row[3], row[4] or 1e9))


def test_values_follow_each_other() -> None:
    found = histories(
        message(1, 10, x="1", y="a"),
        message(2, 20, x="1", y="a"),
        message(3, 30, x="2", y="a"),
        message(4, 40, x="2", y=None),
        message(5, 50, x="1", y=None),
        end=99,
    )
    assert found == [
        ("one", "x", "1", 10, 30, "changed"),
        ("one", "x", "2", 30, 50, "changed"),
        ("one", "x", "1", 50, 99, "destroyed"),
        ("one", "y", "a", 10, 40, "changed"),
        ("one", "y", None, 40, 99, "destroyed"),
    ]


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        # The agent's clock is ahead, then right: values from the future count at their arrival.
        ([message(1, 3700, 100, x="1"), message(2, 200, 200, x="2")], [("1", 100, 200), ("2", 200, None)]),
        # It steps back: what now seems to be earlier is taken at the time of hearing.
        ([message(1, 100, 100, x="1"), message(2, 50, 200, x="2")], [("1", 100, 200), ("2", 200, None)]),
        # The recorder's clock steps back within its run: the order is that of its numbers.
        ([message(1, 90, 100, x="1"), message(2, 95, 60, x="2")], [("1", 90, 95), ("2", 95, None)]),
        # Two recorders received the same.
        ([message(1, 10, 11, x="1"), message(7, 10, 12, run="r0", x="1")], [("1", 10, None)]),
        # Recorded later, but with its own time, as by a recorder that was reconnected.
        ([message(1, 10, 10, x="1"), message(1, 50, 80, run="r2", x="2")], [("1", 10, 50), ("2", 50, None)]),
    ],
)
def test_clocks(messages: list[tuple[Any, ...]], expected: list[tuple[Any, ...]]) -> None:
    assert [row[2:5] for row in histories(*messages)] == expected


def test_intervals_of_any_messages_neither_overlap_nor_leave_gaps() -> None:
    chance = random.Random(8)
    messages = [
        message(
            seq,
            chance.uniform(0, 2000),
            chance.uniform(0, 2000),
            run=chance.choice(["r1", "r2"]),
            name=chance.choice(["one", "two"]),
            epoch=chance.choice([1, 2]),
            x=chance.choice(["1", "2", None]),
        )
        for seq in range(150)
    ]
    whole = histories(*messages)
    again = messages + messages[:40]
    chance.shuffle(again)
    assert histories(*again) == whole
    # Two epochs are two lifetimes: each has its own chain, whose rows join end to begin.
    for name in ("one", "two"):
        own = [row for row in whole if row[0] == name]
        assert sum(row[4] is None for row in own) == 2
        begins, ends = sorted(row[3] for row in own), sorted(row[4] for row in own if row[4] is not None)
        for end in ends:
            begins.remove(end)
        assert len(begins) == 2
        assert all(row[4] is None or row[4] >= row[3] for row in own)
