"""The job as a batch on Spark: executors read the files and evaluate the rules, as `batch` does in one process.

A map makes signals of files, which Spark brings together by rule and subject and sorts by time; a reduce on each share
of the subjects makes alerts. Executors write these into files of the table; the driver commits them. It collects what
tells about time (a few rows for each run of a recorder and each goodbye), numbers, and a text for each rule that fails.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.pandas.types import from_arrow_schema

from qmf.pipeline.correlate.alert_table import AlertTable, arrow_table
from qmf.pipeline.correlate.batch import all_failures
from qmf.pipeline.correlate.batch_input import BatchInput, batch_input, merged_arrivals, whole_pass
from qmf.pipeline.correlate.evaluation import AT, EvaluationCounts, EvaluationPass, counted
from qmf.pipeline.correlate.lake_rows import Arrivals
from qmf.pipeline.correlate.options import CorrelateOptions
from qmf.pipeline.correlate.signal_reader import SignalReader, SignalRow
from qmf.pipeline.correlate.signals import SIGNAL_COLUMNS
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.table_files import FilesByTable, in_portions
from qmf.pipeline.rollup.frames import executor_connection
from qmf.pipeline.spark import sinks
from qmf.pipeline.spark.tasks import run_tasks

#: Rows of a task.
TASK_ROWS = 2_000_000

#: Alerts of a batch that goes back to Spark.
_ALERTS = 1000

_SPARK_TYPES = {"INTEGER": "int", "VARCHAR": "string", "BIGINT": "bigint", "DOUBLE": "double"}

#: The text of an expression that could not be computed, in a row of its own with the number of the rule.
_FAILURE = "failure"

#: What a map makes.
_SIGNALS = ", ".join(f"`{name}` {_SPARK_TYPES[type]}" for name, type in (*SIGNAL_COLUMNS, (_FAILURE, "VARCHAR")))

#: The columns of a reduce besides those of the table: numbers of signals, and failures, in rows of their own.
_NUMBERS = ("signals", "misdated")

_SORTED_BY = ("rule", "key", "at", "ts", "run", "seq", "role")


@attrs.frozen
class SparkBatchResult:
    """The result of a batch on Spark.

    Attributes:
        rows: of the table.
        counts, failures: as of `BatchResult`.
    """

    rows: int
    counts: EvaluationCounts
    failures: tuple[str, ...]


def correlate_on_spark(
    spark: SparkSession, options: CorrelateOptions, print_line: Callable[[str], None]
) -> SparkBatchResult:
    """Evaluate the rules over a lake, and write the table.

    Args:
        spark: to run on; its executors read the lake and write the table themselves.
        options: of the job.
        print_line: called for each class of a rule that the lake doesn't have.

    Raises:
        LakeError: no lake, or the table cannot be written.
        PySparkException: an executor failed, for instance because a table of the lake is not on its machine.
    """
    given, files = batch_input(options, print_line)
    with closing(SignalReader(given.plan, given.late, given.schemas, strict=False)) as reader:
        errors, left_out = reader.errors, reader.left_out
    tasks = list(in_portions(files, TASK_ROWS))
    over = whole_pass(_arrivals(spark, given, tasks), given.late)
    signals = run_tasks(spark, tasks, lambda own: _signals(given, own), _SIGNALS)
    expected = [(*row, None) for row in given.evaluator(left_out).expected(over)]
    if expected:
        signals = signals.unionAll(spark.createDataFrame(expected, _SIGNALS))
    found = _evaluated(signals, given, left_out, over).persist()
    try:
        alerts = found.where(F.col("alert_id").isNotNull()).drop(*_NUMBERS, "number", _FAILURE)
        rows = sinks.overwrite(alerts, AlertTable(options.out, "batch").table, whole=True)
        (numbers,) = found.agg(*(F.sum(name) for name in _NUMBERS)).collect()
        failed = found.where(F.col(_FAILURE).isNotNull()).groupBy("number").agg(F.min(_FAILURE)).collect()
    finally:
        found.unpersist()
    counts = EvaluationCounts(*(number or 0 for number in numbers))
    return SparkBatchResult(rows, counts, all_failures(options, errors, {row[0]: row[1] for row in failed}))


def _arrivals(spark: SparkSession, given: BatchInput, tasks: Sequence[FilesByTable]) -> Arrivals:
    """What all rows tell about time."""
    pa = import_pyarrow()

    def times(files: FilesByTable) -> Iterator[Any]:
        yield pa.RecordBatch.from_arrays([pa.array([pickle.dumps(given.times(files))], pa.binary())], ["found"])

    return merged_arrivals([pickle.loads(row[0]) for row in run_tasks(spark, tasks, times, "found binary").collect()])


def _signals(given: BatchInput, files: FilesByTable) -> Iterator[Any]:
    """The map: the signals of files, and what failed."""
    with closing(given.reader(executor_connection())) as reader:
        for portion in reader.signals(given.rows(files)):
            yield _signal_batch([(*row, None) for row in portion])
        nothing = (None,) * (len(SIGNAL_COLUMNS) - 1)
        if reader.failures:
            yield _signal_batch([(number, *nothing, text) for number, text in reader.failures.items()])


def _signal_batch(rows: Sequence[SignalRow]) -> Any:
    pa = import_pyarrow()
    types = {"INTEGER": pa.int32(), "VARCHAR": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64()}
    columns = (*SIGNAL_COLUMNS, (_FAILURE, "VARCHAR"))
    arrays = [pa.array(values, types[type]) for values, (_, type) in zip(zip(*rows, strict=True), columns, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, [name for name, _type in columns])


def _evaluated(signals: DataFrame, given: BatchInput, left_out: frozenset[int], over: EvaluationPass) -> DataFrame:
    """The alerts of all signals, and the numbers and failures of each share of them."""
    pa = import_pyarrow()
    names = (*_NUMBERS, "number", _FAILURE)
    own = pa.schema([*((name, pa.int64()) for name in names[:-1]), (_FAILURE, pa.string())])
    schema = pa.schema([*arrow_table([], None).schema, *own])

    def others(**values: object) -> Any:
        return pa.Table.from_pylist([values], schema).to_batches()

    def reduced(batches: Iterable[Any]) -> Iterator[Any]:
        failed: dict[int, str] = {}

        def portions() -> Iterator[list[SignalRow]]:
            for batch in batches:
                rows = list(zip(*(column.to_pylist() for column in batch.columns), strict=True))
                failed.update((row[0], row[-1]) for row in rows if row[AT] is None)
                yield [row[:-1] for row in rows if row[AT] is not None]

        counts = [EvaluationCounts()]
        alerts = given.evaluator(left_out).batch(counted(portions(), over, counts), over, divided=True)
        while portion := list(islice(alerts, _ALERTS)):
            table = arrow_table(portion, None)
            for field in own:
                table = table.append_column(field, pa.nulls(table.num_rows, field.type))
            yield from table.to_batches()
        yield from others(signals=counts[0].rows, misdated=counts[0].misdated)
        for number, text in failed.items():
            yield from others(number=number, failure=text)

    shares = signals.repartition("rule", "key").sortWithinPartitions(*_SORTED_BY)
    return shares.mapInArrow(reduced, from_arrow_schema(schema))
