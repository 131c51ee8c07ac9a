"""Rows as new files of a table, whoever writes them: they belong to it when they are committed."""

from __future__ import annotations

import itertools
import json
import shutil
import tempfile
import uuid
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_errors import delta_errors, import_deltalake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import is_local
from qmf.pipeline.lake.table_files import GROUP_ROWS, WrittenFile
from qmf.pipeline.lake.table_log import LOG, exact_statistics, table_settings

#: Bytes of a file that are copied at once.
_COPIED_BYTES = 1 << 20


@attrs.frozen
class WrittenRows:
    """What was written: new files, and numbers of rows by the values of some columns."""

    files: tuple[WrittenFile, ...] = ()
    counts: Mapping[tuple[str, ...], int] = attrs.field(factory=dict)

    @property
    def rows(self) -> int:
        return sum(file.rows for file in self.files)

    def __add__(self, other: WrittenRows) -> WrittenRows:
        return WrittenRows((*self.files, *other.files), Counter(self.counts) + Counter(other.counts))


def write_rows(
    table: LakeTable,
    batches: Iterable[Any],
    schema: Any,
    *,
    by: Sequence[str] = (),
    counted: Sequence[str] = (),
    statistics: Sequence[str] = (),
    name: str = "part",
    target_bytes: int | None = None,
) -> WrittenRows:
    """Write Arrow record batches of a schema as files into the folder of a table, partitioned by some columns.

    Rows are counted by the values of some columns; of some, or of the table's, each file has the limits. A file has
    about `target_bytes` at most; None for one file of each partition.
    """
    delta, pa = import_deltalake(), import_pyarrow()
    counts: Counter[tuple[str, ...]] = Counter()
    errors: list[BaseException] = []
    given = (_conform(batch, schema) for batch in batches if batch.num_rows)
    with closing(_pull_in_thread(given, errors)) as pulled:
        first = next(pulled, None)
        if errors:
            raise errors[0]
        if first is None:
            return WrittenRows()
        all_batches = (_count_rows(batch, counted, counts) for batch in itertools.chain([first], pulled))
        with delta_errors(table.url), tempfile.TemporaryDirectory(prefix="qmf-rows-") as folder:
            # The library's writer makes the statistics, which only it brings to the form that its readers want.
            delta.write_deltalake(
                folder,
                pa.RecordBatchReader.from_batches(schema, all_batches),
                partition_by=list(by) or None,
                configuration=table_settings(
                    [own for own in statistics or table.statistics or exact_statistics(schema) if own not in by]
                ),
                target_file_size=target_bytes,
                writer_properties=delta.WriterProperties(
                    compression="ZSTD",
                    max_row_group_size=GROUP_ROWS,
                    column_properties=dict.fromkeys(table.plain, delta.ColumnProperties(dictionary_enabled=False)),
                ),
            )
            if not errors:
                return WrittenRows(tuple(_move_files(table, Path(folder), by, name)), counts)
    raise errors[0]


def _pull_in_thread(batches: Iterator[Any], errors: list[BaseException]) -> Generator[Any, None, None]:
    """Batches that are made in a thread: the library, which pulls them, cannot be called where it does so."""
    with ThreadPoolExecutor(1, "qmf-rows") as thread:
        while not errors:
            future = thread.submit(next, batches, None)
            error = future.exception()
            if error is not None:
                errors.append(error)
            elif future.result() is None:
                return
            else:
                yield future.result()


def _conform(batch: Any, schema: Any) -> Any:
    return batch if batch.schema == schema else batch.select(schema.names).cast(schema)


def _count_rows(batch: Any, names: Sequence[str], counts: Counter[tuple[str, ...]]) -> Any:
    if names:
        table = import_pyarrow().Table.from_batches([batch]).select(list(names))
        for row in table.group_by(list(names)).aggregate([([], "count_all")]).to_pylist():
            counts[tuple(row[name] for name in names)] += row["count_all"]
    return batch


def _move_files(table: LakeTable, folder: Path, by: Sequence[str], name: str) -> Iterator[WrittenFile]:
    """Move the files of a table of one commit to another table."""
    store = table.store()
    for line in (folder / LOG / f"{0:020}.json").read_text().splitlines():
        added = json.loads(line).get("add")
        if added is None:
            continue
        values = {column: added["partitionValues"][column] for column in by}
        inside = "".join(f"{column}={value}/" for column, value in values.items())
        if is_local(table.url):
            Path(table.url, inside).mkdir(parents=True, exist_ok=True)
        # A name of its own for each attempt: what an attempt that failed has written is never committed.
        path = f"{inside}{name}-{uuid.uuid4()}.zstd.parquet"
        with (folder / added["path"]).open("rb") as source, store.open_output_stream(path) as target:
            shutil.copyfileobj(source, target, _COPIED_BYTES)
        rows = int(json.loads(added["stats"])["numRecords"])
        yield WrittenFile(path, values, rows, added["size"], added["stats"])
