"""Which tables of a batch are committed, and the rows of those that are not yet.

A commit costs its table's log a few kilobytes, whatever its rows are. So the rows of a table that has had small
commits only for a while wait for each other: until the interval of quiet tables is over, they are many, a reader
follows the table, or the recorder ends. Only tables of classes can be quiet: the others say how far time has advanced.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.row_columns import CLASS_KINDS

#: Seconds that rows of a quiet table wait at most, and for which its commits were small before.
QUIET_INTERVAL = 300.0

#: Bytes of Arrow that make no small commit, and bytes of all tables that wait at most.
SMALL_BYTES, _MOST_BYTES = 64 * 1024, 32 * 1024 * 1024

_CLASS_FOLDERS = tuple(f"{kind.value}/" for kind in CLASS_KINDS)


@attrs.define
class _Waiting:
    """Rows of one table, by the number of their batch."""

    since: float
    first_ns: int
    parts: dict[int, Any] = attrs.field(factory=dict)

    @property
    def size(self) -> int:
        return sum(part.nbytes for part in self.parts.values())


class QuietTables:
    """The rows of one recorder between their batch and their commit. Belongs to one thread at a time."""

    def __init__(self, interval: float = QUIET_INTERVAL, clock: Callable[[], float] = time.monotonic) -> None:
        """Begin without rows.

        Args:
            interval: seconds that rows of a quiet table wait at most; 0 for no quiet tables.
            clock: seconds.
        """
        self._interval = interval
        self._clock = clock
        self._waiting: dict[str, _Waiting] = {}
        #: Since when a table has had small commits only.
        self._small_since: dict[str, float] = {}
        #: The batch that is being committed, and its tables: they stay the same when it is tried again.
        self._chosen: tuple[int, tuple[str, ...]] = (0, ())

    def add(self, number: int, tables: Mapping[str, Any], *, followed: frozenset[str], all_due: bool) -> None:
        """Take over the rows of a batch, and choose what is committed with it. A batch that is known is not changed.

        Args:
            number: of the batch.
            tables: its rows, Arrow tables by path.
            followed: tables that readers follow.
            all_due: nothing may wait.
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
    import_pyarrow()
    from pyarrow import compute

    return int(compute.min(rows["_received_ns"]).as_py() or 0)
