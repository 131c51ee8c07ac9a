"""Selection of the processes shown, and the reading of each.

Samples may be taken every second, so reads are few: a process that is not shown costs one small read (its main memory,
for the ranking), and two more (name, command line) if there are patterns to watch. Only processes that are shown are
read in full.
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

from qmf.hostagent.conversions import nanoseconds
from qmf.hostagent.machine import ProcessHandle, Psutil
from qmf.hostagent.settings import ProcessSelection, Show

#: Factor on the memory of processes that are already shown, so that two of nearly the same size do not alternate.
STAY_FACTOR = 1.1

# `ppid` makes psutil notice that the number belongs to another process by now.
_FIELD_NAMES = (
    "cpu_times create_time io_counters memory_info name nice num_ctx_switches num_fds num_threads ppid status username"
)
_FIELDS = [name for name in _FIELD_NAMES.split() if hasattr(psutil.Process, name)]

#: Number and start time of a process, the latter in nanoseconds since 1970: the system reuses numbers.
ProcessKey = tuple[int, int]


@attrs.frozen
class SelectedProcess:
    """One process to be shown.

    Attributes:
        handle: psutil's.
        watched: one of the operator's patterns matches it.
        fields: psutil's values by name; None or absent if not permitted or not known on this platform.
    """

    handle: ProcessHandle
    watched: bool
    fields: Mapping[str, Any]

    @property
    def started(self) -> int:
        """Its start time, nanoseconds since 1970; 0 if not permitted."""
        return nanoseconds(self.fields.get("create_time") or 0.0)

    @property
    def key(self) -> ProcessKey:
        """Key that differs from that of a later process with the same number."""
        return self.handle.pid, self.started


class ProcessSelector:
    """Selects the processes to be shown in each sample.

    Args:
        selection: which ones, besides the agent's own and the watched ones.
        watch: patterns of processes to watch.
        command_lines: read command lines, too.
    """

    def __init__(
        self, selection: ProcessSelection, watch: tuple[re.Pattern[str], ...] = (), *, command_lines: bool = False
    ) -> None:
        self._fields = [*_FIELDS, "cmdline"] if command_lines else _FIELDS
        self._selection = selection
        self._watch = watch
        self._own = os.getpid()
        self._shown: frozenset[int] = frozenset()

    def read(self, ps: Psutil) -> list[SelectedProcess]:
        """The processes to be shown now, without those that end while they are read. Blocks."""
        processes = [
            process for handle, watched in self._select(ps) if (process := self._read(handle, watched)) is not None
        ]
        self._shown = frozenset(process.handle.pid for process in processes)
        return processes

    def _select(self, ps: Psutil) -> Iterator[tuple[ProcessHandle, bool]]:
        ranked: list[tuple[float, int, ProcessHandle]] = []
        for handle in ps.process_iter():
            watched = self._is_watched(handle)
            if watched or handle.pid == self._own or self._selection.show is Show.ALL:
                yield handle, watched
            elif self._selection.show is Show.TOP and (size := self._size(handle)):
                # The number orders processes of equal size, so that the order is the same each time.
                ranked.append((size, -handle.pid, handle))
        for _, _, handle in heapq.nlargest(self._selection.count, ranked, key=lambda entry: entry[:2]):
            yield handle, False

    def _is_watched(self, handle: ProcessHandle) -> bool:
        # Our own command line holds the patterns, which would always match it.
        if not self._watch or handle.pid == self._own:
            return False
        try:
            texts = [handle.name()]
            with suppress(psutil.AccessDenied):
                texts.append(" ".join(handle.cmdline()))
            if not any(pattern.search(text) for pattern in self._watch for text in texts):
                return False
            # A zombie has ended; only its parent has not noticed yet.
            return handle.status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    def _size(self, handle: ProcessHandle) -> float:
        try:
            size = handle.memory_info().rss
        except psutil.Error:
            return 0.0
        return size * STAY_FACTOR if handle.pid in self._shown else float(size)

    def _read(self, handle: ProcessHandle, watched: bool) -> SelectedProcess | None:
        try:
            return SelectedProcess(handle, watched, handle.as_dict(self._fields))
        except psutil.NoSuchProcess:
            return None
