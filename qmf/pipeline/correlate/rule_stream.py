"""What streams of rules have in common, wherever their steps are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing

import attrs

from qmf._closable import Closable
from qmf.pipeline.correlate.alert_table import AlertTable
from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.correlate.batch_input import CorrelateOptions
from qmf.pipeline.correlate.lake_rows import TIME_PATHS, LakeRows
from qmf.pipeline.correlate.plan import ReadPlan, read_plan
from qmf.pipeline.correlate.rules import SECOND, Rule
from qmf.pipeline.correlate.signal_reader import SignalReader
from qmf.pipeline.correlate.steps import StepResult, StreamTime
from qmf.pipeline.correlate.stream_state import StreamProgress, StreamState
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_versions import LakeVersions
from qmf.pipeline.lake.location import local_path

#: ns between commits of the progress while nothing else is to be committed.
SAVE_INTERVAL = 60 * SECOND


class RuleStream(Closable):
    """Follows one lake; one process at a time for each `out`. Belongs to one thread; close it at the end."""

    def __init__(self, options: CorrelateOptions, print_line: Callable[[str], None], clock: Callable[[], int]) -> None:
        """Open the state, and lock the folder of the tables; `first` and `last` of the options are ignored.

        Args:
            options: of the job.
            print_line: called for each class of a rule that the lake doesn't have, and each rule that fails.
            clock: ns since 1970.

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
        self._time = StreamTime(self._rows, options.late, clock)
        self._stack.callback(self._time.close)
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
        """Evaluate the time that became complete; None where there was nothing to do.

        Args:
            until: of all tables of the lake, up to which they are read; None for all that is there.

        Raises:
            LakeError: rows were removed before they were read; a lake or a file is not there; the file system failed.
        """
        raise NotImplementedError

    # -- for subclasses

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
