"""The recorder: a console that writes what it receives into a lake, and counts what it wrote and what is missing.

Notifications become rows on the event loop, see `notifications`; commits run in a thread, so that a slow disk doesn't
delay the bus. A commit is due when the oldest row has waited for the interval, when a file is large enough, or when
enough cells wait. Killed at any moment, the recorder loses the rows that waited, and no more. A failure of the file
system ends it with `LakeError`: the operator makes room and restarts it.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import IO

import attrs

from qmf.console.aio import Client
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.recording.buffers import CommitCounts, RowBuffers, commit, total
from qmf.pipeline.recording.notifications import NotificationRows

#: Seconds that a row waits at most: what a kill can lose.
DEFAULT_INTERVAL = 10.0

#: Cells that wait at most: about 100 MB of Python objects.
DEFAULT_CELLS = 1_000_000

#: Bytes of a file, approximately, at most.
DEFAULT_BYTES = 64 * 1024 * 1024

#: Seconds between checks whether a commit is due.
_TICK = 0.1


@attrs.frozen
class RecorderCounts:
    """What a recorder did so far.

    Attributes:
        written: rows, files and bytes committed.
        lost: messages that agents numbered and that never arrived.
        invalid_values: values that didn't fit their type, stored as null.
        removed, entered: after a killed run: temporary files removed, and whole files added to the log.
    """

    written: CommitCounts = attrs.field(factory=CommitCounts)
    lost: int = 0
    invalid_values: int = 0
    removed: int = 0
    entered: int = 0


class LakeRecorder:
    """Records one bus into one lake, from `run` until it is cancelled or `stop` is called."""

    def __init__(
        self,
        client: Client,
        lake: Lake,
        *,
        name: str = "recorder",
        interval: float = DEFAULT_INTERVAL,
        max_cells: int = DEFAULT_CELLS,
        max_bytes: int = DEFAULT_BYTES,
        clock: Callable[[], int] = time.time_ns,
        on_commit: Callable[[CommitCounts], None] | None = None,
        on_ready: Callable[[], None] = lambda: None,
    ) -> None:
        """Make a recorder; it connects and writes nothing yet.

        Args:
            client: to listen to; not opened yet.
            lake: to write to.
            name: of the writer, unique among the recorders of one lake.
            interval: seconds that a row waits at most.
            max_cells: cells that wait at most before a commit is due.
            max_bytes: estimated bytes of the largest file at which a commit is due.
            clock: nanoseconds since 1970.
            on_commit: called on the loop after each commit.
            on_ready: called on the loop when the connection and its subscriptions stand: what is published from then
                on is recorded.
        """
        self._client = client
        self._lake = lake
        self._name = name
        self._interval = interval
        self._max_cells = max_cells
        self._max_bytes = max_bytes
        self._on_commit = on_commit
        self._on_ready = on_ready
        self.run_id = f"{clock():020d}_{os.getpid()}"
        self._buffers = RowBuffers()
        self._rows = NotificationRows(client, self._buffers, self.run_id, clock)
        self._counts = RecorderCounts()
        self._files = 0
        self._reported_invalid = 0
        self._stop = asyncio.Event()

    @property
    def counts(self) -> RecorderCounts:
        """What it did so far."""
        return attrs.evolve(self._counts, lost=self._rows.lost, invalid_values=self._rows.invalid_values)

    def stop(self) -> None:
        """End `run` after a last commit."""
        self._stop.set()

    async def run(self) -> None:
        """Record until `stop`.

        Raises:
            LakeError: the file system failed, or another process records under this name.
            ConnectError: no connection to the bus at the start. After later losses it waits for the connection, and
                records a gap.
        """
        self._lake.create()
        lock = self._lake.lock(self._name)
        try:
            await self._record(lock)
        finally:
            lock.close()

    async def _record(self, _lock: IO[str]) -> None:
        removed, entered = await asyncio.to_thread(self._lake.recover, self._name)
        self._counts = attrs.evolve(self._counts, removed=removed, entered=entered)
        unlisten = self._client.listen(self._rows.on_notification)
        try:
            if await self._open():
                self._on_ready()
                await self._watch()
        finally:
            await self._client.close()
            unlisten()
            self._rows.close()
        await self._flush()

    async def _open(self) -> bool:
        """Open the client, which may wait for its broker; False if `stop` came first."""
        opening = asyncio.create_task(self._client.open())
        stopping = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait({opening, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                return False
            await opening
            return True
        finally:
            opening.cancel()
            stopping.cancel()
            await asyncio.gather(opening, stopping, return_exceptions=True)

    async def _watch(self) -> None:
        while not self._stop.is_set():
            if self._is_due():
                await self._flush()
            try:
                async with asyncio.timeout(min(_TICK, self._interval)):
                    await self._stop.wait()
            except TimeoutError:
                continue

    def _is_due(self) -> bool:
        waiting = self._buffers
        return (
            waiting.cells >= self._max_cells or waiting.age() >= self._interval or waiting.largest() >= self._max_bytes
        )

    async def _flush(self) -> None:
        invalid_values = self._rows.invalid_values
        if invalid_values > self._reported_invalid:
            self._rows.add_gap("misfit", "", invalid_values - self._reported_invalid)
            self._reported_invalid = invalid_values
        batch = self._buffers.take(self._max_bytes)
        if not batch.parts:
            return
        number, self._files = self._files + 1, self._files + len(batch.parts)
        files = await asyncio.to_thread(commit, self._lake, self._name, self.run_id, number, batch)
        self._buffers.record_sizes(files)
        written = total(files)
        self._counts = attrs.evolve(self._counts, written=self._counts.written + written)
        if self._on_commit is not None:
            self._on_commit(written)
