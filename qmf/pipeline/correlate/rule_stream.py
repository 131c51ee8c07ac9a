"""What streams of rules have in common, wherever their steps are made: their time, the signals of a step, the state."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing

import attrs

from qmf._closable import Closable
from qmf.pipeline.correlate.alert_table import AlertTable
from qmf.pipeline.correlate.alerts import Alert, AlertRow
from qmf.pipeline.correlate.batch_input import CorrelateOptions
from qmf.pipeline.correlate.evaluation import AT, TS, EvaluationCounts, EvaluationPass
from qmf.pipeline.correlate.lake_rows import TIME_PATHS, Arrivals, LakeRows, Position, ended_runs, merged_runs, outages
from qmf.pipeline.correlate.plan import ReadPlan, read_plan
from qmf.pipeline.correlate.rules import SECOND, Rule
from qmf.pipeline.correlate.signal_reader import SignalReader, SignalRow
from qmf.pipeline.correlate.stream_state import StreamProgress, StreamState
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_versions import LakeVersions, find_versions, is_recording
from qmf.pipeline.lake.location import local_path
from qmf.pipeline.lake.table_files import FilesByTable
from qmf.pipeline.lake.waiting import ReaderNote

#: Rows that enter the lake with a time that was evaluated already count as of now, if they are not older than this.
GRACE = 10 * SECOND

#: Runs of recorders, and losses of their connections, that are remembered.
_RUNS = 1000

#: Time that rows wait for their commit, until it is known; and at most, as a time of standstill is not meant.
_LAG, _MAX_LAG = 10 * SECOND, 120 * SECOND


@attrs.frozen
class StepResult:
    """The result of a step."""

    number: int
    alerts: Sequence[AlertRow]  #: by time
    counts: EvaluationCounts  #: of the signals
    horizon: int  #: everything before it was evaluated
    seconds: float = 0.0  #: that it took


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


#: ns between commits of the progress while nothing else is to be committed.
SAVE_INTERVAL = 60 * SECOND


class RuleStream(Closable):
    """Follows one lake; one process at a time for each `out`. Belongs to one thread; close it at the end."""

    def __init__(self, options: CorrelateOptions, print_line: Callable[[str], None], clock: Callable[[], int]) -> None:
        """Open the state, and lock the folder of the tables; `first` and `last` of the options are ignored.

        Classes that the lake doesn't have, and rules that fail, are printed; the clock has ns since 1970.

        Raises:
            LakeError: the file system failed, or another process uses this folder.
            PipelineError: `out` is not a local folder.
        """
        self._options, self._print_line, self._clock = options, print_line, clock
        self._stack = ExitStack()
        self._state = StreamState(local_path(options.out))
        self._stack.callback(self._state.close)
        #: The lake that is followed.
        self.lake = DeltaLake(options.lake, options.storage)
        self._rows = LakeRows(self.lake, options.late)
        self._stack.callback(self._rows.close)
        self._note = ReaderNote(self.lake, "correlate", clock)
        self._stack.callback(self._note.close)
        #: How long rows waited for their commit, in the last steps.
        self._lags: deque[int] = deque(maxlen=20)
        self._has_read = False
        #: Goodbyes of agents that belong to later steps, as (time, agent).
        self._waiting_goodbyes: Sequence[tuple[int, str]] = ()
        self._saved = clock()
        self._printed: set[str] = set()
        #: Expressions that could not be computed for some rows, by the number of their rule; and what was stored.
        self._failures: dict[int, str] = {}
        self._stored_failures: Sequence[str] | None = None

    def close(self) -> None:
        """Release the folder for other processes."""
        self._stack.close()

    @property
    def table(self) -> AlertTable:
        """The table of the alerts."""
        return self._state.table

    @property
    def progress(self) -> StreamProgress:
        """The progress so far."""
        raise NotImplementedError

    def pending(self) -> list[Alert]:
        """The alerts whose condition holds, but not for long enough yet."""
        raise NotImplementedError

    def replace_rules(self, rules: Sequence[Rule]) -> None:
        """Evaluate other rules from now on: those that didn't change continue, alerts of the others end.

        Raises:
            RuleError: a rule doesn't fit its class; the rules before stay.
        """
        plan = read_plan(rules, self.lake.classes())
        with closing(SignalReader(plan, self._options.late, self._rows.schemas(SignalReader.paths(plan)))):
            self._options = attrs.evolve(self._options, rules=tuple(rules), wrong=())
        self._take_rules(rules)

    def _take_rules(self, rules: Sequence[Rule]) -> None:
        raise NotImplementedError

    def step(self, until: LakeVersions | None = None) -> StepResult | None:
        """Evaluate the time that became complete, up to some versions; None where there was nothing to do.

        Raises:
            LakeError: rows were removed before they were read; a lake or a file is not there; the file system failed.
        """
        started = time.monotonic()
        if until is None:
            until = find_versions(self.lake, self._find, self._clock)
        before, paths = self.progress, self._paths_of(self._plan())
        self._note.renew(paths)
        read = {path: max(until.versions[path], before.read.get(path, -1)) for path in paths if path in until.versions}
        files = self._rows.added_files(before.read, read, since=before.begin - GRACE)
        after, goodbyes = self._progress_after(read, self._arrivals(files), until.complete_until(paths))
        over = attrs.evolve(step_pass(before, after, goodbyes), dated=self._options.late > 0)
        found = self._make_step(files, after, over, [item for item in goodbyes if item[0] >= over.end])
        return None if found is None else attrs.evolve(found, seconds=time.monotonic() - started)

    # -- for subclasses

    def _arrivals(self, files: FilesByTable) -> Arrivals:
        """What the rows of new files tell besides their values."""
        raise NotImplementedError

    def _make_step(
        self, files: FilesByTable, after: StreamProgress, over: EvaluationPass, goodbyes: Sequence[tuple[int, str]]
    ) -> StepResult | None:
        """Evaluate what was added, and commit it; `goodbyes` belong to later steps. None where nothing happened."""
        raise NotImplementedError

    def _paths_of(self, plan: ReadPlan) -> list[str]:
        """The tables that are read."""
        return list(dict.fromkeys([*SignalReader.paths(plan), *TIME_PATHS]))

    def _find(self) -> Mapping[str, int]:
        """The position of the present; classes that are new are found before their rows are looked for."""
        return self._rows.versions(self._paths_of(self._plan()))

    def _plan(self) -> ReadPlan:
        """What is read, with the classes that the lake has now."""
        raise NotImplementedError

    def _report(self, missing: Sequence[str], errors: Sequence[str]) -> None:
        """Print what was not printed before: classes that are missing, and rules that fail; store the latter."""
        failures = (*self._options.wrong, *errors, *self._failures.values())
        for text in (*missing, *failures):
            if text not in self._printed:
                self._printed.add(text)
                self._print_line(text)
        if failures != self._stored_failures:
            self._stored_failures = failures
            self._state.set_failures(failures)

    def _progress_after(
        self, until: Position, arrivals: Arrivals, complete: int | None
    ) -> tuple[StreamProgress, list[tuple[int, str]]]:
        """The progress after reading rows up to a position, and the goodbyes that are known.

        The tables are complete until the arrival `complete`; None for no limit.
        """
        before = self.progress
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
        elif runs and is_recording(self.lake):
            # No row arrives because nothing happens: time advances all the same.
            run = max(runs, key=lambda name: runs[name][1])
            last = max(last, now - 2 * max(self._lags, default=_LAG))
            runs[run] = (runs[run][0], last)
        latest = sorted(runs, key=lambda name: runs[name][1])[-_RUNS:]
        pauses = (*before.pauses, *arrivals.changes)[-2 * _RUNS :]
        after = attrs.evolve(
            before,
            read={**before.read, **until},
            begin=max(before.begin, (last if complete is None else min(last, complete - 1)) + 1 - self._options.late),
            runs={run: runs[run] for run in latest},
            pauses=tuple(pause for pause in pauses if pause.run in latest),
        )
        return after, sorted([*self._waiting_goodbyes, *arrivals.goodbyes])
