"""One pass of the machines over signals, on Spark: the code that batches and streams share."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial, reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qmf.pipeline.correlate.evaluation import (
    OUT_COUNTS,
    SIGNAL,
    STATE,
    UNKNOWN,
    EvaluationCounts,
    EvaluationPass,
    evaluate,
)
from qmf.pipeline.correlate.rules import Rule
from qmf.pipeline.correlate.signals import SCHEMA
from qmf.pipeline.correlate.table import RESULT_SCHEMA
from qmf.pipeline.errors import MissingExtraError


def results(
    spark: SparkSession,
    signals: Sequence[DataFrame],
    rules: Sequence[Rule],
    hashes: Sequence[str],
    span: EvaluationPass,
) -> DataFrame:
    """Alerts, states and counts.

    Args:
        spark: to run on.
        signals: of `SCHEMA`; states among them.
        rules: by their numbers in the signals.
        hashes: of the rules as the user wrote them.
        span: what to cover.

    Returns:
        `RESULT_SCHEMA`.

    Raises:
        MissingExtraError: no pandas, or one that is too old.
    """
    empty = spark.createDataFrame([], SCHEMA)
    frame = reduce(DataFrame.unionByName, signals) if signals else empty
    parts = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
    # States have the least time there is, so that they come first.
    ordered = (
        frame.where(F.col("at") < span.end)
        .repartition(parts, "rule", "key")
        .sortWithinPartitions("rule", "key", "at", "ts", "run", "seq")
    )
    work = partial(evaluate, rules=rules, hashes=hashes, span=span)
    with warnings.catch_warnings():
        # Spark insists on pandas for all that is Arrow, and warns of versions newer than itself; none of it is used.
        warnings.filterwarnings("ignore", "PySpark does not yet fully support pandas", FutureWarning)
        try:
            return ordered.select(*(name for name, _ in SIGNAL)).mapInArrow(work, RESULT_SCHEMA)
        except ImportError as error:
            raise MissingExtraError("pandas") from error


def counts(frame: DataFrame) -> EvaluationCounts:
    """The counts among some results, added up."""
    found = frame.where(F.col("out") == OUT_COUNTS)
    (row,) = found.agg(F.sum("rows"), F.sum("misdated"), F.sum("too_late"), F.min("due")).collect()
    rows, misdated, too_late, due = (int(value or 0) for value in row)
    return EvaluationCounts(rows, misdated, too_late, due)


def states(frame: DataFrame, hashes: Sequence[str]) -> DataFrame:
    """States as signals that come first.

    Args:
        frame: results of the pass before.
        hashes: of the rules that are followed.
    """
    number = F.lit(UNKNOWN)
    for index, hash in enumerate(hashes):
        number = F.when(F.col("rule_hash") == hash, index).otherwise(number)
    least = -(1 << 63)
    columns = {
        "rule": number,
        "key": F.col("key"),
        "at": F.lit(least),
        "ts": F.lit(least),
        "run": F.col("rule_hash"),
        "role": F.lit(STATE),
        "fields": F.col("state"),
    }
    return frame.select(
        *(columns.get(field.name, F.lit(None)).cast(field.dataType).alias(field.name) for field in SCHEMA)
    )
