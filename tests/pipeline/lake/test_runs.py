"""Two recorders of one bus: the rows of one of them count, for each agent and time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipeline.lakes import HERE, SECOND, Shop, recorded

from qmf.pipeline.correlate.lake_rows import LakeRows
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.runs import (
    SILENCE_NS,
    CountedRows,
    LeftOut,
    RecordedRuns,
    RunPresence,
    agents_of_others,
    counted_condition,
    find_left_out,
)
from qmf.pipeline.maintenance.optimizing import optimize_lake

TILL = "objects/org.example.shop/till"


def counted(lake: DeltaLake, path: str = TILL) -> list[tuple[str, float]]:
    """Run and time of the rows that count, by time; those of both ways to ask agree."""
    table, rows = lake.table(path), RecordedRuns(lake).left_out_rows()
    data = table.dataset(table.snapshot().files)
    found = data.choose(CountedRows(rows)).to_table().to_pylist()
    where = f"WHERE {counted_condition(rows)}" if rows else ""
    with duckdb.connect() as connection:
        connection.register("samples", data.to_table())
        same = connection.execute(f"SELECT _run, _ts_ns FROM samples {where}").fetchall()
    pairs = sorted((row["_ts_ns"] / SECOND, row["_run"]) for row in found)
    assert pairs == sorted((time / SECOND, run) for run, time in same)
    return [(run, at) for at, run in pairs]


def two(tmp_path: Path, one: range, other: range, step: int = 10) -> DeltaLake:
    """A lake that two recorders wrote, each during a range of seconds; the agent sends each sample with a heartbeat."""
    for name, times in (("one", one), ("two", other)):
        shop = Shop(tmp_path, run=f"run_{name}", name=name)
        shop.beat(*times[::step])
        shop.put(*((at + 2, at) for at in times[::step]))
    return DeltaLake(str(tmp_path))


@pytest.mark.parametrize("few", [0, 50])
def test_each_sample_counts_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr("qmf.pipeline.lake.runs._FEW", few)
    lake = two(tmp_path, range(1000, 2000), range(1200, 3000))
    rows = counted(lake)
    assert [at for _run, at in rows] == [at + 2 for at in range(1000, 3000, 10)]
    assert {run for run, at in rows if at < 1990} == {"run_one"}
    assert {run for run, at in rows if at > 1995} == {"run_two"}


def test_runs_that_follow_each_other_are_whole(tmp_path: Path) -> None:
    lake = two(tmp_path, range(1000, 2000), range(2005, 3000))
    assert RecordedRuns(lake).left_out_rows() == ()
    assert len(counted(lake)) == 100 + 100
    optimize_lake(HERE, lake)
    assert RecordedRuns(lake).left_out_rows() == ()


def test_small_files_that_were_combined_tell_the_same(tmp_path: Path) -> None:
    lake = two(tmp_path, range(1000, 2000), range(1200, 3000))
    before = counted(lake)
    optimize_lake(HERE, lake)
    assert counted(DeltaLake(lake.url)) == before


def test_recorders_of_different_agents_leave_each_other_alone(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shop = Shop(tmp_path, run=f"run_{name}", name=name)
        shop.beat(1000, 1010, agent=name)
        shop.put((1000, 1), agent=name)
    lake = DeltaLake(str(tmp_path))
    assert RecordedRuns(lake).left_out_rows() == ()
    assert len(recorded(lake, TILL)) == 2


def test_a_recorder_that_lost_the_bus_is_followed_by_the_other_and_comes_back(tmp_path: Path) -> None:
    one = Shop(tmp_path, run="run_one", name="one")
    one.beat(*range(1000, 1200, 10), *range(1600, 2000, 10))
    other = Shop(tmp_path, run="run_two", name="two")
    other.beat(*range(1000, 2000, 10))
    found = RecordedRuns(DeltaLake(str(tmp_path))).left_out_rows()
    assert [(row.run, row.first_ns // SECOND, row.end_ns // SECOND) for row in found] == [
        ("run_one", 1190, 2050),
        ("run_two", 940, 1190),
    ]


def test_days_without_a_second_run_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shop = Shop(tmp_path)
    shop.beat(*range(1000, 1200, 10))
    lake = DeltaLake(str(tmp_path))
    monkeypatch.setattr("qmf.pipeline.lake.runs.spans_of_file", None)
    assert RecordedRuns(lake).left_out_rows() == ()


def test_a_lake_without_heartbeats(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path))
    assert RecordedRuns(lake).left_out_rows() == ()
    assert RecordedRuns(lake).presences() == []


def test_text_in_conditions_is_quoted() -> None:
    row = LeftOut("it's", "r", 1, 2, "s")
    assert "_agent = 'it''s'" in counted_condition([row])


@given(
    st.lists(
        st.tuples(st.sampled_from("abc"), st.integers(0, 1000), st.integers(0, 300)).map(
            lambda item: RunPresence(item[0], "x", item[1] * SECOND, (item[1] + item[2]) * SECOND)
        ),
        max_size=8,
    )
)
def test_at_each_time_one_run_at_most_counts_of_those_that_have_the_agent(presences: list[RunPresence]) -> None:
    rows = find_left_out(presences)
    for time in {item.first_ns for item in presences} | {item.last_ns for item in presences}:
        having = {item.run for item in presences if item.first_ns <= time <= item.last_ns}
        left = {row.run for row in rows if row.first_ns <= time < row.end_ns}
        assert len(having - left) == 1
    assert all(row.first_ns < row.end_ns and row.counted != row.run for row in rows)
    assert len(presences) > 1 or rows == ()
    assert SILENCE_NS > 0


def test_an_open_interval_of_heartbeats_lasts_as_long_as_its_run(tmp_path: Path) -> None:
    """The first run has written one row of the agent and was killed after 300 s, the other has gone on."""
    one, two = Shop(tmp_path, run="run_one", name="one"), Shop(tmp_path, run="run_two", name="two")
    for shop, first in ((one, 1000), (two, 1100)):
        shop.add(RowKind.HEARTBEATS, first, (10.0, first * SECOND, 1, 0, (first + 615) * SECOND))
    for at in range(1000, 1300, 10):
        one.add(RowKind.HEARTBEATS, at + 5, (None, at * SECOND, 1, 0, None), agent=None)
    two.add(RowKind.HEARTBEATS, 1710, (10.0, 1110 * SECOND, 61, 0, 2325 * SECOND))
    two.add(RowKind.HEARTBEATS, 1720, (10.0, 1720 * SECOND, 0, 0, None))
    for shop in (one, two):
        shop.commit()
    lake = DeltaLake(str(tmp_path))
    runs = RecordedRuns(lake)
    assert [(item.run, item.first_ns // SECOND, item.last_ns // SECOND) for item in runs.presences()] == [
        ("run_one", 1000, 1295),
        ("run_two", 1100, 1720),
    ]
    assert [(row.run, row.first_ns // SECOND, row.end_ns // SECOND) for row in runs.left_out_rows()] == [
        ("run_one", 1295, 1780),
        ("run_two", 940, 1295),
    ]
    assert agents_of_others(lake, "run_two", 1200 * SECOND) == {"run_one": {"a"}}
    assert agents_of_others(lake, "run_one", 1300 * SECOND) == {"run_two": {"a"}}
    assert agents_of_others(lake, "run_two", 1300 * SECOND) == {}
    assert agents_of_others(lake, "run_one", 1721 * SECOND) == {}


def test_rules_read_each_sample_once(tmp_path: Path) -> None:
    lake = two(tmp_path, range(1000, 1100), range(1000, 1200))
    rows = LakeRows(DeltaLake(lake.url), 0)
    try:
        found = rows.datasets(rows.files([TILL, "heartbeats"]))
        assert found[TILL].count_rows() == 20
        assert found["heartbeats"].count_rows() == 30
        position = rows.versions([TILL])
        other = Shop(tmp_path, run="run_two", name="later")
        other.put((1192, 5))
        one = Shop(tmp_path, run="run_one", name="later_still")
        one.put((1192, 5))
        new = rows.added_rows(position, rows.versions([TILL]))
        assert new[TILL].to_table()["_run"].to_pylist() == ["run_two"]
        with duckdb.connect() as connection:
            connection.register("samples", found[TILL])
            assert connection.execute("SELECT count(*) FROM samples WHERE _seq > 0").fetchone() == (20,)
    finally:
        rows.close()


NAMES = st.sampled_from(["a", "b", "ab", ""])
TIMES = st.integers(0, 9)

LEFT_OUT = st.lists(
    st.builds(
        lambda agent, run, first, length: LeftOut(agent, run, first, first + length, ""), NAMES, NAMES, TIMES, TIMES
    )
)
ROWS = st.lists(st.fixed_dictionaries({"_agent": NAMES | st.none(), "_run": NAMES, "_ts_ns": TIMES}))
SCHEMA = pa.schema([("_agent", pa.string()), ("_run", pa.string()), ("_ts_ns", pa.int64())])


def is_left_out(row: dict[str, Any], by: LeftOut) -> bool:
    return (row["_agent"], row["_run"]) == (by.agent, by.run) and by.first_ns <= row["_ts_ns"] < by.end_ns


@given(LEFT_OUT, ROWS)
def test_rows_count_that_nothing_leaves_out(left_out: list[LeftOut], rows: list[dict[str, Any]]) -> None:
    expected = [row for row in rows if not any(is_left_out(row, by) for by in left_out)]
    counted = CountedRows(left_out)
    table = pa.Table.from_pylist(rows, SCHEMA)
    assert counted.of(table).to_pylist() == expected
    assert [row for batch in table.to_batches() for row in counted.of(batch).to_pylist()] == expected


def test_duckdb_reads_the_rows_that_count_of_files(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake", run="run")
    shop.put(*((at, at) for at in range(10)))
    table = shop.lake.table("objects/org.example.shop/till")
    left_out = [LeftOut("a", "run", 2 * 10**9, 4 * 10**9, ""), LeftOut("a", "run", 7 * 10**9, 9 * 10**9, "")]
    data = table.dataset(table.snapshot().files).choose(CountedRows(left_out))
    with duckdb.connect() as connection:
        connection.register("data", data)
        assert connection.execute("select sales from data order by all").fetchall() == [
            (sales,) for sales in (0, 1, 4, 5, 6, 9)
        ]
        assert connection.execute("select count(*) from data where sales > 4").fetchall() == [(3,)]
    assert (data.count_rows(), data.to_table(columns=["sales"]).column_names) == (6, ["sales"])
