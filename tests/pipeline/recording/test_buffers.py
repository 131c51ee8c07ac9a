"""Rows that wait for a commit."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline.heartbeats import beats, put

from qmf.pipeline.lake.lake import Lake


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    lake = Lake(tmp_path / "lake")
    lake.create()
    return lake


def test_files_are_split_by_size(lake: Lake) -> None:
    buffers = beats(*((n, 0) for n in range(1, 1001)))
    assert buffers.largest() == 1000 * 8 * 8.0  # rows, columns, bytes: nothing better is known yet
    assert len(buffers.take(limit=32_000).parts) == 2
    (file,) = put(lake, 1, *((n, 0) for n in range(1, 1001)))
    assert (file.rows, file.cells) == (1000, 8000)
    assert file.size == (lake.root / next(iter(lake.files()))).stat().st_size
    buffers = beats(*((n, 0) for n in range(1, 1001)))
    buffers.record_sizes([file])
    assert buffers.largest() == pytest.approx(file.size)
    parts = buffers.take(limit=file.size / 4 + 1).parts
    assert [len(rows) for _place, _columns, rows in parts] == [250] * 4
    assert [row[1] for _place, _columns, rows in parts for row in rows] == list(range(1, 1001))
