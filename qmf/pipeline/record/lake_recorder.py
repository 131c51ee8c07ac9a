"""The recorder: a console that writes what it receives into a lake, and counts what it wrote and what is missing.

Notifications become rows on the event loop, see `notifications`; commits run in a thread, so that a slow disk doesn't
delay the bus. A batch is due when the oldest row has waited for the interval, or when enough cells wait; it is stored,
and committed to its tables, except for those with few rows, see `quiet_tables`. Killed at any moment, the recorder
loses the rows that waited for their batch, and no more. While the disk is full, it holds the rows and tries again,
until they are too many; any other failure of the file system ends it with `LakeError`. What was being committed at a
kill or a failure is completed at the next start, see `writer_state`.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path

import attrs

from qmf._event_loop import new_event_loop
from qmf.console.aio import Client
from qmf.pipeline.errors import NoSpaceError
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.runs import SILENCE_NS, agents_of_others
from qmf.pipeline.lake.waiting import Share
from qmf.pipeline.record.buffers import RowBuffers
from qmf.pipeline.record.held_messages import WAIT_LIMIT, HeldMessage
from qmf.pipeline.record.lake_writer import CommitCounts, LakeWriter
from qmf.pipeline.record.notifications import NotificationRows
from qmf.pipeline.record.properties import REFRESH
from qmf.pipeline.record.quiet_tables import LakeNotes, QuietTables
from qmf.pipeline.record.writer_state import HELD, Interruption, PendingBatch, WriterState, state_folder

#: Seconds that a row waits at most: what a kill can lose.
DEFAULT_INTERVAL = 10.0

#: Cells that wait at most: about 100 MB of Python objects.
DEFAULT_CELLS = 1_000_000

#: Commits from one look for other recorders of the same agents to the next; the first one is after the second commit.
_OTHERS_COMMITS = 360

log = logging.getLogger("qmf.pipeline")

#: A full disk ends a recorder when so many times the cells wait that make a commit due.
_HELD_COMMITS = 4

#: Bytes of a batch whose file is replaced by one of the rows that wait.
_KEPT_BYTES = 1 << 20

#: Seconds between checks whether a commit is due.
_TICK = 0.1


@attrs.frozen
class RecorderCounts:
    """What a recorder did so far.

    Attributes:
        written: rows and tables committed.
        lost: messages that agents numbered and that never arrived.
        invalid_values: values that didn't fit their type, stored as null.
        completed: rows of an interrupted run that the start committed.
    """

    written: CommitCounts = attrs.field(factory=CommitCounts)
    lost: int = 0
    invalid_values: int = 0
    completed: int = 0


class LakeRecorder:
    """Records one bus into one lake, from `run` until it is cancelled or `stop` is called."""

    def __init__(
        self,
        client: Client,
        lake: DeltaLake,
        *,
        name: str = "recorder",
        interval: float = DEFAULT_INTERVAL,
        max_cells: int = DEFAULT_CELLS,
        state: Path | None = None,
        timeout: float = WAIT_LIMIT,
        refresh: float = REFRESH,
        quiet: QuietTables | None = None,
        share: Share | None = None,
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
            state: folder for the states of recorders on this machine; None for the lake itself, and for the user's
                folder of application states where the lake is not a folder.
            timeout: seconds that messages of a new class wait for its schema, before they are left untyped.
            refresh: seconds after which agents are asked for objects without a row, so that each has one.
            share: of the agents, that are recorded; None for all.
            quiet: decides which tables are committed more rarely; None for the usual interval.
            clock: nanoseconds since 1970.
            on_commit: called on the loop after each commit.
            on_ready: called on the loop when the connection and its subscriptions stand: what is published from then
                on is recorded.
        """
        self._client, self._lake = client, lake
        self._interval, self._max_cells = interval, max_cells
        self._on_commit, self._on_ready = on_commit, on_ready
        self._started_ns = clock()
        self.run_id = f"{self._started_ns:020d}_{os.getpid()}"
        self._buffers = RowBuffers()
        self._rows = NotificationRows(
            client, self._buffers, self.run_id, clock, timeout=timeout, refresh=refresh, share=share
        )
        self._counts = RecorderCounts()
        self._writer, self._state = LakeWriter(lake, name), WriterState(state_folder(lake, name, state))
        self._quiet, self._clock = quiet or QuietTables(), clock
        self._notes = LakeNotes(lake, name, clock, share)
        self._first_batch = self._batch = 1
        self._damaged: Sequence[str] = ()
        #: The batch for which there was no room; rows that come meanwhile wait.
        self._unwritten: PendingBatch | None = None
        self._tried = 0.0
        #: Messages that the run before held.
        self._restored: Sequence[HeldMessage] = ()
        #: Runs of other recorders with the number of agents that both record, and those that were told of.
        self._others: Mapping[str, int] = {}
        self._told: dict[str, int] = {}
        self._reported_invalid, self._stop = 0, asyncio.Event()

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
        with self._state.lock():
            await self._record()
            await asyncio.to_thread(self._state.end)

    async def _record(self) -> None:
        interruption = await asyncio.to_thread(self._start)
        if interruption is not None:
            self._rows.add_gap("killed", interruption.run, 0, since_ns=interruption.last_ns)
            self._damaged = interruption.damaged
            for name in self._damaged:
                self._rows.add_gap("damaged", f"{interruption.run} {name}", 0, since_ns=interruption.last_ns)
        unlisten = self._client.listen(self._rows.on_notification)
        try:
            if await self._open():
                self._rows.held.restore(self._restored)
                if interruption is None:
                    # Otherwise the mark stays until the rows about the interruption are stored.
                    self._state.mark(self.run_id, self._clock())
                self._on_ready()
                await self._watch()
        finally:
            self._rows.properties.close()
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
            self._rows.properties.refresh()
            if self._notes.is_time_to_look:
                await asyncio.to_thread(self._notes.look)
            if self._is_due():
                await self._flush()
            try:
                async with asyncio.timeout(min(_TICK, self._interval)):
                    await self._stop.wait()
            except TimeoutError:
                continue

    def _is_due(self) -> bool:
        if self._unwritten is not None:
            return time.monotonic() - self._tried >= self._interval
        waited = max(self._buffers.age(), self._rows.held.age(), self._rows.heartbeats.age())
        if self._buffers.cells >= self._max_cells or waited >= self._interval:
            return True
        return self._quiet.is_due(self._notes.followed)

    async def _flush(self) -> None:
        invalid_values = self._rows.invalid_values
        if invalid_values > self._reported_invalid:
            self._rows.add_gap("invalid values", "", invalid_values - self._reported_invalid)
            self._reported_invalid = invalid_values
        if self._unwritten is not None and not await self._write(self._unwritten, again=True):
            return
        self._rows.heartbeats.write()
        waiting, held = self._buffers.take(), self._rows.held.messages_if_changed()
        is_due = self._quiet.is_due(self._notes.followed) or (self._stop.is_set() and bool(self._quiet.batches))
        if not waiting and held is None and not is_due:
            return
        tables = await asyncio.to_thread(self._writer.tables, waiting)
        await self._write(PendingBatch(self._batch, self.run_id, self._clock(), tables, held))

    async def _write(self, batch: PendingBatch, *, again: bool = False) -> bool:
        """Commit a batch; False where there is no room for it, and it was kept.

        Raises:
            LakeError: the file system failed otherwise, or too much waits already, or the recorder ends.
        """
        try:
            written = await asyncio.to_thread(self._commit, batch, again=again)
        except NoSpaceError as error:
            if self._stop.is_set() or self._buffers.cells >= _HELD_COMMITS * self._max_cells:
                raise
            if self._unwritten is None:
                log.error("%s; rows wait until there is room", error)
            self._unwritten, self._tried = batch, time.monotonic()
            return False
        if self._unwritten is not None:
            log.warning("there is room again: recording goes on")
            self._unwritten = None
        self._counts = attrs.evolve(self._counts, written=self._counts.written + written)
        for run, count in sorted(self._others.items() - self._told.items()):
            if run not in self._told:
                log.warning("%s records %d of these agents, too: its rows count, or these", run, count)
                self._rows.add_gap("recorded twice", run, count)
            self._told[run] = count
        if self._on_commit is not None and written.tables:
            self._on_commit(written)
        return True

    # -- in the thread

    def _start(self) -> Interruption | None:
        self._lake.create()
        interruption = self._state.interruption()
        if interruption is not None:
            for batch in interruption.batches:
                written = self._writer.write(batch.number, batch.tables, again=True)
                self._state.complete(batch)
                self._counts = attrs.evolve(self._counts, completed=self._counts.completed + written.rows)
            # What waited is committed.
            self._notes.write({}, always=True)
        if interruption is None or HELD not in interruption.damaged:
            self._restored = self._state.held_messages()
        self._first_batch = self._batch = self._writer.next_batch()
        self._rows.versions[:] = [item.version for item in self._lake.classes()]
        return interruption

    def _commit(self, batch: PendingBatch, *, again: bool) -> CommitCounts:
        """Commit a batch; `again` if a part of it may have been committed."""
        self._state.store(batch)
        # Only now: the rows that tell of an interruption before this run are stored with its first batch.
        self._state.mark(self.run_id, batch.time_ns)
        for name in self._damaged:
            self._state.remove_file(name)
        self._damaged = ()
        if not self._lake.is_local:
            self._notes.look()
        # Messages are held or in a batch, whichever of the files of batches are there: none of these waits then.
        all_due = self._stop.is_set() or batch.held is not None
        self._quiet.add(batch.number, batch.tables, followed=self._notes.followed, all_due=all_due)
        due = self._quiet.due
        before = self._quiet.batches
        self._notes.write(self._quiet.held_back)
        written = self._writer.write(batch.number, due, again=again)
        self._quiet.on_committed()
        still = self._quiet.batches
        waiting = self._quiet.waiting_of(batch.number)
        if waiting and sum(rows.nbytes for rows in batch.tables.values()) > _KEPT_BYTES:
            # What is committed need not be kept with the rows that wait.
            self._state.store(attrs.evolve(batch, tables=waiting))
        self._state.complete(batch, waits=bool(waiting))
        for number in before - still - {batch.number}:
            self._state.remove(number)
        self._notes.write(self._quiet.held_back)
        if (self._batch - self._first_batch) % _OTHERS_COMMITS == 1:
            self._others = self._find_others(batch.time_ns)
        self._batch += 1
        self._writer.combine()
        return written

    def _find_others(self, now_ns: int) -> Mapping[str, int]:
        """Runs of other recorders that record the same agents now, with how many these are."""
        own = {agent.name for agent in tuple(self._client.agents)}
        # Runs that ended before this one began are not others.
        found = agents_of_others(self._lake, self.run_id, max(now_ns - SILENCE_NS, self._started_ns))
        return {run: len(agents & own) for run, agents in found.items() if agents & own}


#: Seconds between commits of a spool.
_SPOOL_INTERVAL = 1.0


class Spool:
    """A recorder in a thread beside a streaming query over a bus, so that the query can read its input again."""

    def __init__(self, url: str, root: str, options: Mapping[str, str]) -> None:
        """Connect and record; errors are those of `LakeRecorder.run`."""
        self._ready: Future[None] = Future()
        self._loop = new_event_loop()
        self._recorder = LakeRecorder(
            Client(url, domain=options.get("domain", "default"), discover=True),
            DeltaLake(root),
            name="spool",
            interval=float(options.get("interval", _SPOOL_INTERVAL)),
            quiet=QuietTables(0),
            on_ready=lambda: self._ready.set_result(None),
        )
        self._thread = threading.Thread(target=self._main, name="qmf-spool", daemon=True)
        self._thread.start()
        self._ready.result()

    def close(self) -> None:
        """Commit the rows that wait, and end."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._recorder.stop)
            self._thread.join()

    def _main(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._recorder.run())
        except Exception as error:  # noqa: BLE001 - raised in the thread that waits for the start
            if not self._ready.done():
                self._ready.set_exception(error)
        finally:
            self._loop.close()
