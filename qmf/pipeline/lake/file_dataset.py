"""Files of a table as a dataset of pyarrow. Imported when the first one is made, since it imports pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Self

import attrs
import pyarrow as pa
from pyarrow import dataset


class FileDataset(dataset.FileSystemDataset):  # type: ignore[misc]  # pyarrow has no types
    """A dataset that DuckDB can read as well where it is Python that reads the files, as for an object store.

    `Scanner.to_reader` of pyarrow, which DuckDB calls, holds the interpreter's lock while it waits for threads that
    need the lock to read the files; now and then both wait for ever.
    """

    #: `qmf.pipeline.lake.runs.CountedRows`, or None.
    _choice: Any = None

    def choose(self, choice: Any) -> Self:
        """The same files, of which readers get some rows only."""
        found = type(self)(list(self.get_fragments()), self.schema, self.format, self.filesystem)
        found._choice = choice
        return found

    def scanner(self, **options: Any) -> Any:
        wanted = options.get("columns")
        if self._choice is not None and wanted is not None:
            options["columns"] = list(dict.fromkeys([*wanted, *self._choice.columns]))
        return _Scan(super().scanner(**options), self._choice, wanted)


@attrs.frozen
class _Scan:
    """A scanner of pyarrow with a stream of its own."""

    rows: Any
    choice: Any
    wanted: Sequence[str] | None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rows, name)

    @property
    def projected_schema(self) -> Any:
        schema = self.rows.projected_schema
        return schema if self.wanted is None else pa.schema([schema.field(name) for name in self.wanted])

    def to_batches(self) -> Iterator[Any]:
        if self.choice is None:
            yield from self.rows.to_batches()
            return
        for batch in self.rows.to_batches():
            found = self.choice.of(batch)
            yield found if self.wanted is None else found.select(list(self.wanted))

    def to_table(self) -> Any:
        return self.rows.to_table() if self.choice is None else self.to_reader().read_all()

    def count_rows(self) -> int:
        return (
            int(self.rows.count_rows()) if self.choice is None else sum(batch.num_rows for batch in self.to_batches())
        )

    def to_reader(self) -> Any:
        """The rows as a stream, each batch read without the interpreter's lock."""
        return pa.RecordBatchReader.from_batches(self.projected_schema, self.to_batches())
