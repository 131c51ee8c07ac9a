"""The stream of versions of a lake's tables: its offsets, and what jobs get of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline.lakes import SECOND, Shop

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_versions import LakeVersions
from qmf.pipeline.lake.waiting import WAITING, Note
from qmf.pipeline.spark_access.lake_stream import LakeVersionsReader, Offset, versions_of

TILLS = "objects/org.example.shop/till"


def rows(reader: LakeVersionsReader, start: Offset, end: Offset) -> LakeVersions:
    (partition,) = reader.partitions(start, end)
    return versions_of(row for batch in reader.read(partition) for row in batch.to_pylist())


def test_offsets_are_versions_of_tables(tmp_path: Path) -> None:
    reader = LakeVersionsReader(DeltaLake(str(tmp_path / "lake")))
    nothing = reader.latestOffset(reader.initialOffset(), None)
    assert rows(reader, {}, nothing) == LakeVersions({})  # it waits for the lake
    shop = Shop(tmp_path / "lake")
    shop.put((1, 10))
    first = reader.latestOffset(nothing, None)
    shop.put((2, 20))
    second = reader.latestOffset(first, None)
    assert (first[TILLS], second[TILLS]) == ([0, None], [1, None])
    assert rows(reader, first, second) == LakeVersions(shop.lake.versions())
    assert reader.latestOffset(second, None) == second


def test_until_when_a_table_is_complete_is_a_part_of_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    shop.put((1, 10))
    note = Note(shop.lake, WAITING, "other")
    note.write({"tables": {TILLS: 2 * SECOND, "events/new": 3 * SECOND}, "time_ns": 10 * SECOND})
    reader = LakeVersionsReader(DeltaLake(str(tmp_path / "lake")), clock=lambda: 11 * SECOND)
    found = rows(reader, {}, reader.latestOffset({}, None))
    assert found == LakeVersions(shop.lake.versions(), {TILLS: 2 * SECOND, "events/new": 3 * SECOND})
    assert [found.complete_until(paths) for paths in ([TILLS, "events/new"], ["heartbeats"])] == [2 * SECOND, None]


def test_time_goes_on_where_nothing_is_new(tmp_path: Path) -> None:
    now = [0]
    reader = LakeVersionsReader(DeltaLake(str(tmp_path / "lake")), 5.0, clock=lambda: now[0])
    first = reader.latestOffset({}, None)
    now[0] = 4 * SECOND
    assert reader.latestOffset(first, None) == first
    now[0] = 5 * SECOND
    second = reader.latestOffset(first, None)
    assert second != first
    assert rows(reader, first, second) == LakeVersions({})
    # A query that ends with what is there has no time.
    reader.prepareForTriggerAvailableNow()
    now[0] = 100 * SECOND
    assert reader.latestOffset(second, None) == second
