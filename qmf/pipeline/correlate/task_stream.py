"""The job as a stream whose steps are made by the tasks of a runner, as on Spark; see `CorrelationStream`.

A step is a map on new files, which makes signals; a key, the bucket of rule and subject; a reduce on the sorted signals
of each bucket, with the detectors that the steps before left; and one commit of the states and the progress. Rows that
wait for their time are part of the states. Alerts, and few rows for each run of a recorder, come to this process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.correlate.alert_table import COLUMNS, arrow_table
from qmf.pipeline.correlate.alerts import Alert, AlertRow, in_order
from qmf.pipeline.correlate.batch_input import (
    FAILURE,
    BatchInput,
    CorrelateOptions,
    FollowedRows,
    FollowedSnapshot,
    columns_key,
    merged_arrivals,
    remove_others,
    signals_of_files,
    write_objects,
)
from qmf.pipeline.correlate.bucket_step import (
    ALERT,
    DETECTOR,
    FIGURES,
    NUMBERS,
    ORDER,
    PENDING,
    ROW,
    BucketStep,
    bucket_files,
    result_schema,
    signals_with_buckets,
    step_schema,
)
from qmf.pipeline.correlate.evaluation import EvaluationCounts, EvaluationPass
from qmf.pipeline.correlate.lake_rows import Arrivals, Position, ended_runs, outages
from qmf.pipeline.correlate.plan import ReadPlan, complete_rules, read_plan
from qmf.pipeline.correlate.rule_stream import SAVE_INTERVAL, RuleStream, StepResult
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.correlate.signal_reader import SignalReader
from qmf.pipeline.correlate.stream import CorrelationStream
from qmf.pipeline.correlate.stream_state import (
    BUCKET,
    DetectorTable,
    StreamProgress,
    TaskProgress,
    bucket_names,
    detector_schema,
    is_whole,
    stored_step,
)
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.location import absolute, local_path
from qmf.pipeline.lake.table_files import FilesByTable
from qmf.pipeline.runners.runner import Rows, Runner


class TaskCorrelationStream(RuleStream):
    """A stream whose steps are made by the tasks of a runner."""

    def __init__(
        self, runner: Runner, options: CorrelateOptions, print_line: Callable[[str], None], *, buckets: int = 16
    ) -> None:
        """Continue from the stored state; otherwise as of `RuleStream`.

        The processes of the runner all have the lake and `out`. Detectors are divided in `buckets`, of which a step has
        tasks at most; the number of the first step counts.
        """
        self._detectors = DetectorTable(options.out)
        stored = self._detectors.progress()
        taken = None
        if stored_step(local_path(options.out)) > (0 if stored is None else stored.stream.step):
            with closing(CorrelationStream(options, lambda _text: None)) as stream:
                taken = stream.snapshot()
        super().__init__(attrs.evolve(options, lake=absolute(options.lake)), print_line, time.time_ns)
        self._runner = runner
        try:
            if taken is not None:
                stored = self._detectors.take_over(taken, buckets)
            self._state.clear()
            self._stored = TaskProgress(buckets=buckets) if stored is None else stored
            self._waiting_goodbyes = self._stored.goodbyes
            self.table.commit(self._stored.stream.step, self._stored.alerts)
            self._followed_folder = local_path(options.out) / "_state" / "followed"
            remove_others(self._followed_folder, self._stored.followed)
        except BaseException:
            self.close()
            raise
        self._pending: list[Alert] = []
        self._has_other_rules = True
        self._planned: tuple[Any, ...] = ()
        self._input: BatchInput | None = None
        self._left_out: frozenset[int] = frozenset()
        self._tasks: Sequence[FilesByTable] = ()
        self._errors: tuple[str, ...] = ()
        self._followed_columns = ""

    @property
    def progress(self) -> StreamProgress:
        return self._stored.stream

    def pending(self) -> list[Alert]:
        return self._pending

    def _take_rules(self, rules: Sequence[Rule]) -> None:  # noqa: ARG002 - the next step reads them
        self._planned, self._has_other_rules, self._failures = (), True, {}

    def _arrivals(self, files: FilesByTable) -> Arrivals:
        given = attrs.evolve(self._make_input(), uncounted=self._rows.uncounted_rows())
        self._tasks = self._runner.portions(files)
        self._given = given
        return merged_arrivals(self._runner.each(self._tasks, given.times))

    def _make_step(
        self, files: FilesByTable, after: StreamProgress, over: EvaluationPass, goodbyes: Sequence[tuple[int, str]]
    ) -> StepResult | None:
        before, given = self._stored.stream, self._given
        followed = self._followed_tasks(given, before.read, after.read)
        has_other_ends = (outages(before.runs, before.pauses), ended_runs(before.runs)) != (over.outages, over.ended)
        is_due = self._has_other_rules or has_other_ends or bool(over.goodbyes) or self._stored.due < over.end
        if not (files or is_due):
            self._save(attrs.evolve(self._stored, stream=after))
            return None
        reduce = BucketStep(
            given=given,
            left_out=self._left_out,
            over=over,
            has_other_ends=has_other_ends,
            step=before.step + 1,
            buckets=self._stored.buckets,
            table=self._detectors.table,
        )
        work = partial(signals_with_buckets, given.hashes, reduce.buckets)
        signals = signals_of_files(self._runner, given, self._tasks, followed, step_schema(), work)
        found = self._evaluate(signals, reduce, after, goodbyes)
        self._has_other_rules = False
        return found

    # -- what is read

    def _plan(self) -> ReadPlan:
        return self._make_input().plan

    def _make_input(self) -> BatchInput:
        """What the rules read, by the classes that the lake has now."""
        known = self.lake.classes()
        plan = read_plan(self._options.rules, known)
        wanted = self._paths_of(plan)
        planned = (known, tuple(self.lake.versions(wanted)))
        if self._input is None or planned != self._planned:
            schemas = self._rows.schemas(wanted)
            with closing(SignalReader(plan, self._options.late, schemas, strict=False)) as reader:
                self._left_out, self._errors = reader.left_out, reader.errors
                self._followed_columns = columns_key(reader.followed_columns)
            self._input = BatchInput(
                lake=self.lake.url,
                storage=self.lake.options,
                late=self._options.late,
                plan=plan,
                rules=complete_rules(self._options.rules, plan),
                hashes=tuple(rule.hash for rule in self._options.rules),
                schemas=schemas,
                uncounted=(),
            )
            self._planned = planned
            self._report(plan.missing, self._errors)
        return self._input

    def _followed_tasks(self, given: BatchInput, before: Position, read: Position) -> list[FollowedRows]:
        """Tasks with the objects that rules follow."""
        paths = given.plan.followed_paths
        if not paths:
            return []
        known = self._stored.followed
        if known.columns != self._followed_columns:
            known = FollowedSnapshot(columns=self._followed_columns)
        since = self._rows.added_files(known.position, {path: before[path] for path in paths if path in before})
        if known.is_outgrown(sum(file.rows for own in since.values() for file in own)):
            # As of what was read before: rows of this step are compared with what came before them.
            old = FollowedRows(since, known.files)
            (written,) = self._runner.each([old], partial(_snapshot, self._followed_folder, given))
            position = {path: before[path] for path in paths if path in before}
            known = FollowedSnapshot(
                columns=self._followed_columns, position=position, files=written[0], rows=written[1]
            )
        self._stored = attrs.evolve(self._stored, followed=known)
        since = self._rows.added_files(known.position, {path: read[path] for path in paths if path in read})
        stored = [FollowedRows({}, known.files)] if known.files else []
        return stored + [FollowedRows(files) for files in self._runner.portions(since)]

    # -- the step

    def _evaluate(
        self, signals: Rows, reduce: BucketStep, after: StreamProgress, goodbyes: Sequence[tuple[int, str]]
    ) -> StepResult | None:
        """Make a step and commit it; None where nothing happened in it."""
        files = self._detectors.files()
        must = self._has_other_rules or reduce.has_other_ends or bool(reduce.over.goodbyes)
        seeds = []
        for bucket in bucket_names(reduce.buckets):
            own, whole = files.get(bucket, ()), is_whole(files.get(bucket, ()))
            idle = not (must or whole) and self._stored.is_idle(bucket, reduce.over.end)
            seeds.append(bucket_files(bucket, own, whole=whole, idle=idle))
        signals = signals.union(self._runner.from_arrow(import_pyarrow().Table.from_pylist(seeds, step_schema())))
        with signals.reduce((BUCKET,), reduce, result_schema(), order=ORDER).persist() as found:
            rows = found.where(ROW, [FIGURES, PENDING, ALERT]).table()
            counts, stored, waits = self._figures(_of(rows, FIGURES))
            self._pending = [row.alert() for row in _alerts(rows, PENDING)]
            alerts = in_order(_alerts(rows, ALERT))
            states = found.where(ROW, [DETECTOR]).select(detector_schema().names)
            written = states.write(self._detectors.table, by=(BUCKET,))
            stored = attrs.evolve(stored, stream=after, goodbyes=tuple(goodbyes), alerts=())
            if not (alerts or counts.rows or waits or written.rows):
                self._waiting_goodbyes = goodbyes
                self._save(stored)
                return None
            if alerts:
                raised = found.where(ROW, [ALERT]).select(arrow_table([], 0).schema.names)
                stored = attrs.evolve(stored, alerts=raised.write(self.table.table).files)
            stored = attrs.evolve(stored, stream=attrs.evolve(after, step=reduce.step))
            unneeded = self._detectors.commit(stored, written.files, files)
        self._stored, self._saved = stored, self._clock()
        self._waiting_goodbyes = goodbyes
        self.table.commit(reduce.step, stored.alerts)
        self._detectors.remove(unneeded)
        remove_others(self._followed_folder, stored.followed)
        return StepResult(reduce.step, alerts, counts, after.begin)

    def _figures(self, rows: Sequence[Mapping[str, Any]]) -> tuple[EvaluationCounts, TaskProgress, bool]:
        """Numbers of signals, what is known of the buckets now, and whether signals wait; failures are noted."""
        self._failures |= {row["number"]: row[FAILURE] for row in rows if row[FAILURE] is not None}
        self._report((), self._errors)
        signals, misdated, too_late, waiting = (sum(row[name] or 0 for row in rows) for name in NUMBERS[:4])
        made = {row[BUCKET]: row for row in rows if row[BUCKET] is not None}
        unsettled = {bucket for bucket, row in made.items() if row["waiting"] or row["pending_alerts"]}
        stored = attrs.evolve(
            self._stored,
            dues={**self._stored.dues, **{bucket: row["next_due"] for bucket, row in made.items()}},
            unsettled=sorted(unsettled.union(self._stored.unsettled).difference(made.keys() - unsettled)),
        )
        return EvaluationCounts(signals, misdated, too_late), stored, waiting > 0

    def _save(self, stored: TaskProgress) -> None:
        """Take over the progress, and commit it from time to time, though nothing happened."""
        self._stored = stored
        if self._clock() - self._saved > SAVE_INTERVAL:
            self._detectors.remove(self._detectors.commit(stored, (), {}))
            self._saved = self._clock()


def _snapshot(folder: Path, given: BatchInput, task: FollowedRows) -> tuple[dict[str, str], int]:
    """Write the last row of each object that rules follow, in one task."""
    with closing(task.reader(given)) as reader:
        return write_objects(folder, reader.followed_objects())


def _of(rows: Any, row: str) -> list[dict[str, Any]]:
    """The rows of a kind."""
    return [item for item in rows.to_pylist() if item[ROW] == row]


def _alerts(rows: Any, row: str) -> list[AlertRow]:
    return [AlertRow(**{name: item[name] for name in COLUMNS}) for item in _of(rows, row)]
