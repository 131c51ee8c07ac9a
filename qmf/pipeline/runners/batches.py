"""Functions on Arrow record batches that both runners apply to the rows of a job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

from qmf.pipeline.duckdb_queries import connect, quote_name
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.runners.runner import conformed_batches

_SORTED = "qmf_unsorted"


def open_connection(threads: int | None = None) -> Any:
    """A connection to DuckDB whose times are in UTC.

    Args:
        threads: that a query uses; None for one per processor.
    """
    made = connect(threads=threads)
    made.execute("set timezone = 'UTC'")
    return made


def batches_where(column: str, values: Sequence[str], batches: Iterator[Any]) -> Iterator[Any]:
    """The rows with one of some values in a column."""
    from pyarrow import compute

    wanted = import_pyarrow().array(list(values))
    for batch in batches:
        found = batch.filter(compute.is_in(batch[column], value_set=wanted))
        if found.num_rows:
            yield found


def selected_batches(columns: Sequence[str], batches: Iterator[Any]) -> Iterator[Any]:
    """Some columns of the rows."""
    return (batch.select(list(columns)) for batch in batches)


def sorted_batches(schema: Any, columns: Sequence[str], threads: int | None, batches: Iterator[Any]) -> Iterator[Any]:
    """The rows in the order of some columns, by DuckDB, which writes what doesn't fit in memory to temporary files.

    Args:
        schema: of the rows, as an Arrow schema.
        columns: by which they are sorted.
        threads: as of `open_connection`.
        batches: with the rows.
    """
    by = ", ".join(quote_name(name) for name in columns)
    with closing(open_connection(threads)) as own:
        reader = import_pyarrow().RecordBatchReader.from_batches(schema, conformed_batches(batches, schema))
        own.register(_SORTED, reader)
        yield from own.sql(f"select * from {_SORTED} order by {by}").to_arrow_reader(50_000)
