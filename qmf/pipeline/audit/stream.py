"""The job `audit` as a stream, wherever it runs: it follows a lake, and makes the tables of a batch.

::

    OUT/events, OUT/calls                     each event once, added as they come
    OUT/availability, OUT/lives, OUT/history  replaced as a whole
    OUT/parts                                 the merged parts, and what was read of the lake

A step makes the parts of new files and merges them with those of the table. Its cost depends on the number of agents,
objects and changes so far, not on the number of samples. The parts are committed last, with the position in the lake as
numbers of the application: after a kill before that, the next step reads the same files again, which changes nothing,
since events that are in their table are not added to it again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from contextlib import ExitStack

from qmf.pipeline.audit.job import replace_table
from qmf.pipeline.audit.schemas import arrow_schema
from qmf.pipeline.audit.state import PART
from qmf.pipeline.audit.tables import (
    EVENT_TABLES,
    KNOWN,
    WRITER,
    AuditOptions,
    StoredParts,
    conformed_parts,
    event_tables,
    made_parts,
    merged_parts,
    presence_and_object_tables,
)
from qmf.pipeline.duckdb_queries import text
from qmf.pipeline.lake.columns import DATE
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.feed import LakeFeed, TablePosition
from qmf.pipeline.lake.lake_versions import LakeVersions
from qmf.pipeline.lake.table_files import FilesByTable, TableFile
from qmf.pipeline.runners.runner import STORED, Rows, Runner, stored_rows


class AuditStream:
    """Follows one lake. Belongs to one thread."""

    def __init__(self, runner: Runner, options: AuditOptions) -> None:
        """Begin where the last stream into the same tables ended.

        Raises:
            LakeError: the table of parts cannot be read.
            MissingExtraError: deltalake is not installed.
        """
        self._runner, self._options = runner, options
        #: The lake that is followed.
        self.lake = DeltaLake(options.lake, options.storage)
        self._feed = LakeFeed(self.lake)
        self._parts = StoredParts(options)
        self._position: dict[str, TablePosition] = {}

    def step(self, until: LakeVersions | None = None) -> int:
        """Read what is new, and write the tables if there is anything; the number of rows that were read, of any kind.

        Args:
            until: of all tables, up to which they are read; None for all that is there.

        Raises:
            LakeError: the lake cannot be read, or a table cannot be written.
        """
        if not self.lake.exists():
            return 0
        paths = self._options.paths(self.lake)
        if until is not None:
            paths = [path for path in paths if path in until.versions]
        start = {path: self._position_of(path) for path in paths}
        end = self._feed.next_position(start, paths, end=None if until is None else until.versions)
        files: dict[str, list[TableFile]] = defaultdict(list)
        for item in self._feed.files(start, end):
            files[item.path].append(item.file)
        if not files:
            return 0
        self._write(files, end)
        self._position.update(end)
        return sum(file.rows for found in files.values() for file in found)

    def _write(self, files: FilesByTable, end: Mapping[str, TablePosition]) -> None:
        with ExitStack() as stack:
            new = stack.enter_context(made_parts(self._runner, self._options, files).persist())
            if self._options.events:
                days = {file.date for found in files.values() for file in found}
                known = [self._known_events(name, days) for name in EVENT_TABLES]
                events = stack.enter_context(event_tables(new.union(known[0]).union(known[1])).persist())
                for name in EVENT_TABLES:
                    self._append(name, events)
            parts = stack.enter_context(merged_parts(new.union(self._parts.rows(self._runner))).persist())
            for name, rows in presence_and_object_tables(parts):
                replace_table(rows, self._options, name)
            self._parts.store(parts, {path: item.version for path, item in end.items() if item.version is not None})

    # -- events

    def _known_events(self, name: str, days: set[str | None]) -> Rows:
        """The ids of the events of some days that are in a table."""
        table = self._options.table(name)
        files = () if table.version() is None else table.snapshot().files
        query, schema = conformed_parts({name: f"select {text(KNOWN[name])} as {PART}, event_id from {STORED}"})
        own = [file for file in files if file.date is None or file.date in days]
        return stored_rows(self._runner, table, schema, query, files=own)

    def _append(self, name: str, events: Rows) -> None:
        """Add rows to a table of events."""
        table, columns = self._options.table(name), EVENT_TABLES[name]
        own = events.where(PART, [name]).select(list(columns))
        written = own.write(table, by=(DATE,), order=("time_ns", "event_id"))
        if written.files or table.version() is None:
            table.commit_files(written.files, arrow_schema(columns), partition_by=(DATE,), writer=WRITER)

    def _position_of(self, path: str) -> TablePosition:
        """How much of a table was read."""
        if path not in self._position:
            self._position[path] = TablePosition(self._parts.read(path))
        return self._position[path]
