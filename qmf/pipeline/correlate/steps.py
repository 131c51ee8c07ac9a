"""A step of a stream of rules, wherever it runs: its time and how far that has advanced, its signals, its result."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence

import attrs

from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.evaluation import AT, TS, EvaluationCounts, EvaluationPass
from qmf.pipeline.correlate.event_time import ended_runs, merged_runs, outages
from qmf.pipeline.correlate.lake_rows import Arrivals, LakeRows, Position
from qmf.pipeline.correlate.rules import SECOND
from qmf.pipeline.correlate.signal_reader import SignalRow
from qmf.pipeline.correlate.stream_state import StreamProgress
from qmf.pipeline.lake.lake_versions import is_recording
from qmf.pipeline.lake.waiting import ReaderNote

#: Rows that enter the lake with a time that was evaluated already count as of now, if they are not older than this.
GRACE = 10 * SECOND

#: Runs of recorders, and losses of their connections, that are remembered.
_RUNS = 1000

#: Time that rows wait for their commit, until it is known; and at most, as a time of standstill is not meant.
_LAG, _MAX_LAG = 10 * SECOND, 120 * SECOND


@attrs.frozen
class StepResult:
    """The result of a step: rows of the table by time, and counts of the signals.

    Everything before `horizon` was evaluated. It took so many seconds.
    """

    number: int
    alerts: Sequence[AlertRow]
    counts: EvaluationCounts
    horizon: int
    seconds: float


class StepPortions:
    """Portions of signals, of which those of a pass are taken, and what was in them."""

    def __init__(self, portions: Iterator[Sequence[SignalRow]], over: EvaluationPass) -> None:
        """Take the signals of a pass from sorted ones."""
        self._portions, self._over = portions, over
        #: Those that belong to later passes.
        self.waiting: list[SignalRow] = []
        self.rows = self._misdated = self._too_late = 0

    @property
    def counts(self) -> EvaluationCounts:
        """What was in the portions."""
        return EvaluationCounts(self.rows, self._misdated, self._too_late)

    def __iter__(self) -> Iterator[list[SignalRow]]:
        begin, end = self._over.begin, self._over.end
        for portion in self._portions:
            taken = []
            for row in portion:
                at = row[AT]
                if at >= end:
                    self.waiting.append(row)
                    continue
                self.rows += 1
                self._misdated += self._over.dated and at != row[TS]
                if at >= begin:
                    taken.append(row)
                elif begin - at <= GRACE:
                    taken.append((*row[:AT], begin, *row[TS:]))
                else:
                    # Counted now it would change what was published.
                    self._too_late += 1
            yield taken


def step_pass(before: StreamProgress, after: StreamProgress, goodbyes: Sequence[tuple[int, str]]) -> EvaluationPass:
    """The time of a step: what became complete between two progresses; `goodbyes` are those that are known."""
    first = min((first for first, _ in after.runs.values()), default=after.begin)
    return EvaluationPass(
        begin=before.begin,
        end=after.begin,
        start=before.begin or first,
        goodbyes=[(max(at, before.begin), agent) for at, agent in goodbyes if at < after.begin],
        outages=outages(after.runs, after.pauses),
        ended=ended_runs(after.runs),
    )


def signal_order(row: SignalRow) -> tuple[object, ...]:
    """By which signals are sorted."""
    return (*row[: TS + 3], row[7])


class StreamTime:
    """The time of one lake. Belongs to one thread; close it at the end."""

    def __init__(self, rows: LakeRows, late: int, clock: Callable[[], int]) -> None:
        """Begin with no knowledge of how long rows wait for their commit."""
        self._rows, self._late, self._clock = rows, late, clock
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
        """The progress after reading rows up to a position, and the goodbyes that are known.

        The tables are complete until the arrival `complete`; None for no limit.
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
