"""A step of a stream of rules, wherever it runs: its time, its signals, and its result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.evaluation import AT, TS, EvaluationCounts, EvaluationPass
from qmf.pipeline.correlate.event_time import ended_runs, outages
from qmf.pipeline.correlate.rules import SECOND
from qmf.pipeline.correlate.signal_reader import SignalRow
from qmf.pipeline.correlate.stream_state import StreamProgress

#: Rows that enter the lake with a time that was evaluated already count as of now, if they are not older than this.
GRACE = 10 * SECOND


@attrs.frozen
class StepResult:
    """The result of a step.

    Attributes:
        number: of the step.
        alerts: rows of the table, by time.
        counts: of the signals.
        horizon: everything before this time was evaluated.
        seconds: duration of the step.
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
