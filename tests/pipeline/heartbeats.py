"""Lakes of heartbeats, and their rows as readers see them."""

from __future__ import annotations

from pipeline.lakes import recorded

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.record.buffers import Cells, RowBuffers
from qmf.pipeline.record.lake_writer import LakeWriter

DAY = 86_400 * 10**9
RUN = "00000000000000000001_1"


def beats(*rows: tuple[int, int]) -> RowBuffers:
    """Heartbeats with these numbers and days."""
    buffers = RowBuffers()
    for seq, days in rows:
        time_ns = days * DAY
        row: Cells = (RUN, seq, time_ns // 1000, time_ns, time_ns, "a", 1, 10.0, None, 1, None, None)
        buffers.add(RowKind.HEARTBEATS, None, time_ns, row)
    return buffers


def put(lake: DeltaLake, number: int, *rows: tuple[int, int], name: str = "recorder") -> None:
    """Commit heartbeats with these numbers and days as one batch."""
    lake.create()
    LakeWriter(lake, name).commit(number, beats(*rows).take())


def seqs(lake: DeltaLake) -> list[int]:
    """The numbers of the heartbeats of a lake, sorted."""
    return [row["_seq"] for row in recorded(lake, "heartbeats")]
