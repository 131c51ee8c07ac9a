"""Rows that wait for a commit."""

from __future__ import annotations

from pipeline.heartbeats import beats

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.record.buffers import RowBuffers


def test_rows_of_a_kind_are_taken_together_with_their_days() -> None:
    buffers = beats((1, 0), (2, 1), (3, 0))
    assert buffers.cells == 36
    (taken,) = buffers.take()
    assert [row[1] for row in taken.rows] == [1, 2, 3]
    assert list(taken.dates) == ["1970-01-01", "1970-01-02", "1970-01-01"]
    assert (buffers.take(), buffers.cells, buffers.age()) == ([], 0, 0)


def test_the_age_is_that_of_the_oldest_row() -> None:
    now = 5.0
    buffers = RowBuffers(lambda: now)
    buffers.add(RowKind.HEARTBEATS, None, 0, (1,))
    now = 7.0
    buffers.add(RowKind.AGENTS, None, 0, (1,))
    assert buffers.age() == 2.0
