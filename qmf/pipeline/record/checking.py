"""Checking what recorders left in a lake: batches that are not in all of their tables."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.findings import Finding
from qmf.pipeline.record.lake_writer import LakeWriter
from qmf.pipeline.record.writer_state import HELD, PENDING, Interruption, WriterState


def check_pending(lake: DeltaLake, *, repair: bool = False) -> Iterator[Finding]:
    """Batches that killed recorders left in a lake that is a folder; those of recorders that run are left alone.

    Args:
        lake: to check.
        repair: commit them, as the next start of the recorder would.

    Raises:
        LakeError: the file system failed.
    """
    root = Path(lake.url) / PENDING
    if not lake.is_local or not root.is_dir():
        return
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        state = WriterState(folder)
        try:
            with state.lock():
                yield from _check_state(lake, state, repair=repair)
        except LakeError as error:
            yield Finding(str(folder), str(error), is_damage=False)


def _check_state(lake: DeltaLake, state: WriterState, *, repair: bool) -> Iterator[Finding]:
    interruption = state.interruption()
    if interruption is not None:
        yield from _check_interruption(lake, state, interruption, repair=repair)
    if (state.folder / HELD).exists() and (interruption is None or HELD not in interruption.damaged):
        count = len(state.held_messages())
        text = f"{count} messages wait for the schemas of their classes; the recorder's next start goes on"
        yield Finding(str(state.folder / HELD), text, is_damage=False)


def _check_interruption(
    lake: DeltaLake, state: WriterState, interruption: Interruption, *, repair: bool
) -> Iterator[Finding]:
    writer = LakeWriter(lake, state.folder.name)
    for batch in interruption.batches:
        path = state.batch_path(batch.number)
        text = f"a batch of the killed run {batch.run} may not be in all of its tables"
        if not repair:
            yield Finding(str(path), f"{text}; the recorder's next start completes it")
            continue
        rows = writer.write(batch.number, batch.tables, again=True).rows
        state.complete(batch)
        yield Finding(str(path), text, f"{rows} rows committed")
    for name in interruption.damaged:
        done = ""
        if repair:
            state.remove_file(name)
            done = "removed"
        yield Finding(str(state.folder / name), "damaged: a batch that cannot be read", done)
