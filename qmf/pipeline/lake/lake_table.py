"""One Delta table of a lake: each batch of a writer is committed once, readers see a version.

A commit carries the writer's name and the number of its batch as a transaction of the application, in the words of the
Delta protocol: a batch that was committed is known after a restart, and is not committed again. A commit is whole or
absent whenever the writer is killed.
"""

from __future__ import annotations

import datetime
import functools
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from qmf.pipeline.errors import LakeError, import_extra
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.columns import DATE
from qmf.pipeline.lake.delta_errors import delta_errors, import_deltalake
from qmf.pipeline.lake.location import absolute, check_space
from qmf.pipeline.lake.table_files import GROUP_ROWS, LIMITS, TableFile, TableSnapshot, WrittenFile, file_system
from qmf.pipeline.lake.table_log import (
    commit_properties,
    entry_time,
    files_added_since,
    lacking_settings,
    named_failure,
    oldest_version,
    table_settings,
)

#: Commits after which the table is opened again: what the library keeps of it costs more with each of them.
_OPEN_COMMITS = 25

#: How often a commit is tried where other processes were first.
_ATTEMPTS = 8

_T = TypeVar("_T")

#: What an entry of the log says that moves rows, though its operation is that of new rows.
MOVED = "qmf.moved"

#: Operations in a table's history that move rows to other files: they hold nothing new.
_MOVES = frozenset({"OPTIMIZE", MOVED})


class LakeTable:
    """A table by its URL, whether it exists yet or not. Belongs to one thread at a time.

    Methods raise `LakeError` for every failure of the file system or of the object store; the table is as before then.
    """

    def __init__(
        self,
        url: str,
        options: Mapping[str, str] | None = None,
        *,
        statistics: Sequence[str] = (),
        plain: Sequence[str] = (),
    ) -> None:
        """Name a table by a path or URL, with options of its object store; nothing is read yet.

        Of some columns' values each file has the limits in the log; of none for the library's choice. Of plain columns,
        whose values seldom repeat, files that jobs write have no dictionary.
        """
        # An executor has a working directory of its own, and so has Spark's Java process.
        self.url = absolute(url)
        self._options = dict(options or {})
        #: The columns of whose values each file has the limits in the log; none for the library's choice.
        self.statistics = tuple(statistics)
        #: The columns of which files that jobs write have no dictionary.
        self.plain = tuple(plain)
        self._opened: Any = None
        self._commits = 0
        self._snapshot: TableSnapshot | None = None

    def __reduce__(self) -> tuple[Callable[..., LakeTable], tuple[str, dict[str, str]]]:
        # Executors open the table themselves.
        return functools.partial(LakeTable, statistics=self.statistics, plain=self.plain), (self.url, self._options)

    # -- reading

    def version(self) -> int | None:
        """The number of the last commit; None where there is no table yet."""
        table = self._refresh()
        return None if table is None else int(table.version())

    def schema(self) -> Any:
        """The columns of all versions of the table's rows, as an Arrow schema; `LakeError` if there is no table."""
        return import_pyarrow().schema(self.delta().schema())

    def last_batch(self, writer: str) -> int | None:
        """The number of the last batch of a writer that was committed; None for none."""
        table = self._refresh()
        number = None if table is None else table.transaction_version(writer)
        return None if number is None else int(number)

    def committed_at(self, version: int) -> float | None:
        """When a version was committed, in seconds since 1970; None where its entry is gone from the log."""
        return entry_time(self.url, self._options, version)

    def snapshot(self, at: int | datetime.datetime | None = None) -> TableSnapshot:
        """The files of a version by its number or by a time with its zone; of the last one without either."""
        if at is None:
            table = self.delta()
            version = int(table.version())
            if self._snapshot is None or self._snapshot.version != version:
                self._snapshot = TableSnapshot(version, self._files(table))
            return self._snapshot
        with delta_errors(self.url):
            table = import_deltalake().DeltaTable(self.url, storage_options=self._options or None)
            oldest = oldest_version(self.url, self._options)
            if isinstance(at, int) and at < oldest:
                raise LakeError(f"{self.url}: version {at} is not in the log any more; the oldest one is {oldest}")
            table.load_as_version(at)
        return TableSnapshot(int(table.version()), self._files(table))

    def added_files(self, after: int | None, until: int) -> tuple[TableFile, ...]:
        """The files whose rows came after a version, up to another one; all rows of version `until` without the first.

        Rows that were only moved, because small files were combined, are not among them; those that came and were moved
        in between are, once. `LakeError` where one of the versions was removed from the log.
        """
        if after is None:
            return self.snapshot(until).files
        tail = files_added_since(self.url, after, until)
        if tail is not None:
            return tuple(tail[1])
        found: list[TableFile] = []
        start = after
        for move in [*self._moves(after, until), until + 1]:
            if move - 1 > start:
                known = {file.path for file in self.snapshot(start).files}
                found += [file for file in self.snapshot(move - 1).files if file.path not in known]
            start = move
        return tuple(found)

    def dataset(self, files: Sequence[TableFile], schema: Any = None) -> Any:
        """Files of one version or of several as a pyarrow dataset, from any store.

        It has the columns of an Arrow schema, those that a file lacks are null; or all of the table, `DATE` among them.
        """
        dataset = import_extra("pyarrow.dataset")

        from qmf.pipeline.lake.file_dataset import FileDataset

        columns = self.schema() if schema is None else schema
        parquet, store, field = dataset.ParquetFileFormat(), self.store(), dataset.field(DATE)
        fragments = [
            parquet.make_fragment(file.path, store, None if file.date is None else field == file.date) for file in files
        ]
        return FileDataset(fragments, columns, parquet, store)

    def open_file(self, path: str) -> Any:
        """A file by its path inside the table, as pyarrow's `ParquetFile`; `LakeError` if it is gone, or damaged."""
        parquet = import_pyarrow().parquet
        with delta_errors(f"{self.url}/{path}"):
            return parquet.ParquetFile(file_system(self.url, self._options).open_input_file(path))

    # -- writing

    def create(self, schema: Any, partition_by: Sequence[str] = (DATE,)) -> None:
        """Make the table without rows, with the columns of an Arrow schema and some in folders, unless it is there."""
        if self._refresh() is not None:
            return
        delta = import_deltalake()

        def make() -> None:
            delta.DeltaTable.create(
                self.url,
                schema,
                "ignore",
                list(partition_by),
                configuration=table_settings(self.statistics),
                storage_options=self._options or None,
            )

        self.retry(make)

    def conform(self, schema: Any) -> None:
        """Add what the table lacks of columns and properties, if there is one; `LakeError` for other types."""
        if self._refresh() is not None:
            self._add_columns(schema)
            with delta_errors(self.url):
                self._declare_properties()

    def declare(self, statistics: Sequence[str]) -> None:
        """Have the log note the limits of some columns' values of files that are written from now on."""

        def change() -> None:
            self._refresh()
            self._declare_properties(table_settings(statistics))

        self.retry(change)

    def _declare_properties(self, wanted: Mapping[str, str] | None = None) -> None:
        if self._opened is not None:
            lacking = lacking_settings(self._opened.metadata().configuration, wanted or table_settings(self.statistics))
            if lacking:
                self._opened.alter.set_table_properties(lacking)

    def append(
        self,
        rows: Any,
        *,
        writer: str,
        batch: int | None = None,
        partition_by: Sequence[str] = (DATE,),
        optional: bool = True,
        numbers: Mapping[str, int] | None = None,
    ) -> bool:
        """Commit a batch of a writer, unless it was committed before: False then. Columns that are new are added.

        Args:
            rows: an Arrow table; if not `optional`, which makes no commit of an empty batch, any stream of Arrow.
            batch: its number; each is larger than the one before. None for the next one, whatever was committed.
            partition_by: columns of the folders; those of the first batch hold for the table.
            numbers: to commit with it, by name; `last_batch` reads them.

        Raises:
            LakeError: a column has another type in the table.
        """
        if optional and not rows.num_rows:
            return True
        return self._commit(rows, writer, batch, numbers, partition_by, mode="append")

    def replace(
        self,
        rows: Any,
        *,
        where: str | None,
        writer: str | None = None,
        batch: int | None = None,
        partition_by: Sequence[str] = (DATE,),
        numbers: Mapping[str, int] | None = None,
    ) -> bool:
        """Commit a batch that replaces rows; otherwise as `append`. Without a writer it is always committed.

        All new rows must meet `where`, a condition in SQL for the rows that go; None replaces all.
        """
        if self._refresh() is None:
            where = None
        return self._commit(rows, writer, batch, numbers, partition_by, mode="overwrite", predicate=where)

    def commit_files(
        self,
        files: Sequence[WrittenFile],
        schema: Any,
        *,
        partition_by: Sequence[str] = (),
        writer: str | None = None,
        batch: int | None = None,
        replace: bool = False,
        where: Mapping[str, Sequence[str]] | None = None,
        numbers: Mapping[str, int] | None = None,
    ) -> bool:
        """Commit files that `write_rows` wrote, unless their batch was committed before: False then.

        Arguments are as of `append`; the schema has the columns of the partitions. With `replace` the files replace the
        rows of some partitions, values by column in `where`, or all rows.
        """
        number = self._number(writer, batch)
        if number is None:
            return False
        self.create(schema, partition_by)
        with delta_errors(self.url):
            self._declare_properties()
        self._add_columns(schema)
        if replace and where is not None and not all(where.values()):
            return True
        from deltalake.transaction import AddAction

        delta = import_deltalake()
        now = time.time_ns() // 1_000_000
        actions = [AddAction(file.path, file.size, dict(file.partition), now, True, file.statistics) for file in files]
        with delta_errors(self.url):
            self.delta().create_write_transaction(
                actions,
                "overwrite" if replace else "append",
                delta.Schema.from_arrow(schema),
                list(partition_by),
                [(name, "in", list(values)) for name, values in where.items()] if replace and where else None,
                commit_properties=commit_properties(writer, number, numbers),
            )
        return True

    def _number(self, writer: str | None, batch: int | None) -> int | None:
        """The number under which a batch is committed; None where it was committed before."""
        last = None if writer is None else self.last_batch(writer)
        if batch is None:
            return (last or 0) + 1
        return None if last is not None and last >= batch else batch

    def _add_columns(self, schema: Any) -> None:
        known = self.schema()
        new = []
        for field in import_deltalake().Schema.from_arrow(schema).fields:
            at = known.get_field_index(field.name)
            if at < 0:
                new.append(field)
            elif known.field(at).type != schema.field(field.name).type:
                raise LakeError(f"{self.url}: {field.name} is {known.field(at).type} in the table, not {field.type}")
        if new:
            with delta_errors(self.url):
                self.delta().alter.add_columns(new)

    def _commit(
        self,
        rows: Any,
        writer: str | None,
        batch: int | None,
        numbers: Mapping[str, int] | None,
        partition_by: Sequence[str],
        **options: Any,
    ) -> bool:
        delta = import_deltalake()

        def write() -> bool:
            number = self._number(writer, batch)
            if number is None:
                return False
            # Of a stream nobody knows the size.
            check_space(self.url, getattr(rows, "nbytes", 0))
            known = self._opened is not None
            self._declare_properties()
            delta.write_deltalake(
                self._opened if known else self.url,
                rows,
                storage_options=self._options or None,
                configuration=None if known else table_settings(self.statistics),
                writer_properties=delta.WriterProperties(compression="ZSTD", max_row_group_size=GROUP_ROWS),
                commit_properties=commit_properties(writer, number, numbers),
                schema_mode="merge",
                partition_by=list(partition_by),
                **options,
            )
            return True

        written = self.retry(write)
        self._commits += 1
        if self._commits % _OPEN_COMMITS == 0:
            self._opened = None
        return written

    def retry(self, change: Callable[[], _T]) -> _T:
        """What a change of the table at its last version returns; it is tried again where another process was first."""
        conflict = import_deltalake().exceptions.CommitFailedError
        with delta_errors(self.url):
            for attempt in range(_ATTEMPTS):
                try:
                    return change()
                except conflict:
                    self._opened = None
                    time.sleep(random.uniform(0, 0.05 * 2**attempt))
            return change()

    # -- the library's table

    def delta(self) -> Any:
        """The table as the library has it, at its last version; `LakeError` if there is none."""
        table = self._refresh()
        if table is None:
            raise LakeError(f"{self.url}: no such table")
        return table

    def store(self) -> Any:
        """The table's folder as a file system of pyarrow; it may not exist yet."""
        import_pyarrow()
        return file_system(self.url, self._options)

    def _refresh(self) -> Any:
        delta = import_deltalake()
        try:
            with delta_errors(self.url):
                if self._opened is None:
                    try:
                        self._opened = delta.DeltaTable(self.url, storage_options=self._options or None)
                    except delta.exceptions.TableNotFoundError:
                        return None
                else:
                    self._opened.update_incremental()
        except LakeError as error:
            self._opened = None
            raise named_failure(self.url, self._options, error) from error
        return self._opened

    def _moves(self, after: int, until: int) -> list[int]:
        """The versions between two that moved rows only, in order."""
        with delta_errors(self.url):
            history = self.delta().history(int(self.delta().version()) - after)
        known = {entry["version"]: MOVED if MOVED in entry else entry.get("operation") for entry in history}
        missing = [version for version in range(after + 1, until + 1) if version not in known]
        if missing:
            raise LakeError(f"{self.url}: version {missing[0]} was removed before it was read; begin again")
        return sorted(version for version in known if version <= until and known[version] in _MOVES)

    def _files(self, table: Any) -> tuple[TableFile, ...]:
        with delta_errors(self.url):
            actions = import_pyarrow().table(table.get_add_actions(flatten=True))
        count = actions.num_rows

        def column(name: str) -> list[Any]:
            return actions[name].to_pylist() if name in actions.column_names else [None] * count

        runs = zip(column("min._run"), column("max._run"), strict=True)
        found = [
            TableFile(path, f"{self.url}/{path}", *facts)
            for path, *facts in zip(
                column("path"),
                column(f"partition.{DATE}"),
                column("num_records"),
                column("size_bytes"),
                [low if low == high else None for low, high in runs],
                *(column(f"{end}.{name}") for name in LIMITS for end in ("min", "max")),
                strict=True,
            )
        ]
        return tuple(sorted(found, key=lambda file: (file.date or "", file.first_ns or 0, file.path)))
