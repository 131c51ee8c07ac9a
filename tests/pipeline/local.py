"""Small frames that Spark holds in its driver: unlike frames of Python rows, they are not computed for each use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pyarrow

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType


def local_frame(spark: SparkSession, rows: Sequence[tuple[Any, ...]], schema: StructType) -> DataFrame:
    """A frame of a few rows; times must be aware."""
    from pyspark.sql.pandas.types import to_arrow_schema

    arrow = to_arrow_schema(schema, timezone="UTC")
    cells = zip(*rows, strict=True) if rows else ([] for _ in schema)
    arrays = [pyarrow.array(list(column), type=field.type) for column, field in zip(cells, arrow, strict=True)]
    return spark.createDataFrame(pyarrow.Table.from_arrays(arrays, schema=arrow), schema)
