"""Which tables of a batch are committed, the rows of those that are not yet, and what readers know of them.

A commit costs its table's log a few kilobytes, whatever its rows are. So the rows of a table that has had small
commits only for a while wait for each other: until the interval of quiet tables is over, they are many, a reader
follows the table, or the recorder ends. Only tables of classes can be quiet: the others say how far time has advanced.
Recorder and readers let each other know by small files, see `qmf.pipeline.lake.waiting`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from qmf.pipeline.errors import LakeError, import_extra
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.columns import CLASS_KINDS
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.waiting import ENDED_NS, WAITING, Note, Share, followed_tables

#: Seconds that rows of a quiet table wait at most, and for which its commits were small before.
QUIET_INTERVAL = 300.0

#: Bytes of Arrow that make no small commit, and bytes of all tables that wait at most.
SMALL_BYTES, _MOST_BYTES = 64 * 1024, 32 * 1024 * 1024

_CLASS_FOLDERS = tuple(f"{kind.value}/" for kind in CLASS_KINDS)


@attrs.define
class _Waiting:
    since: float
    first_ns: int
    parts: dict[int, Any] = attrs.field(factory=dict)

    @property
    def size(self) -> int:
        return sum(part.nbytes for part in self.parts.values())


class QuietTables:
    """The rows of one recorder between their batch and their commit. Belongs to one thread at a time."""

    def __init__(self, interval: float = QUIET_INTERVAL, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without rows. Those of a quiet table wait for `interval` seconds at most; 0 for no quiet tables."""
        self._interval = interval
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}
        #: Since when a table has had small commits only.
        self._small_since: dict[str, float] = {}
        #: The batch that is being committed, and its tables: they stay the same when it is tried again.
        self._chosen: tuple[int, tuple[str, ...]] = (0, ())

    def add(self, number: int, tables: Mapping[str, Any], *, followed: frozenset[str], all_due: bool) -> None:
        """Take over a batch, Arrow tables by path, unless it is known, and choose what is committed with it.

        That is what must not wait, as tables that readers follow, or all.
        """
        if number == self._chosen[0]:
            return
        now = self._clock()
        for path, rows in tables.items():
            waiting = self._waiting.setdefault(path, _Waiting(now, _first_arrival(rows)))
            waiting.parts[number] = rows
            if rows.nbytes > SMALL_BYTES:
                self._small_since.pop(path, None)
            else:
                self._small_since.setdefault(path, now)
        crowded = sum(item.size for item in self._waiting.values()) > _MOST_BYTES
        chosen = tuple(
            path
            for path, item in self._waiting.items()
            if all_due or crowded or path in followed or not self._may_wait(path, item, now)
        )
        # Those of schemas come first, as in the batch.
        self._chosen = (number, tuple(sorted(chosen, key=lambda path: path.startswith(_CLASS_FOLDERS))))

    @property
    def due(self) -> dict[str, Any]:
        """The rows that are committed with the batch, by path, with the number of the batch; then call `committed`."""
        pa = import_pyarrow()
        return {
            path: pa.concat_tables(self._waiting[path].parts.values(), promote_options="default")
            for path in self._chosen[1]
            if path in self._waiting
        }

    def on_committed(self) -> None:
        """The rows that were due are in their tables."""
        for path in self._chosen[1]:
            self._waiting.pop(path, None)

    @property
    def held_back(self) -> dict[str, int]:
        """The arrival of the first row, in ns, of each table that has rows of other batches than the one committed."""
        number, chosen = self._chosen
        return {
            path: item.first_ns
            for path, item in self._waiting.items()
            if path not in chosen or set(item.parts) != {number}
        }

    def waiting_of(self, number: int) -> dict[str, Any]:
        """The rows of a batch that wait, by path."""
        return {path: item.parts[number] for path, item in self._waiting.items() if number in item.parts}

    @property
    def batches(self) -> frozenset[int]:
        """The batches of which rows wait."""
        return frozenset(number for item in self._waiting.values() for number in item.parts)

    def is_due(self, followed: frozenset[str]) -> bool:
        """True if something waits that should be committed, though no batch is due."""
        now = self._clock()
        return any(path in followed or not self._may_wait(path, item, now) for path, item in self._waiting.items())

    def _may_wait(self, path: str, item: _Waiting, now: float) -> bool:
        if not self._interval or not path.startswith(_CLASS_FOLDERS):
            return False
        is_quiet = now - self._small_since.get(path, now) >= self._interval
        return is_quiet and now - item.since < self._interval and item.size <= 16 * SMALL_BYTES


def _first_arrival(rows: Any) -> int:
    compute = import_extra("pyarrow.compute")
    return int(compute.min(rows["_received_ns"]).as_py() or 0)


#: Seconds from one look for readers to the next in a folder; where it costs a request, recorders with a share look for
#: their own news' sake, others with each batch.
_TICK, _REMOTE_TICK = 1.0, ENDED_NS / 4e9

log = logging.getLogger("qmf.pipeline")


class LakeNotes:
    """The notes of one recorder, and the tables that readers follow. Belongs to one thread at a time."""

    def __init__(self, lake: DeltaLake, name: str, clock: Callable[[], int], share: Share | None = None) -> None:
        """Make the notes of a recorder by its name; for `check` they have its share of the agents."""
        self._share = share
        self.followed: frozenset[str] = frozenset()
        self._lake = lake
        self._clock = clock
        self._note = Note(lake, WAITING, name)
        self._noted: tuple[Mapping[str, int], int] = ({}, 0)
        self._looked: float | None = None
        self._warned = False

    @property
    def is_time_to_look(self) -> bool:
        """True now and then: readers wait for what they follow, and want to know that this recorder goes on."""
        if not self._lake.is_local and self._share is None:
            return False
        tick = _TICK if self._lake.is_local else _REMOTE_TICK
        return self._looked is None or time.monotonic() - self._looked >= tick

    def look(self) -> None:
        """Find out what readers follow, and let them know what they should."""
        self._looked = time.monotonic()
        try:
            self.followed = followed_tables(self._lake, self._clock())
            self.write(self._noted[0])
        except LakeError as error:
            # On a full disk, for instance, while rows are held.
            if not self._warned:
                log.warning("recorder and readers don't know of each other: %s", error)
            self._warned = True
        else:
            self._warned = False

    def write(self, tables: Mapping[str, int], *, always: bool = False) -> None:
        """Let readers know what `QuietTables.held_back` is, where they know something else, or it is not known what."""
        now = self._clock()
        known, noted = self._noted
        is_told = bool(tables) or self._share is not None
        if always or tables != known or (is_told and not 0 <= now - noted < ENDED_NS // 4):
            share = None if self._share is None else [self._share.number, self._share.count]
            self._note.write({"time_ns": now, "tables": tables, "share": share})
            self._noted = (dict(tables), now)
