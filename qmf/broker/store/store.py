"""The store as the broker's loop uses it: units are submitted, and reported when they are on the disk."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

from qmf.broker.nodes.recorder import OnStored
from qmf.broker.store.database import open_database
from qmf.broker.store.errors import StoreDamaged, StoreError, StoreVersionError
from qmf.broker.store.folder import DataFolder
from qmf.broker.store.reading import (
    begin_run,
    last_definition,
    read_acceptances,
    read_definitions,
    read_messages,
)
from qmf.broker.store.reserve import Reserve
from qmf.broker.store.unit import Definition, StoredMessage, Unit
from qmf.broker.store.writer import StoreWriter

log = logging.getLogger("qmf.broker.store")

T = TypeVar("T")

#: Seconds after which what could not be written, and must be, is tried again.
RETRY = 1.0


class Store:
    """The store of a broker. All methods belong to the thread of one event loop.

    Attributes:
        failing: why the last batch could not be written; None while the store works.
    """

    def __init__(self, folder: DataFolder) -> None:
        """Open or create the store in a data folder.

        Raises:
            StoreError: it cannot be used; see `open_database`.
        """
        self.failing: StoreError | None = None
        self._path = folder.database
        folder.protect()
        self._reserve = Reserve(folder.reserve)
        self._connection = self._with_room(lambda: open_database(self._path))
        try:
            self._definitions = read_definitions(self._connection, self._path)
            self._message_ids = itertools.count(self._with_room(lambda: begin_run(self._connection, self._path)))
            self._definition_ids = itertools.count(last_definition(self._connection, self._path) + 1)
        except BaseException:
            self._connection.close()
            raise
        self._writer: StoreWriter | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Submitted, and not given to the writer yet.
        self._waiting: list[Unit] = []
        self._callbacks: dict[Unit, OnStored | None] = {}
        self._writing = False
        self._timer: asyncio.Handle | None = None
        self._drained: asyncio.Future[None] | None = None

    def _with_room(self, action: Callable[[], T]) -> T:
        """Do something; once more, when there is room, if the disk was full."""
        try:
            return action()
        except (StoreDamaged, StoreVersionError):
            raise
        except StoreError:
            # SQLite has errors of several kinds for a full disk, where it cannot even open a file.
            if not self._reserve.release():
                raise
            return action()

    @property
    def definitions(self) -> Sequence[Definition]:
        """What was defined when the store was opened, in the order of its definition."""
        return self._definitions

    @property
    def backlog(self) -> int:
        """Units that are not reported yet."""
        return len(self._callbacks)

    def recover(self) -> Sequence[StoredMessage]:
        """All messages, by queue and position. To be called once, before `start`.

        Raises:
            StoreDamaged: what is stored cannot be read.
        """
        return read_messages(self._connection, self._path)

    def recover_acceptances(self) -> Mapping[int, Mapping[int, Sequence[int]]]:
        """The messages that came on remembered links, see `read_acceptances`; as `recover`."""
        return read_acceptances(self._connection, self._path)

    def start(self) -> None:
        """Write from now on; belongs to the running loop."""
        self._loop = asyncio.get_running_loop()
        self._writer = StoreWriter(self._connection, self._path, self._reserve, self._report)

    def next_message_id(self) -> int:
        """An id for a message, larger than all before."""
        return next(self._message_ids)

    def next_definition_id(self) -> int:
        """An id for a definition that no other has or had."""
        return next(self._definition_ids)

    def submit(self, unit: Unit, on_stored: OnStored | None = None) -> None:
        """Write a unit together with what else is submitted until the writer is free.

        Args:
            unit: to write; not changed any more.
            on_stored: called in a later turn of the loop, in the order of the submissions.
        """
        self._callbacks[unit] = on_stored
        self._waiting.append(unit)
        if not self._writing and self._timer is None:
            assert self._loop is not None
            self._timer = self._loop.call_soon(self._hand_over)

    def discard(self) -> None:
        """Close the file of a store that was not started."""
        self._connection.close()

    async def close(self) -> None:
        """Write what was submitted, and close the file. What cannot be written is logged and given up."""
        if self._writer is None:
            self.discard()
            return
        self._drained = asyncio.get_running_loop().create_future()
        if self._callbacks:
            if self._timer is not None:
                self._timer.cancel()
            if not self._writing:
                self._hand_over()
            await self._drained
        writer, self._writer = self._writer, None
        await asyncio.get_running_loop().run_in_executor(None, writer.close)

    def _hand_over(self) -> None:
        self._timer = None
        if self._waiting and self._writer is not None:
            batch, self._waiting = self._waiting, []
            self._writing = True
            self._writer.write(batch)

    def _report(self, written: Sequence[Unit], failed: Sequence[Unit], error: StoreError | None) -> None:
        """A batch is done; in the writer's thread."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._finish, written, failed, error)

    def _finish(self, written: Sequence[Unit], failed: Sequence[Unit], error: StoreError | None) -> None:
        self._writing = False
        self._note(error)
        closing = self._drained is not None
        again = [] if closing else [unit for unit in failed if unit.lasting]
        self._waiting[:0] = again
        for unit in written:
            self._call(unit, None)
        for unit in failed:
            if closing or not unit.lasting:
                self._call(unit, error)
        if again:
            assert self._loop is not None
            self._timer = self._loop.call_later(RETRY, self._hand_over)
        else:
            self._hand_over()
        if self._drained is not None and not self._callbacks and not self._drained.done():
            self._drained.set_result(None)

    def _call(self, unit: Unit, error: StoreError | None) -> None:
        on_stored = self._callbacks.pop(unit)
        if on_stored is not None:
            on_stored(error)

    def _note(self, error: StoreError | None) -> None:
        """Log the first failure, and the return of success."""
        if error is not None and self.failing is None:
            log.error("cannot store: %s", error)
        elif error is None and self.failing is not None:
            log.warning("storing again: %s", self._path)
        self.failing = error
