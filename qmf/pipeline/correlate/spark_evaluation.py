"""One evaluation pass on Spark; batches and streams share this code."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qmf.pipeline.correlate.evaluation import (
    OUT_COUNTS,
    SIGNAL_COLUMNS,
    STATE,
    UNKNOWN,
    EvaluationCounts,
    EvaluationPass,
    evaluate,
)
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.correlate.signals import SIGNAL_SCHEMA
from qmf.pipeline.correlate.table import RESULT_SCHEMA
from qmf.pipeline.errors import MissingExtraError


def evaluate_on_spark(
    spark: SparkSession,
    signals: Sequence[DataFrame],
    rules: Sequence[Rule],
    hashes: Sequence[str],
    evaluation_pass: EvaluationPass,
) -> DataFrame:
    """Evaluate rules: alerts, states and counts.

    Args:
        spark: to run on.
        signals: frames of `SIGNAL_SCHEMA`; states included.
        rules: by their numbers in the signals.
        hashes: of the rules as the user wrote them.
        evaluation_pass: the pass.

    Returns:
        `RESULT_SCHEMA`.

    Raises:
        MissingExtraError: pandas is not installed, or too old.
    """
    empty = spark.createDataFrame([], SIGNAL_SCHEMA)
    frame = reduce(DataFrame.unionByName, signals) if signals else empty
    parts = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    # States have the lowest possible time, so that they come first.
    ordered = (
        frame.where(F.col("at") < evaluation_pass.end)
        .repartition(parts, "rule", "key")
        .sortWithinPartitions("rule", "key", "at", "ts", "run", "seq")
    )
    function = partial(evaluate, rules=rules, hashes=hashes, evaluation_pass=evaluation_pass)
    with warnings.catch_warnings():
        # Spark requires pandas for every use of Arrow, and warns about versions newer than itself; pandas isn't used.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        try:
            return ordered.select(*(name for name, _ in SIGNAL_COLUMNS)).mapInArrow(function, RESULT_SCHEMA)
        except ImportError as error:
            raise MissingExtraError("pandas") from error


def total_counts(results: DataFrame) -> EvaluationCounts:
    """The sum of the counts among some results."""
    found = results.where(F.col("out") == OUT_COUNTS)
    (row,) = found.agg(F.sum("rows"), F.sum("misdated"), F.sum("too_late"), F.min("due")).collect()
    rows, misdated, too_late, due = (int(value or 0) for value in row)
    return EvaluationCounts(rows, misdated, too_late, due)


def states_as_signals(results: DataFrame, hashes: Sequence[str]) -> DataFrame:
    """The states of detectors as signals that come first.

    Args:
        results: of the pass before.
        hashes: of the rules that are evaluated.
    """
    number = F.lit(UNKNOWN)
    for index, hash in enumerate(hashes):
        number = F.when(F.col("rule_hash") == hash, index).otherwise(number)
    lowest = -(1 << 63)
    columns = {
        "rule": number,
        "key": F.col("key"),
        "at": F.lit(lowest),
        "ts": F.lit(lowest),
        "run": F.col("rule_hash"),
        "role": F.lit(STATE),
        "fields": F.col("state"),
    }
    return results.select(
        *(columns.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in SIGNAL_SCHEMA)
    )
