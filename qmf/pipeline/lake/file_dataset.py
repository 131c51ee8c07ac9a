"""Files of a table as a dataset of pyarrow. Imported when the first one is made, since it imports pyarrow."""

from __future__ import annotations

from typing import Any

import attrs
import pyarrow as pa
from pyarrow import dataset


class FileDataset(dataset.FileSystemDataset):  # type: ignore[misc]  # pyarrow has no types
    """A dataset that DuckDB can read as well where it is Python that reads the files, as for an object store.

    `Scanner.to_reader` of pyarrow, which DuckDB calls, holds the interpreter's lock while it waits for threads that
    need the lock to read the files; now and then both wait for ever.
    """

    def scanner(self, **options: Any) -> Any:
        """See pyarrow."""
        return _Scan(super().scanner(**options))


@attrs.frozen
class _Scan:
    """A scanner of pyarrow with a stream of its own."""

    rows: Any

    def __getattr__(self, name: str) -> Any:
        return getattr(self.rows, name)

    def to_reader(self) -> Any:
        """The rows as a stream, each batch read without the interpreter's lock."""
        return pa.RecordBatchReader.from_batches(self.rows.projected_schema, self.rows.to_batches())
