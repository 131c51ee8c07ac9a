"""Lakes of heartbeats, and their rows as readers see them."""

from __future__ import annotations

from collections import Counter

import pyarrow.parquet

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.recording.buffers import Cells, CommittedFile, RowBuffers, commit

DAY = 86_400 * 10**9
RUN = "00000000000000000001_1"


def beats(*rows: tuple[int, int]) -> RowBuffers:
    """Heartbeats with these numbers and days."""
    buffers = RowBuffers()
    for seq, days in rows:
        time_ns = days * DAY
        row: Cells = (RUN, seq, time_ns // 1000, time_ns, time_ns, "a", 1, 10.0)
        buffers.add(RowKind.HEARTBEATS, None, time_ns, row)
    return buffers


def put(lake: Lake, number: int, *rows: tuple[int, int], name: str = "recorder") -> list[CommittedFile]:
    """Commit heartbeats with these numbers and days."""
    return commit(lake, name, RUN, number, beats(*rows).take())


def seqs(lake: Lake) -> Counter[int]:
    """The rows that a stream of the log sees."""
    found: Counter[int] = Counter()
    for path, rows in lake.files().items():
        table = pyarrow.parquet.ParquetFile(lake.root / path).read()
        assert table.num_rows == rows
        found.update(table["_seq"].to_pylist())
    return found


def in_folders(lake: Lake) -> Counter[int]:
    """The rows that a reader of the folders sees."""
    found: Counter[int] = Counter()
    for path in lake.root.glob("heartbeats/*/[!.]*.parquet"):
        found.update(pyarrow.parquet.ParquetFile(path).read()["_seq"].to_pylist())
    return found


class Killed(BaseException):
    """Stands for a kill: nothing after it runs, not even cleaning up."""
