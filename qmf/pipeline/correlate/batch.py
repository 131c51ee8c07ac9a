"""The job as a batch: all rules over what a lake holds, the alerts into a table.

A batch replaces the table of the batch before; running it again gives the same rows, with the same ids. It begins
without knowing what was before its first day: an alert that was open then is found when its rule is fulfilled anew.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qmf.pipeline.correlate.alerts import Alert, in_order
from qmf.pipeline.correlate.detectors import DetectorContext
from qmf.pipeline.correlate.evaluation import ALERT, EvaluationCounts, EvaluationPass
from qmf.pipeline.correlate.event_time import ConnectionChange, outages
from qmf.pipeline.correlate.rules import AbsenceRule, Rule
from qmf.pipeline.correlate.signals import InputTable, ReadPlan, SignalBuilder, plan, with_counters
from qmf.pipeline.correlate.spark_evaluation import counts, results
from qmf.pipeline.correlate.table import finished
from qmf.pipeline.errors import LakeError
from qmf.pipeline.frames import Frames
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.spark import catalog, sinks

#: Reasons of gaps that are about the recorder's connection.
PAUSES = {"disconnected": False, "connected again": True}

#: ns that rows may be late, see `times`.
DEFAULT_LATE = 30 * 10**9


@attrs.frozen(kw_only=True)
class CorrelateOptions:
    """What to correlate.

    Attributes:
        lake: path, or for a batch any URL that Spark reads.
        out: where the tables go; for a stream a folder of this machine.
        rules: to follow.
        file: of the rules, for messages.
        first, last: days of a batch, ``2030-01-31``, both included; None for no bound.
        late: ns that rows may be late, see `times`.
    """

    lake: str
    out: str
    rules: tuple[Rule, ...]
    file: str = "rules"
    first: str | None = None
    last: str | None = None
    late: int = DEFAULT_LATE


@attrs.frozen
class BatchResult:
    """What a batch found.

    Attributes:
        alerts: rows of the table, by time.
        counts: of the signals.
    """

    alerts: Sequence[Alert]
    counts: EvaluationCounts


def correlate_batch(
    spark: SparkSession, options: CorrelateOptions, print_line: Callable[[str], None], *, until: int | None = None
) -> BatchResult:
    """Follow the rules through what a lake holds, and write the table.

    Args:
        spark: to run on.
        options: what.
        say: told of classes that rules look at and the lake doesn't know.
        until: look at the time before only, ns since 1970; None for all.

    Returns:
        what was found.

    Raises:
        RuleError: a rule doesn't fit its class.
        LakeError: no lake.
    """
    frames = Frames(spark, options.lake, first=options.first, last=options.last)
    what = plan(options.rules, known_classes(options.lake, spark), options.file)
    for text in what.missing:
        print_line(text)
    found = correlate(frames, options.rules, what, options.late, until=until).persist()
    try:
        sinks.overwrite(finished(found).coalesce(1), f"{options.out.rstrip('/')}/batch", by=())
        rows = finished(found).select(*(name for name, _ in ALERT)).collect()
        return BatchResult(in_order(Alert(**row.asDict()) for row in rows), counts(found))
    finally:
        found.unpersist()


def correlate(
    frames: Frames, rules: Sequence[Rule], what: ReadPlan, late: int, *, until: int | None = None
) -> DataFrame:
    """The work of a batch, as results of the machines; `table.finished` makes the table of it.

    Args:
        frames: the lake.
        rules: to follow.
        what: the plan for them.
        late, until: as in `correlate_batch`.
    """
    last, silent = _recorded(frames, rules, what)
    end = last + 1 if until is None else min(until, last + 1)
    span = EvaluationPass(begin=-(1 << 62), end=end, keep=False, context=DetectorContext(silent))
    signals = SignalBuilder(what, late)
    parts = [signals.of(_table(frames, read, what), read) for read in what.uses]
    return results(frames.spark, parts, with_counters(rules, what), [rule.hash for rule in rules], span)


def known_classes(lake: str, spark: SparkSession) -> list[ClassVersion]:
    """The class versions that a lake knows; none where only heartbeats came so far.

    Raises:
        LakeError: there is no lake, or nothing in it.
    """
    try:
        return catalog.class_versions(lake, spark)
    except LakeError:
        if not catalog.lake_files(lake, spark):
            raise
        return []


def _table(frames: Frames, read: InputTable, what: ReadPlan) -> DataFrame:
    return frames.class_rows(what.tables[read]) if read.name else frames.table(RowKind(read.kind))


def _recorded(frames: Frames, rules: Sequence[Rule], what: ReadPlan) -> tuple[int, list[tuple[int, int]]]:
    """The last arrival, and when nobody recorded; the second only for rules that ask for it, as it costs a pass."""
    if any(isinstance(rule, AbsenceRule) for rule in rules):
        known = known_classes(frames.lake, frames.spark)
        # Whatever came tells that it was recorded.
        of = [*catalog.choose_classes(known), *catalog.choose_classes(known, events=True)]
        tables = [frames.class_rows(item) for item in of]
        tables += [frames.table(kind) for kind in (RowKind.HEARTBEATS, RowKind.AGENTS, RowKind.GAPS, RowKind.UNTYPED)]
    else:
        tables = [
            frames.class_rows(what.tables[read]) if read.name else frames.table(RowKind(read.kind))
            for read in what.uses
        ]
    arrivals = reduce(DataFrame.unionByName, (frame.select("_run", "_received_ns") for frame in tables))
    spans = arrivals.groupBy("_run").agg(F.min("_received_ns"), F.max("_received_ns")).collect()
    runs = {run: (first, last) for run, first, last in spans}
    gaps = frames.table(RowKind.GAPS).where(F.col("reason").isin(*PAUSES)).select("_run", "_received_ns", "reason")
    pauses = [ConnectionChange(run, at, PAUSES[reason]) for run, at, reason in gaps.collect()]
    return max((last for _, last in runs.values()), default=-1), outages(runs, pauses)
