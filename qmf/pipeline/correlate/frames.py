"""Alerts of frames of Spark: executors evaluate the rules, as `batch` does in one process.

A map makes signals of the rows of each frame, which Spark brings together by rule and subject and sorts by time; a
reduce on each share of the subjects makes alerts. What tells about time is collected: a few rows for each run of a
recorder, and each goodbye of an agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial, reduce
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema

from qmf.pipeline.correlate.alert_table import alert_tables, arrow_table
from qmf.pipeline.correlate.batch_input import (
    SIGNAL_KEY,
    SIGNAL_ORDER,
    BatchInput,
    signal_schema,
    signal_table,
    whole_pass,
)
from qmf.pipeline.correlate.evaluation import EvaluationPass
from qmf.pipeline.correlate.lake_rows import CONNECTION_REASONS, Arrivals, ConnectionChange
from qmf.pipeline.correlate.plan import ReadPlan, complete_rules, read_plan
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.correlate.signal_reader import SignalReader, signal_rows
from qmf.pipeline.correlate.signals import event_time_sql, followed_columns
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import table_portions
from qmf.pipeline.lake.delta_lake import RecordedClass
from qmf.pipeline.lake.location import kind_path
from qmf.pipeline.runners.runner import conformed_batches
from qmf.pipeline.runners.spark_tasks import task_connection
from qmf.pipeline.spark_access.data_source import FrameClass

#: Rows that the map evaluates at once.
_ROWS = 250_000


def alert_frame(given: Sequence[tuple[FrameClass, DataFrame]], rules: Sequence[Rule], late: int) -> DataFrame:
    """Evaluate rules over frames, of which rows may be late: the table of alerts but for the number of the step.

    Raises:
        PipelineError: a rule reads a class or a kind of which no frame is given, or two frames are of the same one.
        RuleError: a rule doesn't fit its class.
    """
    frames = _by_path(given)
    known = [RecordedClass(version, own.path) for own, _frame in given for version in own.versions]
    plan = read_plan(rules, known, "what is given")
    if plan.missing:
        raise PipelineError("; ".join(plan.missing))
    schemas = {path: to_arrow_schema(frame.schema, timezone="UTC") for path, frame in frames.items()}
    lacking = [path for path in SignalReader.paths(plan) if path not in frames]
    if lacking:
        raise PipelineError(f"rules read {', '.join(lacking)}: no frame with these rows is given")
    with closing(SignalReader(plan, late, schemas)):
        pass  # raises where rules don't fit their classes
    over = whole_pass(_arrivals(frames, late), late)
    own = BatchInput(
        lake="", storage={}, late=late, plan=plan, rules=complete_rules(rules, plan),
        hashes=tuple(rule.hash for rule in rules), schemas=schemas, uncounted=(),
    )  # fmt: skip
    followed = _followed_objects(plan, rules, frames)
    types = from_arrow_schema(signal_schema(failures=False))
    parts = [
        frames[table.path].mapInArrow(partial(_signals, own, followed, table.path), types) for table in plan.tables
    ]
    spark = given[0][1].sparkSession
    expected = own.evaluator(frozenset()).expected_signals(over)
    if expected:
        parts.append(spark.createDataFrame(signal_table(expected, failures=False), types))
    schema = arrow_table([], None).schema
    if not parts:
        return spark.createDataFrame([], from_arrow_schema(schema)).drop("step")
    signals = reduce(DataFrame.unionAll, parts)
    shares = signals.repartition(*SIGNAL_KEY).sortWithinPartitions(*SIGNAL_KEY, *SIGNAL_ORDER)
    return shares.mapInArrow(partial(_alerts, own, over), from_arrow_schema(schema)).drop("step")


def _signals(given: BatchInput, followed: Mapping[str, Any], path: str, batches: Iterable[Any]) -> Iterator[Any]:
    """The map: signals of the rows of a table; `followed` are the objects that rules follow, by path."""
    with closing(given.reader(task_connection())) as reader:
        reader.follow(followed)
        for rows in table_portions(batches, _ROWS):
            yield from conformed_batches(reader.signal_batches({path: rows}), signal_schema(failures=False))


def _alerts(given: BatchInput, over: EvaluationPass, batches: Iterable[Any]) -> Iterator[Any]:
    """The reduce: alerts of sorted signals of some subjects."""
    alerts = given.evaluator(frozenset()).batch(map(signal_rows, batches), over)
    for table in alert_tables(alerts):
        yield from table.to_batches()


def _by_path(given: Sequence[tuple[FrameClass, DataFrame]]) -> dict[str, DataFrame]:
    found: dict[str, DataFrame] = {}
    for own, frame in given:
        if own.path in found:
            raise PipelineError(f"two frames have rows of {own.name}: bring them together by unionByName")
        found[own.path] = frame
    return found


def _arrivals(frames: Mapping[str, DataFrame], late: int) -> Arrivals:
    """What all rows tell about time."""
    ends = (F.min("_received_ns"), F.max("_received_ns"))
    times = [
        frame.select("_run", "_received_ns") for path, frame in frames.items() if path != kind_path(RowKind.SCHEMAS)
    ]
    runs = {
        run: (first, last)
        for run, first, last in reduce(DataFrame.unionAll, times).groupBy("_run").agg(*ends).collect()
    }
    changes: list[ConnectionChange] = []
    goodbyes: list[tuple[int, str]] = []
    gaps, agents = (frames.get(kind_path(kind)) for kind in (RowKind.GAPS, RowKind.AGENTS))
    if gaps is not None:
        own = gaps.where(F.col("reason").isin(list(CONNECTION_REASONS))).select("_run", "_received_ns", "reason")
        changes = [ConnectionChange(run, at, CONNECTION_REASONS[reason]) for run, at, reason in own.collect()]
    if agents is not None:
        left = agents.where("change = 'removed' and reason = 'goodbye'").selectExpr(event_time_sql(late), "_agent")
        goodbyes = sorted((at, agent) for at, agent in left.collect())
    return Arrivals(runs, changes, goodbyes)


def _followed_objects(plan: ReadPlan, rules: Sequence[Rule], frames: Mapping[str, DataFrame]) -> dict[str, Any]:
    """The objects that rules follow references to, with the columns that the rules need."""
    found: dict[str, Any] = {}
    for name, tables in plan.followed.items():
        wanted = {
            column.lower()
            for rule in rules
            for reference, columns in followed_columns(rule).items()
            if rule.follow.get(reference) == name
            for column in columns
        }
        needed = {"_agent", "_object", "_ts_ns", "_received_ns", *wanted}
        for table in tables:
            frame = frames[table.path]
            found[table.path] = frame.select([column for column in frame.columns if column.lower() in needed]).toArrow()
    return found
