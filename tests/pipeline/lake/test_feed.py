"""Following a lake: each file once, in the order of recording, from any position, with files combined meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qmf.pipeline.lake.columns import DATE
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.feed import LakeFeed, TablePosition, position_from_json, position_to_json

PATHS = ("objects/p/a", "objects/p/b", "heartbeats")


def add(lake: DeltaLake, path: str, batch: int, *times: int) -> None:
    columns = {
        "_received_ns": pa.array(times, pa.int64()),
        DATE: pa.array(["2030-01-31"] * len(times)),
    }
    lake.table(path).append(pa.table(columns), writer="test", batch=batch)


def times(lake: DeltaLake, feed: LakeFeed, start: dict[str, TablePosition], end: dict[str, TablePosition]) -> list[int]:
    found: list[int] = []
    for item in feed.files(start, end):
        rows = lake.table(item.path).dataset([item.file]).to_table(columns=["_received_ns"])
        found += rows["_received_ns"].to_pylist()
    return found


def test_files_come_in_the_order_of_recording_over_all_tables(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path))
    feed = LakeFeed(lake)
    for batch, (path, time) in enumerate([(PATHS[0], 3), (PATHS[1], 1), (PATHS[2], 2), (PATHS[1], 4)], 1):
        add(lake, path, batch, time)
    end = feed.next_position({}, PATHS)
    assert times(lake, feed, {}, end) == [1, 2, 3, 4]
    part = feed.next_position({}, PATHS, limit=2)
    assert times(lake, feed, {}, part) == [1, 2]
    assert times(lake, feed, part, end) == [3, 4]
    assert position_from_json(json.loads(json.dumps(position_to_json(part)))) == part


def test_what_was_recorded_at_the_same_time_is_not_separated(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path))
    feed = LakeFeed(lake)
    add(lake, PATHS[0], 1, 1, 5)
    add(lake, PATHS[1], 1, 2, 6)
    add(lake, PATHS[0], 2, 7)
    part = feed.next_position({}, PATHS, limit=1)
    assert times(lake, feed, {}, part) == [1, 5, 2, 6]


def test_nothing_is_read_after_an_end_that_was_chosen_before(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path))
    feed = LakeFeed(lake)
    add(lake, PATHS[0], 1, 1)
    end = lake.versions([PATHS[0], PATHS[1]])
    add(lake, PATHS[0], 2, 2)
    add(lake, PATHS[1], 1, 3)
    assert times(lake, feed, {}, feed.next_position({}, PATHS, end=end)) == [1]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from(PATHS), st.integers(1, 3)),
        st.tuples(st.just("optimize"), st.sampled_from(PATHS), st.just(0)),
        st.tuples(st.just("read"), st.just(""), st.integers(1, 4)),
    ),
    max_size=14,
)


@settings(deadline=None, max_examples=25)
@given(steps=STEPS)
def test_each_row_is_read_once_whatever_happens_meanwhile(
    steps: list[tuple[str, str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("lake")
    lake = DeltaLake(str(folder))
    position: dict[str, TablePosition] = {}
    written, found, batch = 0, [], 0
    for what, path, number in [*steps, *[("read", "", 100)] * 4]:
        if what == "add":
            batch += 1
            add(lake, path, batch, *range(written, written + number))
            written += number
        elif what == "optimize":
            if lake.table(path).version() is not None:
                lake.table(path).delta().optimize.compact()
        else:
            # A reader that was killed has nothing but its position.
            feed = LakeFeed(DeltaLake(str(folder)))
            end = feed.next_position(position, PATHS, limit=number)
            found += times(lake, LakeFeed(DeltaLake(str(folder))), position, end)
            position = end
    assert sorted(found) == list(range(written))
