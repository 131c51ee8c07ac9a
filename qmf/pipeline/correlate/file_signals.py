"""The map of rules, in a batch as in a stream: signals of files. It knows no runner."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing
from typing import Any

from qmf.pipeline.correlate.batch_input import BatchInput
from qmf.pipeline.correlate.signal_reader import SignalRow
from qmf.pipeline.correlate.signals import SIGNAL_COLUMNS
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.table_files import FilesByTable

#: The text of an expression that could not be computed, in a row of its own with the number of the rule.
FAILURE = "failure"

#: By what signals are brought together, and by what those of a subject are sorted.
SIGNAL_KEY, SIGNAL_ORDER = ("rule", "key"), ("at", "ts", "run", "seq", "role")


def file_signals(
    given: BatchInput, connection: Any, files: FilesByTable, followed: Iterable[tuple[str, Any]] = ()
) -> Iterator[Any]:
    """The signals of files, and what failed.

    Args:
        given: what is read.
        connection: to DuckDB, for these only.
        files: to read.
        followed: rows of `SignalReader.followed_changes` of the objects that rules follow, by class.
    """
    pa = import_pyarrow()
    with closing(given.reader(connection)) as reader:
        for name, rows in followed:
            reader.restore_followed({name: rows})
        for batch in reader.signal_batches(given.rows(files)):
            yield batch.append_column(FAILURE, pa.nulls(batch.num_rows, pa.string()))
        nothing = (None,) * (len(SIGNAL_COLUMNS) - 1)
        yield from signal_table([(number, *nothing, text) for number, text in reader.failures.items()]).to_batches()


def signal_schema(*, failures: bool = True) -> Any:
    """The columns of signals as an Arrow schema, with `FAILURE` where there are rows of failures among them."""
    pa = import_pyarrow()
    types = {"INTEGER": pa.int32(), "VARCHAR": pa.string(), "BIGINT": pa.int64(), "DOUBLE": pa.float64()}
    columns = (*SIGNAL_COLUMNS, (FAILURE, "VARCHAR")) if failures else SIGNAL_COLUMNS
    return pa.schema([(name, types[type]) for name, type in columns])


def signal_table(rows: Iterable[SignalRow], *, failures: bool = True) -> Any:
    """Signals as an Arrow table, as of `signal_schema`."""
    schema = signal_schema(failures=failures)
    return import_pyarrow().Table.from_pylist([dict(zip(schema.names, row, strict=True)) for row in rows], schema)
