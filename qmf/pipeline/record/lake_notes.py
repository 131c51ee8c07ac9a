"""What a recorder and the readers of its lake let each other know, see `qmf.pipeline.lake.waiting`."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping

from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.waiting import ENDED_NS, WAITING, Note, followed_tables
from qmf.pipeline.record.shares import Share

#: Seconds from one look for readers to the next in a folder; where it costs a request, recorders with a share look for
#: their own news' sake, others with each batch.
_TICK, _REMOTE_TICK = 1.0, ENDED_NS / 4e9

log = logging.getLogger("qmf.pipeline")


class LakeNotes:
    """The notes of one recorder. Belongs to one thread at a time.

    Attributes:
        followed: the tables that readers follow.
    """

    def __init__(self, lake: DeltaLake, name: str, clock: Callable[[], int], share: Share | None = None) -> None:
        """Make the notes of a recorder.

        Args:
            lake: that is recorded into.
            name: of the recorder.
            clock: nanoseconds since 1970.
            share: of the agents, for `check`: where one is lost, its agents are not recorded.
        """
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
        """Let readers know which rows are not in their tables yet, where they know something else.

        Args:
            tables: as of `QuietTables.held_back`.
            always: what they know is not known.

        Raises:
            LakeError: the file system failed.
        """
        now = self._clock()
        known, noted = self._noted
        is_told = bool(tables) or self._share is not None
        if always or tables != known or (is_told and not 0 <= now - noted < ENDED_NS // 4):
            share = None if self._share is None else [self._share.number, self._share.count]
            self._note.write({"time_ns": now, "tables": tables, "share": share})
            self._noted = (dict(tables), now)
