"""Which processes are shown, and the reading of each.

Cost rules at one sample per second: a process that is not shown costs one small read (its main memory, for the
ranking), and two more (name, command line) while patterns are watched. Only those that are shown are read in full.
"""

from __future__ import annotations

import heapq
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import attrs
import psutil

from qmf.hostagent.settings import Selection, Show
from qmf.hostagent.source import Process, Psutil
from qmf.hostagent.values import nanoseconds

#: Factor on the memory of processes that are shown already. Two of nearly the same size would otherwise take turns.
STAY = 1.1

# `ppid` makes psutil notice that the number went to another process meanwhile.
_WANTED = (
    "cpu_times create_time io_counters memory_info name nice num_ctx_switches num_fds num_threads ppid status username"
)
_FIELDS = [name for name in _WANTED.split() if hasattr(psutil.Process, name)]

#: Number and start of a process, the latter in nanoseconds since 1970: numbers are used again.
Key = tuple[int, int]


@attrs.frozen
class Row:
    """One process to be shown.

    Attributes:
        handle: psutil's.
        watched: one of the operator's patterns finds it.
        fields: psutil's values by name; None, or absent, where not permitted or not known on this platform.
    """

    handle: Process
    watched: bool
    fields: Mapping[str, Any]

    @property
    def started(self) -> int:
        """When it was started, nanoseconds since 1970; 0 where not permitted."""
        return nanoseconds(self.fields.get("create_time") or 0.0)

    @property
    def key(self) -> Key:
        """Tells it from a later process with the same number."""
        return self.handle.pid, self.started


class Choice:
    """Chooses processes, sample after sample.

    Args:
        selection: which ones, besides the agent's own and the watched.
        watch: patterns of those to be watched.
        command_lines: read command lines, too.
    """

    def __init__(
        self, selection: Selection, watch: tuple[re.Pattern[str], ...] = (), *, command_lines: bool = False
    ) -> None:
        self._fields = [*_FIELDS, "cmdline"] if command_lines else _FIELDS
        self._selection = selection
        self._watch = watch
        self._own = os.getpid()
        self._shown: frozenset[int] = frozenset()

    def read(self, ps: Psutil) -> list[Row]:
        """The processes to be shown now. Those that end while they are read are left out. Blocks."""
        rows = [row for handle, watched in self._choose(ps) if (row := self._read(handle, watched)) is not None]
        self._shown = frozenset(row.handle.pid for row in rows)
        return rows

    def _choose(self, ps: Psutil) -> Iterator[tuple[Process, bool]]:
        ranked: list[tuple[float, int, Process]] = []
        for handle in ps.process_iter():
            watched = self._is_watched(handle)
            if watched or handle.pid == self._own or self._selection.show is Show.ALL:
                yield handle, watched
            elif self._selection.show is Show.TOP and (size := self._size(handle)):
                # The number decides between equals, so that the order is the same each time.
                ranked.append((size, -handle.pid, handle))
        for _, _, handle in heapq.nlargest(self._selection.count, ranked, key=lambda entry: entry[:2]):
            yield handle, False

    def _is_watched(self, handle: Process) -> bool:
        # Our own command line holds the patterns: they would always find us.
        if not self._watch or handle.pid == self._own:
            return False
        try:
            texts = [handle.name()]
            with suppress(psutil.AccessDenied):
                texts.append(" ".join(handle.cmdline()))
            if not any(pattern.search(text) for pattern in self._watch for text in texts):
                return False
            # A zombie has ended; it only waits for its parent to notice.
            return handle.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def _size(self, handle: Process) -> float:
        try:
            size = handle.memory_info().rss
        except psutil.Error:
            return 0.0
        return size * STAY if handle.pid in self._shown else float(size)

    def _read(self, handle: Process, watched: bool) -> Row | None:
        try:
            return Row(handle, watched, handle.as_dict(self._fields))
        except psutil.NoSuchProcess:
            return None
