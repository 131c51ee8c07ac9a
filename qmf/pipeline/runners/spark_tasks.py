"""What Spark's executors run: functions on the batches of a partition, one after the other in one process of Python.

Whatever is named here by pickled functions is imported in each executor: nothing of pyspark.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import import_duckdb, quote_name
from qmf.pipeline.errors import PipelineError
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.row_files import write_rows
from qmf.pipeline.runners.runner import Map, Mapped, Reduce, conformed_batches, open_connection, sorted_batches

#: DuckDB's threads in an executor, which gives each of its tasks a processor.
_THREADS = 1

#: The column with what tasks are, or what they found; and those with the number of the share of rows, and with the
#: version of DuckDB that divided them.
DATA, SHARE, VERSION = "data", "share", "version"

_DIVIDED = "qmf_divided"

Work = Callable[[Iterator[Any]], Iterator[Any]]
"""Makes batches of batches; what belongs together is in one partition."""


def task_connection() -> Any:
    return open_connection(_THREADS)


@attrs.frozen
class Piece:
    """How rows are made of what a partition is given by a unique name: a task, or rows that were kept."""

    name: str
    make: Callable[[Any], Iterator[Any]]
    works: tuple[Work, ...] = ()


def made_batches(pieces: Sequence[Piece], given: Iterable[tuple[str, bytes]]) -> Iterator[Any]:
    """The batches of what a partition is given: names of pieces, and pickled tasks or rows."""
    for name, data in given:
        for piece in pieces:
            if piece.name == name:
                yield from apply_works(piece.works, piece.make(pickle.loads(data)))


def kept_rows(name: str, schema: Any, batches: Iterator[Any]) -> Iterator[tuple[str, bytes]]:
    """Batches as what a partition can be given, with the name of a piece that has `deserialize`."""
    return ((name, pickle.dumps(data)) for data in serialize(schema, batches))


def table_batches(table: Any) -> Iterator[Any]:
    return iter(table.to_batches())


def map_task(work: Map[Any], schema: Any, task: Any) -> Iterator[Any]:
    with closing(task_connection()) as own:
        yield from conformed_batches(work(own, task), schema)


def reduce_share(work: Reduce, schema: Any, batches: Iterator[Any]) -> Iterator[Any]:
    with closing(task_connection()) as own:
        yield from conformed_batches(work(own, batches), schema)


def in_order(schema: Any, columns: Sequence[str]) -> Work:
    return partial(sorted_batches, schema, tuple(columns), _THREADS)


def write_share(
    table: LakeTable, schema: Any, by: Sequence[str], counted: Sequence[str], batches: Iterator[Any]
) -> Iterator[bytes]:
    """Writes the batches of a partition as files; yields the pickled `WrittenRows`."""
    yield pickle.dumps(write_rows(table, batches, schema, by=by, counted=counted))


def found_value(work: Callable[[Any], Mapped], task: Any) -> Iterator[Any]:
    """What a function returns for a task with a number, with that number."""
    number, own = task
    yield number, work(own)


def pickle_values(found: Iterator[Any]) -> Iterator[bytes]:
    return (pickle.dumps(value) for value in found)


def serialize(schema: Any, batches: Iterator[Any]) -> Iterator[bytes]:
    """Batches of a schema as bytes, see `deserialize`."""
    return (batch.serialize().to_pybytes() for batch in conformed_batches(batches, schema))


def deserialize(schema: Any, found: Iterable[bytes]) -> Iterator[Any]:
    pa = import_pyarrow()
    return (pa.ipc.read_record_batch(pa.py_buffer(data), schema) for data in found)


def divided_batches(schema: Any, key: Sequence[str], shares: int, batches: Iterator[Any]) -> Iterator[Any]:
    """Batches as bytes, divided by the hash of some columns, to be shuffled: `SHARE`, `VERSION` and `DATA`.

    Java has nothing to do for the rows in them.
    """
    pa = import_pyarrow()
    from pyarrow import compute

    columns = ", ".join(quote_name(name) for name in key)
    with closing(task_connection()) as own:
        for batch in conformed_batches(batches, schema):
            own.register(_DIVIDED, pa.Table.from_batches([batch]))
            query = f"select (hash({columns}) % {shares})::integer as share from {_DIVIDED}"
            found = own.sql(query).to_arrow_table()["share"].combine_chunks()
            numbers = compute.unique(found)
            data = [batch.filter(compute.equal(found, number)).serialize().to_pybytes() for number in numbers]
            versions = pa.repeat(import_duckdb().__version__, len(data))
            yield pa.RecordBatch.from_arrays([numbers, versions, pa.array(data, pa.binary())], [SHARE, VERSION, DATA])


def joined_batches(schema: Any, batches: Iterator[Any]) -> Iterator[Any]:
    """The batches that `divided_batches` has made bytes of.

    Raises:
        PipelineError: by another version of DuckDB, which may have other hashes: rows of a key would be in two shares.
    """
    version = import_duckdb().__version__
    for batch in batches:
        for other in batch.column(VERSION).unique().to_pylist():
            if other != version:
                raise PipelineError(
                    f"executors have DuckDB {other} and {version}: they need the same version to divide rows alike"
                )
        yield from deserialize(schema, (data.as_py() for data in batch.column(DATA)))


def apply_works(works: Sequence[Work], batches: Iterator[Any]) -> Iterator[Any]:
    """What functions make, each of what the one before made."""
    for work in works:
        batches = work(batches)
    return batches


def piece_batches(pieces: Sequence[Piece], batches: Iterable[Any]) -> Iterator[Any]:
    """The batches of what a partition of a frame is given: its columns are the name of the piece, and `DATA`."""
    cells = (pair for batch in batches for pair in zip(batch.column(0), batch.column(1), strict=True))
    return made_batches(pieces, ((name.as_py(), data.as_py()) for name, data in cells))


def data_batches(found: Iterator[bytes]) -> Iterator[Any]:
    """Bytes as batches of the column `DATA`."""
    pa = import_pyarrow()
    for data in found:
        yield pa.RecordBatch.from_arrays([pa.array([data], pa.binary())], [DATA])
