"""Runs jobs in the process of the command, by DuckDB and by threads. Neither Spark nor Java is needed."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import connect
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.row_files import WrittenRows, write_rows
from qmf.pipeline.lake.table_files import FilesByTable, in_portions
from qmf.pipeline.runners.runner import (
    Map,
    Mapped,
    Pace,
    Reduce,
    Rows,
    Runner,
    Step,
    Task,
    batches_where,
    conformed_batches,
    open_connection,
    selected_batches,
    sorted_batches,
)


@attrs.frozen
class ProcessRows(Rows):
    """Rows as a source of Arrow record batches of a schema; `open` begins to make them."""

    schema: Any
    open: Callable[[], Iterator[Any]]

    def where(self, column: str, values: Sequence[str]) -> Rows:
        return ProcessRows(self.schema, lambda: batches_where(column, values, self.open()))

    def select(self, columns: Sequence[str]) -> Rows:
        names = list(columns)
        schema = import_pyarrow().schema([self.schema.field(name) for name in names])
        return ProcessRows(schema, lambda: selected_batches(names, self.open()))

    def union(self, other: Rows) -> Rows:
        assert isinstance(other, ProcessRows)

        def both() -> Iterator[Any]:
            yield from self.open()
            yield from other.open()

        return ProcessRows(self.schema, both)

    def reduce(
        self,
        key: Sequence[str],
        work: Reduce,
        schema: Any,
        *,
        order: Sequence[str] = (),
        numbered: bool = False,  # noqa: ARG002
    ) -> Rows:
        """One share has all keys."""

        def batches() -> Iterator[Any]:
            rows = self._sort((*key, *order)) if order else self.open()
            with closing(open_connection()) as own:
                yield from conformed_batches(work(own, rows), schema)

        return ProcessRows(schema, batches)

    @contextmanager
    def persist(self) -> Iterator[Rows]:
        """In a temporary file, since they may be more than fits in memory."""
        ipc = import_pyarrow().ipc
        with tempfile.TemporaryDirectory(prefix="qmf-rows-") as folder:
            path = str(Path(folder, "rows.arrow"))
            with ipc.new_stream(path, self.schema) as stream:
                for batch in conformed_batches(self.open(), self.schema):
                    stream.write_batch(batch)

            def read_file() -> Iterator[Any]:
                with import_pyarrow().memory_map(path) as source:
                    yield from ipc.open_stream(source)

            yield ProcessRows(self.schema, read_file)

    def table(self) -> Any:
        return import_pyarrow().Table.from_batches(conformed_batches(self.open(), self.schema), self.schema)

    def write(
        self, table: LakeTable, *, by: Sequence[str] = (), order: Sequence[str] = (), counted: Sequence[str] = ()
    ) -> WrittenRows:
        rows = self._sort(order) if order else self.open()
        return write_rows(table, rows, self.schema, by=by, counted=counted)

    def _sort(self, columns: Sequence[str]) -> Iterator[Any]:
        return sorted_batches(self.schema, columns, None, self.open())


class ProcessRunner(Runner):
    """Runs jobs in this process; see `Runner`."""

    def __init__(self, task_rows: int | None = None) -> None:
        """Make a runner. Without a number of rows of a task, all files are one task, which DuckDB divides itself."""
        self.task_rows = task_rows
        self._lock = threading.Lock()
        self._database: Any = None

    @property
    def place(self) -> str:
        return "in this process"

    def portions(self, files: FilesByTable) -> list[FilesByTable]:
        if self.task_rows is None:
            return [files] if any(files.values()) else []
        return list(in_portions(files, self.task_rows))

    def map(self, tasks: Sequence[Task], work: Map[Task], schema: Any) -> Rows:
        """One task after the other, since each has all processors."""

        def batches() -> Iterator[Any]:
            for task in tasks:
                with closing(self._cursor()) as own:
                    yield from conformed_batches(work(own, task), schema)

        return ProcessRows(schema, batches)

    def from_arrow(self, table: Any) -> Rows:
        return ProcessRows(table.schema, lambda: iter(table.to_batches()))

    def each(self, tasks: Sequence[Task], work: Callable[[Task], Mapped]) -> list[Mapped]:
        """In as many threads as there are processors."""
        if len(tasks) < 2:
            return [work(task) for task in tasks]
        with ThreadPoolExecutor(min(len(tasks), os.cpu_count() or 1), "qmf-task") as pool:
            return list(pool.map(work, tasks))

    def follow(
        self,
        lake: DeltaLake,  # noqa: ARG002
        checkpoint: str,  # noqa: ARG002
        step: Step,
        pace: Pace,
        stop: threading.Event,
    ) -> None:
        """Each step reads all that is there."""
        while not stop.is_set():
            started = time.monotonic()
            worked = step(None)
            if pace.once:
                if not worked:
                    break
                continue
            seconds = pace.every if worked or pace.poll is None else pace.poll
            stop.wait(max(0.0, seconds - (time.monotonic() - started)))

    def _cursor(self) -> Any:
        """A connection to the database of all tasks, which keeps the metadata of the files that it has read."""
        with self._lock:
            if self._database is None:
                self._database = connect(parquet_metadata_cache="true")
            found = self._database.cursor()
        found.execute("set timezone = 'UTC'")
        return found
