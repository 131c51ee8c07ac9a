"""One Delta table of a lake: each batch of a writer is committed once, readers see a version.

A commit carries the writer's name and the number of its batch as a transaction of the application, in the words of the
Delta protocol: a batch that was committed is known after a restart, and is not committed again. A commit is whole or
absent whenever the writer is killed.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_errors import delta_errors, import_deltalake
from qmf.pipeline.lake.location import is_local

#: The column by which tables of recorded rows are partitioned: the day in UTC, ``2030-01-31``.
DATE = "_date"

#: Rows of a row group at most: small ones cost readers more than their rows, large ones are memory while writing.
GROUP_ROWS = 250_000

#: Operations in a table's history that move rows to other files: they hold nothing new.
_MOVES = frozenset({"OPTIMIZE"})


@attrs.frozen
class TableFile:
    """A Parquet file of a table's version.

    Attributes:
        path: inside the table; unique, since files are never changed.
        url: where it is: a path of this machine, or a URL.
        date: day of its rows, in UTC; None where the table has no days.
        rows, size: number of rows, and size in bytes.
        run: of the recorder that wrote all of its rows; None where there are several, or none.
        first_ns, last_ns: the earliest and the latest `_ts_ns` of its rows; None where not known.
    """

    path: str
    url: str
    date: str | None
    rows: int
    size: int
    run: str | None = None
    first_ns: int | None = None
    last_ns: int | None = None


@attrs.frozen
class TableSnapshot:
    """The files of a table at one version, the oldest day first.

    Attributes:
        version: of the table.
        files: that hold its rows.
    """

    version: int
    files: tuple[TableFile, ...]

    @property
    def rows(self) -> int:
        """The number of rows."""
        return sum(file.rows for file in self.files)


class LakeTable:
    """A table by its URL, whether it exists yet or not. Belongs to one thread at a time.

    Methods raise `LakeError` for every failure of the file system or of the object store; the table is as before then.
    """

    def __init__(self, url: str, options: Mapping[str, str] | None = None) -> None:
        """Name a table; nothing is read yet.

        Args:
            url: a path of this machine, or a URL that the library's object stores know.
            options: of the object store, e.g. ``AWS_ENDPOINT_URL``.
        """
        self.url = url
        self._options = dict(options or {})
        self._opened: Any = None
        self._snapshot: TableSnapshot | None = None

    # -- reading

    def version(self) -> int | None:
        """The number of the last commit; None where there is no table yet."""
        table = self._refreshed()
        return None if table is None else int(table.version())

    def schema(self) -> Any:
        """The columns of all versions of the table's rows together, as an Arrow schema.

        Raises:
            LakeError: there is no table.
        """
        return import_pyarrow().schema(self._existing().schema())

    def last_batch(self, writer: str) -> int | None:
        """The number of the last batch of a writer that was committed; None for none."""
        table = self._refreshed()
        number = None if table is None else table.transaction_version(writer)
        return None if number is None else int(number)

    def snapshot(self, at: int | datetime.datetime | None = None) -> TableSnapshot:
        """The files of a version.

        Args:
            at: number of the version, or a time with its zone; None for the last version.

        Raises:
            LakeError: there is no table, or no such version any more.
        """
        if at is None:
            table = self._existing()
            version = int(table.version())
            if self._snapshot is None or self._snapshot.version != version:
                self._snapshot = TableSnapshot(version, self._files(table))
            return self._snapshot
        with delta_errors(self.url):
            table = import_deltalake().DeltaTable(self.url, storage_options=self._options or None)
            table.load_as_version(at)
        return TableSnapshot(int(table.version()), self._files(table))

    def added(self, after: int | None, until: int) -> tuple[TableFile, ...]:
        """The files whose rows came after a version, up to another one.

        Rows that were only moved, because small files were combined, are not among them; those that came and were
        moved in between are, once.

        Args:
            after: number of a version; None for all rows of version `until`.
            until: number of a later version.

        Raises:
            LakeError: one of the versions was removed from the table's log.
        """
        if after is None:
            return self.snapshot(until).files
        found: list[TableFile] = []
        start = after
        for move in [*self._moves(after, until), until + 1]:
            if move - 1 > start:
                known = {file.path for file in self.snapshot(start).files}
                found += [file for file in self.snapshot(move - 1).files if file.path not in known]
            start = move
        return tuple(found)

    def dataset(self, files: Sequence[TableFile], schema: Any = None) -> Any:
        """Files of the table as one pyarrow dataset, from any store; columns that a file lacks are null.

        Args:
            files: of one version, or of several.
            schema: of the result, as an Arrow schema; None for all columns of the table, `DATE` among them.

        Raises:
            LakeError: there is no table.
        """
        import_pyarrow()
        from pyarrow import dataset

        columns = self.schema() if schema is None else schema
        parquet, store = dataset.ParquetFileFormat(), self.store()
        fragments = [parquet.make_fragment(file.path, store, _partition(dataset, file)) for file in files]
        return dataset.FileSystemDataset(fragments, columns, parquet, store)

    # -- writing

    def append(
        self,
        rows: Any,
        *,
        writer: str,
        batch: int,
        partition_by: Sequence[str] = (DATE,),
        optional: bool = True,
        numbers: Mapping[str, int] | None = None,
    ) -> bool:
        """Commit a batch of a writer, unless it was committed before. Columns that the table lacks are added to it.

        Args:
            rows: an Arrow table; if not `optional` anything that streams Arrow.
            writer: its name, unique among the writers of the table.
            batch: its number; each is larger than the one before.
            partition_by: columns of the folders; those of the first batch hold for the table.
            optional: an empty batch makes no commit.
            numbers: to commit with it, by name; `last_batch` reads them.

        Returns:
            False where the batch had been committed.

        Raises:
            LakeError: a column has another type in the table.
        """
        if optional and not rows.num_rows:
            return True
        return self._commit(
            rows, writer, batch, numbers, mode="append", schema_mode="merge", partition_by=list(partition_by)
        )

    def replace(
        self,
        rows: Any,
        *,
        where: str | None,
        writer: str,
        batch: int,
        partition_by: Sequence[str] = (DATE,),
        numbers: Mapping[str, int] | None = None,
    ) -> bool:
        """Commit a batch that replaces rows; otherwise as `append`.

        Args:
            rows: an Arrow table, or anything that streams Arrow.
            where: a condition in SQL for the rows that go, e.g. ``_date = '2030-01-31'``; all new rows must meet it.
                None replaces all.
            writer, batch, partition_by, numbers: as of `append`.
        """
        if self._refreshed() is None:
            where = None
        return self._commit(
            rows,
            writer,
            batch,
            numbers,
            mode="overwrite",
            schema_mode="merge",
            partition_by=list(partition_by),
            predicate=where,
        )

    def _commit(self, rows: Any, writer: str, batch: int, numbers: Mapping[str, int] | None, **options: Any) -> bool:
        last = self.last_batch(writer)
        if last is not None and last >= batch:
            return False
        delta = import_deltalake()
        transactions = [delta.Transaction(name, number) for name, number in {**(numbers or {}), writer: batch}.items()]
        with delta_errors(self.url):
            delta.write_deltalake(
                self._opened if self._opened is not None else self.url,
                rows,
                storage_options=self._options or None,
                writer_properties=delta.WriterProperties(compression="ZSTD", max_row_group_size=GROUP_ROWS),
                commit_properties=delta.CommitProperties(app_transactions=transactions),
                # Old entries of the log go with `vacuum`, when the operator decides.
                post_commithook_properties=delta.PostCommitHookProperties(cleanup_expired_logs=False),
                **options,
            )
        return True

    # -- the library's table

    def delta(self) -> Any:
        """The table as the library has it, at its last version, for maintenance.

        Raises:
            LakeError: there is no table.
        """
        return self._existing()

    def store(self) -> Any:
        """The table's folder as a file system of pyarrow; it may not exist yet."""
        from pyarrow import fs

        if is_local(self.url):
            return fs.SubTreeFileSystem(self.url, fs.LocalFileSystem())
        from deltalake.fs import DeltaStorageHandler

        with delta_errors(self.url):
            return fs.PyFileSystem(DeltaStorageHandler(self.url, self._options))

    def _refreshed(self) -> Any:
        delta = import_deltalake()
        with delta_errors(self.url):
            if self._opened is None:
                try:
                    self._opened = delta.DeltaTable(self.url, storage_options=self._options or None)
                except delta.exceptions.TableNotFoundError:
                    return None
            else:
                self._opened.update_incremental()
        return self._opened

    def _existing(self) -> Any:
        table = self._refreshed()
        if table is None:
            raise LakeError(f"{self.url}: no such table")
        return table

    def _moves(self, after: int, until: int) -> list[int]:
        """The versions between two that moved rows only, in order."""
        with delta_errors(self.url):
            history = self._existing().history(int(self._existing().version()) - after)
        known = {entry["version"]: entry.get("operation") for entry in history}
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
            TableFile(path, f"{self.url}/{path}", date, rows, size, run, first, last)
            for path, date, rows, size, run, first, last in zip(
                column("path"),
                column(f"partition.{DATE}"),
                column("num_records"),
                column("size_bytes"),
                [low if low == high else None for low, high in runs],
                column("min._ts_ns"),
                column("max._ts_ns"),
                strict=True,
            )
        ]
        return tuple(sorted(found, key=lambda file: (file.date or "", file.first_ns or 0, file.path)))


def _partition(dataset: Any, file: TableFile) -> Any:
    return None if file.date is None else dataset.field(DATE) == file.date
