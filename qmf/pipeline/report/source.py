"""The rows of a lake that a report reads, on one connection to DuckDB: the only module here that knows files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import attrs

from qmf.pipeline.duckdb_queries import connect, duckdb_errors
from qmf.pipeline.errors import LakeError
from qmf.pipeline.history.files import LakeFiles
from qmf.pipeline.history.schemas import AnySchema, schema_of
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.days import day
from qmf.pipeline.lake.row_source import RowSource

Row = tuple[Any, ...]


@attrs.frozen
class LakeClass:
    """A class version of the lake with its schema."""

    version: ClassVersion
    schema: AnySchema


class ReportSource:
    """The rows of a lake as of its opening. Belongs to one thread.

    Methods raise `LakeError` for files that cannot be read.
    """

    def __init__(self, lake: str, storage: Mapping[str, str] | None = None) -> None:
        """Open a lake.

        Args:
            lake: a folder, or a URL.
            storage: options of the object store.

        Raises:
            LakeError: there is no lake, or nothing in it.
            MissingExtraError: DuckDB or deltalake is not installed.
        """
        self.url = lake
        self.storage = dict(storage or {})
        self._files = LakeFiles(lake, storage)
        self._files.refresh()
        self.connection = connect()
        self.connection.execute("set timezone = 'UTC'")
        self.connection.execute("set parquet_metadata_cache = true")
        self.classes = tuple(LakeClass(item.version, schema_of(item.version, item.xml)) for item in self._files.classes)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Raise errors of queries, and of files that are gone, as `LakeError`."""
        try:
            with duckdb_errors(self.url):
                yield
        except FileNotFoundError as error:
            raise LakeError(f"{self.url}: {error}") from error

    def query(self, sql: str, parameters: Sequence[object] = ()) -> list[Row]:
        """All rows of a query."""
        with self.errors():
            found: list[Row] = self.connection.execute(sql, list(parameters)).fetchall()
        return found

    def run(self, sql: str, parameters: Sequence[object] = ()) -> None:
        """Run a statement without a result."""
        with self.errors():
            self.connection.execute(sql, list(parameters))

    def rows(self, kind: RowKind, first_ns: int, last_ns: int, version: ClassVersion | None = None) -> str | None:
        """The rows of the days of a time range as SQL, a part of ``from``; None where there are none.

        Args:
            kind: of the rows.
            first_ns, last_ns: the range; rows of the same days outside it are included.
            version: of a class, for kinds that have classes.
        """
        source = self._select(kind, first_ns, last_ns, version)
        return source.sql(self.connection) if source else None

    def _select(self, kind: RowKind, first_ns: int, last_ns: int, version: ClassVersion | None) -> RowSource:
        found = self._files.select(kind, version, day(max(first_ns, 0)), day(max(last_ns, 0)))
        # A day may be far larger than the range.
        files = tuple(
            file
            for file in found.files
            if file.last_ns is None or file.first_ns is None or (file.last_ns >= first_ns and file.first_ns <= last_ns)
        )
        return attrs.evolve(found, files=files) if kind is RowKind.OBJECTS else found

    def limits(self) -> tuple[int, int] | None:
        """When the first and the last row about an agent arrived; None for a lake without any."""
        found: list[int] = []
        for kind in (RowKind.AGENTS, RowKind.HEARTBEATS):
            days = self._files.days(kind)
            for edge in {days[0], days[-1]} if days else ():
                rows = self._files.select(kind, first=edge, last=edge).sql(self.connection)
                found += [
                    time
                    for row in self.query(f"select min(_received_ns), max(_received_ns) from {rows}")
                    for time in row
                ]
        times = [time for time in found if time is not None]
        return (min(times), max(times)) if times else None


def end_of_recording(lake: str, storage: Mapping[str, str] | None = None) -> int:
    """When the last row about an agent arrived.

    Raises:
        LakeError: there is no lake, or nothing in it.
    """
    with ReportSource(lake, storage) as source:
        limits = source.limits()
    if limits is None:
        raise LakeError(f"{lake}: no lake, or nothing in it yet")
    return limits[1]
