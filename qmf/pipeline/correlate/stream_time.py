"""How far the time of a lake has advanced, for a stream of rules."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

import attrs

from qmf.pipeline.correlate.event_time import merged_runs
from qmf.pipeline.correlate.lake_rows import Arrivals, LakeRows, Position
from qmf.pipeline.correlate.rules import SECOND
from qmf.pipeline.correlate.stream_state import StreamProgress
from qmf.pipeline.lake.recorders import is_recording
from qmf.pipeline.lake.waiting import ReaderNote

#: Runs of recorders, and losses of their connections, that are remembered.
_RUNS = 1000

#: Time that rows wait for their commit, until it is known; and at most, as a time of standstill is not meant.
_LAG, _MAX_LAG = 10 * SECOND, 120 * SECOND


class StreamTime:
    """The time of one lake. Belongs to one thread; close it at the end."""

    def __init__(self, rows: LakeRows, late: int, clock: Callable[[], int]) -> None:
        """Begin with no knowledge of how long rows wait for their commit.

        Args:
            rows: of the lake.
            late: ns that rows may be late, see `event_time`.
            clock: ns since 1970.
        """
        self._rows = rows
        self._late = late
        self._clock = clock
        self._note = ReaderNote(rows.lake, "correlate", clock)
        self._lags: deque[int] = deque(maxlen=20)
        self._has_read = False
        #: Goodbyes of agents that belong to later steps, as (time, agent).
        self.waiting_goodbyes: Sequence[tuple[int, str]] = ()

    def close(self) -> None:
        """Let recorders hold rows back again."""
        self._note.close()

    def renew(self, paths: Iterable[str]) -> None:
        """Name the tables that are followed for recorders, which don't hold back rows of them then."""
        self._note.renew(paths)

    def progress_after(
        self, before: StreamProgress, until: Position, arrivals: Arrivals, complete: int | None
    ) -> tuple[StreamProgress, list[tuple[int, str]]]:
        """The progress after reading rows, and the goodbyes that are known.

        Args:
            before: the progress so far.
            until: what was read.
            arrivals: of the new rows.
            complete: the arrival until which the tables are complete; None for no limit.
        """
        runs = merged_runs(before.runs, arrivals.runs)
        last = max((last for _, last in runs.values()), default=0)
        now = self._clock()
        if arrivals.runs:
            # What is read first has been waiting for this process; its commit knows how long it waited before.
            first = min(first for first, _ in arrivals.runs.values())
            lag = now - first if self._has_read else self._rows.last_lag()
            self._has_read = True
            if lag is not None and 0 <= lag < _MAX_LAG:
                self._lags.append(lag)
        elif runs and is_recording(self._rows.lake):
            # No row arrives because nothing happens: time advances all the same.
            run = max(runs, key=lambda name: runs[name][1])
            last = max(last, now - 2 * max(self._lags, default=_LAG))
            runs[run] = (runs[run][0], last)
        latest = sorted(runs, key=lambda name: runs[name][1])[-_RUNS:]
        pauses = (*before.pauses, *arrivals.changes)[-2 * _RUNS :]
        after = attrs.evolve(
            before,
            read={**before.read, **until},
            begin=max(before.begin, (last if complete is None else min(last, complete - 1)) + 1 - self._late),
            runs={run: runs[run] for run in latest},
            pauses=tuple(pause for pause in pauses if pause.run in latest),
        )
        return after, sorted([*self.waiting_goodbyes, *arrivals.goodbyes])
