"""The job as a batch: all rules over a whole lake, the alerts into a table.

A batch replaces the table of the batch before; running it again gives the same rows, with the same ids. It knows
nothing from before its first day: an alert that was open then is found when its rule is fulfilled again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.detectors import DetectorContext
from qmf.pipeline.correlate.evaluation import EvaluationCounts, EvaluationPass
from qmf.pipeline.correlate.event_time import CONNECTION_REASONS, ConnectionChange, outages
from qmf.pipeline.correlate.options import CorrelateOptions
from qmf.pipeline.correlate.plan import InputTable, ReadPlan, read_plan, with_counters
from qmf.pipeline.correlate.rules import AbsenceRule, Rule
from qmf.pipeline.correlate.signals import SignalBuilder
from qmf.pipeline.correlate.spark_evaluation import evaluate_on_spark, total_counts
from qmf.pipeline.correlate.table import alert_table, alerts_from_results
from qmf.pipeline.errors import LakeError
from qmf.pipeline.frames import Frames
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.classes import choose_classes
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.spark import catalog, sinks


@attrs.frozen
class BatchResult:
    """The result of a batch.

    Attributes:
        alerts: rows of the table, by time.
        counts: of the signals.
    """

    alerts: Sequence[AlertRow]
    counts: EvaluationCounts


def correlate_batch(
    spark: SparkSession, options: CorrelateOptions, print_line: Callable[[str], None], *, until: int | None = None
) -> BatchResult:
    """Evaluate the rules over a lake, and write the table.

    Args:
        spark: to run on.
        options: of the job.
        print_line: called for each class of a rule that the lake doesn't have.
        until: evaluate the time before this only, ns since 1970; None for all.

    Raises:
        RuleError: a rule doesn't fit its class.
        LakeError: no lake.
    """
    frames = Frames(spark, options.lake, first=options.first, last=options.last)
    plan = read_plan(options.rules, known_classes(options.lake, spark), options.file)
    for text in plan.missing:
        print_line(text)
    results = correlate(frames, options.rules, plan, options.late, until=until).persist()
    try:
        sinks.overwrite(alert_table(results).coalesce(1), f"{options.out.rstrip('/')}/batch", by=())
        return BatchResult(alerts_from_results(results), total_counts(results))
    finally:
        results.unpersist()


def correlate(
    frames: Frames, rules: Sequence[Rule], plan: ReadPlan, late: int, *, until: int | None = None
) -> DataFrame:
    """Evaluate the rules over a lake; `table.alert_table` makes the table from the results.

    Args:
        frames: the lake.
        rules: to evaluate.
        plan: what they read.
        late, until: as of `correlate_batch`.
    """
    last, not_recorded = _recorded_time(frames, rules, plan)
    end = last + 1 if until is None else min(until, last + 1)
    evaluation_pass = EvaluationPass(begin=-(1 << 62), end=end, keep=False, context=DetectorContext(not_recorded))
    builder = SignalBuilder(plan, late)
    parts = [builder.signals(_rows(frames, table, plan), table) for table in plan.inputs]
    hashes = [rule.hash for rule in rules]
    return evaluate_on_spark(frames.spark, parts, with_counters(rules, plan), hashes, evaluation_pass)


def known_classes(lake: str, spark: SparkSession) -> list[ClassVersion]:
    """The class versions of a lake; none where it holds only heartbeats so far.

    Raises:
        LakeError: there is no lake, or nothing in it.
    """
    try:
        return catalog.class_versions(lake, spark)
    except LakeError:
        if not catalog.lake_files(lake, spark):
            raise
        return []


def _rows(frames: Frames, table: InputTable, plan: ReadPlan) -> DataFrame:
    return frames.class_rows(plan.versions[table]) if table.name else frames.table(table.row_kind)


def _recorded_time(frames: Frames, rules: Sequence[Rule], plan: ReadPlan) -> tuple[int, list[tuple[int, int]]]:
    """The last arrival, and the outages of recording; the second only for absence rules, as it costs a pass."""
    if any(isinstance(rule, AbsenceRule) for rule in rules):
        # Every row shows that a recorder was running.
        known = known_classes(frames.lake, frames.spark)
        classes = [*choose_classes(known), *choose_classes(known, events=True)]
        tables = [frames.class_rows(versions) for versions in classes]
        tables += [frames.table(kind) for kind in (RowKind.HEARTBEATS, RowKind.AGENTS, RowKind.GAPS, RowKind.UNTYPED)]
    else:
        tables = [_rows(frames, table, plan) for table in plan.inputs]
    arrivals = reduce(DataFrame.unionByName, (frame.select("_run", "_received_ns") for frame in tables))
    spans = arrivals.groupBy("_run").agg(F.min("_received_ns"), F.max("_received_ns")).collect()
    runs = {run: (first, last) for run, first, last in spans}
    gaps = frames.table(RowKind.GAPS).where(F.col("reason").isin(*CONNECTION_REASONS))
    rows = gaps.select("_run", "_received_ns", "reason").collect()
    changes = [ConnectionChange(run, at, CONNECTION_REASONS[reason]) for run, at, reason in rows]
    return max((last for _, last in runs.values()), default=-1), outages(runs, changes)
