"""The job as a stream: step by step as the lake grows, each step exactly once.

Why it is not a Spark streaming query: rules join several tables, some of which have no rows for days, so that their
watermarks would not advance; absence must be detected when no row arrives at all; and a file of rules may change
between two starts, which a checkpoint forbids. So the source is the lake's log; a step is the same pass as that of a
batch, over the time that became complete; and the detectors' states are stored as a table between the steps.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.arrivals import committed_at, entry_arrivals, is_recording
from qmf.pipeline.correlate.detectors import DetectorContext
from qmf.pipeline.correlate.evaluation import OUT_STATE, EvaluationCounts, EvaluationPass
from qmf.pipeline.correlate.event_time import merged_runs, outages
from qmf.pipeline.correlate.options import CorrelateOptions
from qmf.pipeline.correlate.plan import InputTable, ReadPlan, read_plan, with_counters
from qmf.pipeline.correlate.signals import SignalBuilder
from qmf.pipeline.correlate.spark_evaluation import evaluate_on_spark, states_as_signals
from qmf.pipeline.correlate.table import RESULT_SCHEMA, StreamProgress, StreamTable
from qmf.pipeline.errors import LakeError, lake_errors
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import LakePartition
from qmf.pipeline.lake.location import local_path
from qmf.pipeline.lake.transaction_log import LogEntry
from qmf.pipeline.spark import catalog

#: Files of one step at most: what limits its memory.
DEFAULT_FILES = 1000

#: Runs of recorders, and losses of their connections, that are remembered.
_RUNS = 1000


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


class CorrelationStream:
    """Follows one lake; one process at a time for each `out`."""

    def __init__(
        self,
        spark: SparkSession,
        options: CorrelateOptions,
        print_line: Callable[[str], None],
        *,
        clock: Callable[[], int] = time.time_ns,
        files: int = DEFAULT_FILES,
    ) -> None:
        """Continue from the stored state.

        Args:
            spark: to run on.
            options: of the job; `first` and `last` are ignored.
            print_line: called for each class of a rule that the lake doesn't have.
            clock: ns since 1970.
            files: files of one step at most.

        Raises:
            LakeError: the file system failed, or another process uses this folder.
            PipelineError: the lake or `out` is not a local folder.
        """
        self._spark = spark
        self._options = options
        self._print_line = print_line
        self._clock = clock
        self._files = files
        self._lake = Lake(local_path(options.lake))
        self._hashes = [rule.hash for rule in options.rules]
        self.table = StreamTable(local_path(options.out) / "stream")
        self._lock = _lock(self.table.root)
        self._progress = self.table.open()
        self._is_first = True
        self._printed: set[str] = set()
        self._builder: SignalBuilder | None = None

    @property
    def progress(self) -> StreamProgress:
        """The progress so far."""
        return self._progress

    def close(self) -> None:
        """Release the folder for other processes."""
        self._lock.close()

    def step(self) -> StepResult | None:
        """Evaluate the time that became complete.

        Returns:
            the result, or None where there was nothing to do.

        Raises:
            RuleError: a rule doesn't fit its class.
            LakeError: files were deleted before they were read; the file system failed.
        """
        started = time.monotonic()
        before = self._progress
        new, more = self._new_entries(before.entry)
        after = self._advanced(before, new, idle=not more)
        builder = self._signal_builder(new)
        plan = builder.plan
        pending = list(self._entries(before.pending)) if plan.inputs else []
        if not self._is_due(plan, pending, new, after):
            self._progress = after
            return None
        context = DetectorContext(outages(after.runs, after.pauses))
        evaluation_pass = EvaluationPass(begin=before.begin, end=after.begin, keep=True, context=context)
        parts = [part.where(F.col("at") >= before.begin) for part in self._signals(builder, pending)]
        parts += self._signals(builder, new)
        if before.folder is not None and self.table.has_states(before.folder):
            parts.append(states_as_signals(self._states(before.folder), self._hashes))
        rules = with_counters(self._options.rules, plan)
        results = evaluate_on_spark(self._spark, parts, rules, self._hashes, evaluation_pass)
        number = before.step + 1
        writer = results.write.mode("overwrite").option("partitionOverwriteMode", "static").partitionBy("out")
        writer.parquet(self.table.state_path(str(number)))
        alerts, counts = self.table.write_alerts(number)
        self._progress = attrs.evolve(after, step=number, folder=str(number), due=counts.due)
        self.table.commit(self._progress)
        return StepResult(number, alerts, counts, after.begin, time.monotonic() - started)

    def is_behind(self) -> bool:
        """True while there are entries of the log that were not read."""
        return self._lake.last_entry() > self._progress.entry

    # -- time

    def _advanced(self, before: StreamProgress, new: Sequence[LogEntry], *, idle: bool) -> StreamProgress:
        """The progress after reading some entries."""
        runs, pauses, pending = dict(before.runs), list(before.pauses), dict(before.pending)
        base, lag = before.base, before.lag
        if new and not before.entry and self._lake.last_checkpoint() == new[0].number:
            base = new[0].number
        for entry in new:
            if entry.moved:
                continue
            arrivals = entry_arrivals(self._lake, entry)
            runs = merged_runs(runs, arrivals.runs)
            pauses += arrivals.changes
            if arrivals.runs:
                pending[entry.number] = max(last for _, last in arrivals.runs.values())
                first = min(first for first, _ in arrivals.runs.values())
                lag = max(0, committed_at(self._lake, entry) - first)
        last = max((last for _, last in runs.values()), default=0)
        if idle and not new and runs and is_recording(self._lake):
            # No row arrives because nothing happens: time advances all the same.
            run = max(runs, key=lambda name: runs[name][1])
            last = max(last, self._clock() - lag)
            runs[run] = (runs[run][0], last)
        begin = max(before.begin, last - self._options.late)
        latest = sorted(runs, key=lambda name: runs[name][1])[-_RUNS:]
        return attrs.evolve(
            before,
            entry=new[-1].number if new else before.entry,
            base=base,
            lag=lag,
            begin=begin,
            pending={number: last for number, last in pending.items() if last >= begin},
            runs={run: runs[run] for run in latest},
            pauses=tuple(pause for pause in pauses[-2 * _RUNS :] if pause.run in latest),
        )

    def _is_due(
        self, plan: ReadPlan, pending: Sequence[LogEntry], new: Sequence[LogEntry], after: StreamProgress
    ) -> bool:
        """True where there is something to evaluate."""
        before = self._progress
        if self._is_first:
            self._is_first = False
            if before.folder is not None:
                return True  # the rules may have changed
        if any(self._paths(table, plan, new) for table in plan.inputs):
            return True
        if after.begin <= before.begin:
            return False
        return before.due < after.begin or any(self._paths(table, plan, pending) for table in plan.inputs)

    # -- the lake

    def _new_entries(self, after: int) -> tuple[list[LogEntry], bool]:
        """New entries, as many as fit one step, and whether there are more."""
        taken: list[LogEntry] = []
        files, last = 0, self._lake.last_entry()
        if not after and (base := self._lake.last_checkpoint()):
            return [LogEntry(base, self._lake.checkpoint_files(base))], base < last
        for entry in self._lake.entries(after, last):
            files += len(entry.added)
            if taken and files > self._files:
                break
            taken.append(entry)
        return taken, bool(taken) and taken[-1].number < last

    def _entries(self, numbers: dict[int, int]) -> Iterator[LogEntry]:
        for number in sorted(numbers):
            if number == self._progress.base:
                yield LogEntry(number, self._lake.checkpoint_files(number))
            else:
                yield from self._lake.entries(number - 1, number)

    def _signal_builder(self, new: Sequence[LogEntry]) -> SignalBuilder:
        """The builder; made again when the lake has a new class version."""
        has_schemas = any(path.startswith(f"{RowKind.SCHEMAS.value}/") for entry in new for path in entry.added)
        if self._builder is None or has_schemas:
            try:
                known = catalog.class_versions(str(self._lake.root))
            except LakeError:
                known = []  # the lake doesn't exist yet, or is empty
            plan = read_plan(self._options.rules, known, self._options.file)
            self._builder = SignalBuilder(plan, self._options.late)
            for text in plan.missing:
                if text not in self._printed:
                    self._printed.add(text)
                    self._print_line(text)
        return self._builder

    def _paths(self, table: InputTable, plan: ReadPlan, entries: Sequence[LogEntry]) -> list[str]:
        """The files of a table among those that some entries added."""
        kind = table.row_kind
        partitions = [LakePartition(kind, item.package, item.name, item.hash) for item in plan.versions[table]]
        folders = tuple(f"{partition.folder}/" for partition in partitions) or (f"{kind.value}/",)
        return [path for entry in entries if not entry.moved for path in entry.added if path.startswith(folders)]

    def _signals(self, builder: SignalBuilder, entries: Sequence[LogEntry]) -> list[DataFrame]:
        parts = []
        plan = builder.plan
        for table in plan.inputs:
            paths = [str(self._lake.find(path)) for path in self._paths(table, plan, entries)]
            if paths:
                schema = catalog.kind_schema(table.row_kind, plan.versions[table])
                parts.append(builder.signals(self._spark.read.schema(schema).parquet(*paths), table))
        return parts

    def _states(self, folder: str) -> DataFrame:
        return self._spark.read.schema(RESULT_SCHEMA).parquet(f"{self.table.state_path(folder)}/out={OUT_STATE}")


def _lock(root: Path) -> IO[str]:
    """Lock a folder until the returned file is closed, or the process ends."""
    with lake_errors(root):
        root.mkdir(parents=True, exist_ok=True)
        file = (root / "_lock").open("a", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise LakeError(f"{root}: another process follows into this folder") from None
        except OSError:
            file.close()
            raise
    return file
