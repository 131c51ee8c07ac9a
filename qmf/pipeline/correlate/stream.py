"""The job as a stream: step by step as the lake grows, each step exactly once.

A step evaluates the rows that came since the step before, in this process, with the detectors that the steps before
left. Everything up to the horizon is evaluated, rows after it wait in memory; a restart reads them again. What a step
changed is committed as one transaction.
"""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.correlate.alerts import Alert, AlertRow, in_order
from qmf.pipeline.correlate.batch_input import CorrelateOptions
from qmf.pipeline.correlate.evaluation import AT, EvaluationPass, Evaluator, StoredState, orphans_cleared
from qmf.pipeline.correlate.lake_rows import Arrivals, Position
from qmf.pipeline.correlate.plan import ReadPlan, complete_rules, read_plan
from qmf.pipeline.correlate.rule_stream import SAVE_INTERVAL, RuleStream, StepPortions, StepResult, signal_order
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.correlate.signal_reader import SignalReader, SignalRow
from qmf.pipeline.correlate.stream_state import DetectorTable, StreamProgress, StreamSnapshot, WaitingSignal
from qmf.pipeline.lake.delta_lake import RecordedClass
from qmf.pipeline.lake.table_files import FilesByTable

#: Steps from one look for detectors that can be forgotten to the next.
_SWEEP = 1000


class CorrelationStream(RuleStream):
    """A stream whose steps are made in this process."""

    def __init__(
        self, options: CorrelateOptions, print_line: Callable[[str], None], *, clock: Callable[[], int] = time.time_ns
    ) -> None:
        """Continue from the stored state; arguments and errors are those of `RuleStream`."""
        super().__init__(options, print_line, clock)
        self._reader: SignalReader | None = None
        self._known: Sequence[RecordedClass] = ()
        self._added: Mapping[str, Any] = {}
        self._waiting: list[SignalRow] = []
        #: The positions before the last steps, with the latest time of the rows that each of them read.
        self._reads: deque[tuple[Position, int]] = deque()
        self._ended: list[AlertRow] = []
        #: Detectors that are no more, of rules that were changed or removed among others.
        self._gone: list[StoredState] = []
        try:
            self._take_over()
            self._progress = self._state.progress()
            self._set_rules(options.rules)
            self._restore()
        except BaseException:
            self.close()
            raise

    @property
    def progress(self) -> StreamProgress:
        return self._progress

    def pending(self) -> list[Alert]:
        return [row.alert() for row in self._evaluator.pending()]

    def _take_rules(self, rules: Sequence[Rule]) -> None:
        kept = {rule.hash: number for number, rule in enumerate(rules)}
        before = self._evaluator
        self._set_rules(rules)
        self._make_reader()
        for stored in before.stored_states(before.detectors, self._progress.begin):
            self._restore_or_end(stored)
        # Rows that wait have the numbers of the rules before.
        numbers = {number: kept[hash] for number, hash in enumerate(before.hashes) if hash in kept}
        self._waiting = [(numbers[row[0]], *row[1:]) for row in self._waiting if row[0] in numbers]

    def snapshot(self) -> StreamSnapshot:
        """The state, for a stream that continues with it; no step was made in this process."""
        hashes = self._evaluator.hashes
        waiting = [WaitingSignal(row[AT], hashes[row[0]], row[1], json.dumps(row[AT:])) for row in self._waiting]
        states = list(self._state.states())
        goodbyes = self._waiting_goodbyes
        return StreamSnapshot(progress=self._progress, states=states, waiting=waiting, goodbyes=goodbyes)

    def close(self) -> None:
        super().close()
        if self._reader is not None:
            self._reader.close()

    def _arrivals(self, files: FilesByTable) -> Arrivals:
        self._added = self._rows.datasets(files)
        return self._rows.arrivals(self._added)

    def _make_step(
        self, files: FilesByTable, after: StreamProgress, over: EvaluationPass, goodbyes: Sequence[tuple[int, str]]
    ) -> StepResult | None:
        if not (files or over.end > over.begin or self._ended or self._gone):
            self._save(after)
            return None
        portions = StepPortions(self._signals(self._added), over)
        alerts = in_order([*self._ended, *self._evaluator.step(portions, over)])
        self._reads.append((self._progress.read, max((row[AT] for row in portions.waiting), default=0)))
        self._waiting, self._waiting_goodbyes = portions.waiting, goodbyes
        # From where on rows must be read again after a restart.
        while self._reads and self._reads[0][1] < after.begin:
            self._reads.popleft()
        after = attrs.evolve(after, again=self._reads[0][0] if self._reads else after.read)
        if not (alerts or portions.rows or self._evaluator.touched or self._gone):
            self._save(after)
            return None
        self._commit(after, alerts)
        return StepResult(self._progress.step, alerts, portions.counts, after.begin)

    # -- rules

    def _take_over(self) -> None:
        """Continue with the state of a stream by tasks that was here last."""
        detectors = DetectorTable(self._options.out)
        stored = detectors.progress()
        if stored is not None and stored.stream.step > self._state.progress().step:
            self.table.commit(stored.stream.step, stored.alerts)
            self._state.take_over(detectors.snapshot(stored))
        if stored is not None:
            detectors.clear()

    def _set_rules(self, rules: Sequence[Rule]) -> None:
        self._failures = {}
        self._evaluator = Evaluator(rules, [rule.hash for rule in rules])

    def _restore(self) -> None:
        numbers = {hash: number for number, hash in enumerate(self._evaluator.hashes)}
        self._make_reader()
        for stored in self._state.states():
            self._restore_or_end(stored)
        if self._progress.again != self._progress.read:
            self._read_again()
        waiting, goodbyes = self._state.taken_over()
        for signal in waiting:
            if signal.hash in numbers and signal.at >= self._progress.begin:
                self._waiting.append((numbers[signal.hash], signal.key, *json.loads(signal.content)))
        if goodbyes:
            self._waiting_goodbyes = sorted({*self._waiting_goodbyes, *goodbyes})

    def _restore_or_end(self, stored: StoredState) -> None:
        """Restore a detector; the alerts of a rule that was changed or removed end."""
        if stored.state is None:
            self._gone.append(stored)
        elif not self._evaluator.restore(stored):
            self._ended += orphans_cleared(stored, self._progress.begin)
            self._gone.append(attrs.evolve(stored, state=None))

    def _make_reader(self) -> None:
        """Prepare to read what the rules need; rules that don't fit their class are left out."""
        known = self.lake.classes()
        plan = read_plan(self._options.rules, known)
        paths = SignalReader.paths(plan)
        reader = SignalReader(plan, self._options.late, self._rows.schemas(paths), strict=False)
        if self._reader is not None:
            self._reader.close()
        self._reader, self._known = reader, known
        self._evaluator.rules = complete_rules(self._options.rules, plan)
        self._evaluator.left_out = reader.left_out
        read = self._progress.read
        reader.follow(
            self._rows.added_rows({}, {path: read[path] for path in reader.plan.followed_paths if path in read})
        )
        reader.forget_followed()
        self._report(plan.missing, reader.errors)

    # -- rows

    def _plan(self) -> ReadPlan:
        if self.lake.classes() != self._known:
            self._make_reader()
        assert self._reader is not None
        return self._reader.plan

    def _signals(self, rows: Mapping[str, object]) -> Iterator[list[SignalRow]]:
        """The signals of new rows and of those that waited, sorted, in portions."""
        assert self._reader is not None
        self._reader.follow(rows)
        if self._waiting:
            found = [row for portion in self._reader.signals(rows) for row in portion]
            yield sorted([*self._waiting, *found], key=signal_order)
        else:
            yield from self._reader.signals(rows)
        self._reader.forget_followed()
        if self._reader.failures:
            self._failures |= self._reader.failures
            self._report((), self._reader.errors)

    def _read_again(self) -> None:
        """Read the rows that waited for their time when the process before ended."""
        assert self._reader is not None
        progress = self._progress
        rows = self._rows.added_rows(self._progress.again, progress.read)
        self._waiting = [row for portion in self._reader.signals(rows) for row in portion if row[AT] >= progress.begin]
        goodbyes = self._rows.arrivals(rows).goodbyes
        self._waiting_goodbyes = [item for item in goodbyes if item[0] >= progress.begin]
        latest = max((row[AT] for row in self._waiting), default=0)
        self._reads.append((self._progress.again, latest))

    # -- the state

    def _commit(self, after: StreamProgress, alerts: Sequence[AlertRow]) -> None:
        progress = self._progress = attrs.evolve(after, step=after.step + 1)
        if not progress.step % _SWEEP:
            self._evaluator.touched.update(self._evaluator.detectors)
        changed = list(self._gone)
        for subject in self._evaluator.touched:
            changed += self._evaluator.stored_states([subject], progress.begin)
            if changed[-1].state is None:
                del self._evaluator.detectors[subject]
        self._state.commit(progress, changed, alerts)
        self._ended, self._gone, self._saved = [], [], self._clock()
        self._state.publish()

    def _save(self, after: StreamProgress) -> None:
        """Take over the progress, and commit it from time to time, though nothing happened."""
        self._progress = after
        if self._clock() - self._saved > SAVE_INTERVAL:
            self._state.commit(after)
            self._saved = self._clock()
