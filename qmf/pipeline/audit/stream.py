"""The job `audit` as a stream, in this process: it follows a lake, and makes the tables of a batch.

::

    OUT/events, OUT/calls                     each event once, added as they come
    OUT/availability, OUT/lives, OUT/history  replaced as a whole
    OUT/parts                                 the merged parts, and what was read of the lake

The cost of a step depends on the number of agents, objects and changes so far, not on the number of samples. The parts
are committed last, with the position in the lake as numbers of the application: after a kill before that, the next step
reads the same files again, which changes nothing, since events that are in their table are not added to it again.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from qmf.pipeline.audit.job import DAY, dated, replace_table
from qmf.pipeline.audit.options import AuditOptions
from qmf.pipeline.audit.schemas import PARTS
from qmf.pipeline.audit.state import AuditState, chosen, part_table, together
from qmf.pipeline.duckdb_queries import connect, duckdb_errors
from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.feed import LakeFeed, TablePosition
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.table_files import FilesByTable

#: The writer of the tables, and the beginning of the names of the position's numbers, in their logs.
WRITER, _READ = "audit", "audit read "


class AuditStream:
    """Follows one lake. Belongs to one thread; close it at the end."""

    def __init__(self, options: AuditOptions) -> None:
        """Begin where the last stream into the same tables ended.

        Args:
            options: of the audit.

        Raises:
            LakeError: the table of parts cannot be read.
            MissingExtraError: DuckDB or deltalake is not installed.
        """
        self._options = options
        self._lake = DeltaLake(options.lake, options.storage)
        self._feed = LakeFeed(self._lake)
        self._parts = options.table("parts")
        self._position: dict[str, TablePosition] = {}
        self._connection = connect()
        self._connection.execute("set timezone = 'UTC'")
        self._state = AuditState(self._connection)
        self._load()

    def close(self) -> None:
        """Release what is held."""
        self._connection.close()

    def step(self) -> int:
        """Read what is new, and write the tables if there is anything.

        Returns:
            rows that were read, of any kind.

        Raises:
            LakeError: the lake cannot be read, or a table cannot be written.
        """
        if not self._lake.exists():
            return 0
        try:
            with duckdb_errors(self._options.lake):
                return self._step()
        except FileNotFoundError as error:
            raise LakeError(f"{self._options.lake}: {error}") from error

    def _step(self) -> int:
        paths = self._lake.paths()
        start = {path: self._read(path) for path in paths}
        end = self._feed.next_position(start, paths)
        files: dict[str, list[Any]] = defaultdict(list)
        for item in self._feed.files(start, end):
            files[item.path].append(item.file)
        if not files:
            return 0
        self._write(files, end)
        self._position = end
        return sum(file.rows for found in files.values() for file in found)

    def _write(self, files: FilesByTable, end: dict[str, TablePosition]) -> None:
        self._add(files)
        events = self._state.events()
        self._append_new("events", events)
        self._append_new("calls", self._state.calls(events))
        self._state.drop_events()
        self._state.fold()
        for name, made in self._state.tables().items():
            replace_table(self._connection, self._options, name, made)
        self._store(end)

    def _add(self, files: FilesByTable) -> None:
        """Add the rows of some files to the state."""
        self._state.add(self._lake, files)

    # -- events

    def _append_new(self, name: str, made: str) -> None:
        """Add the rows to a table that it doesn't have, by their ids."""
        table = self._options.table(name)
        known = self._same_days(table, made)
        where = f" where event_id not in (select event_id from {known})" if known else ""
        rows = self._connection.sql(f"{dated(name, made)}{where} order by time_ns, event_id").to_arrow_table()
        table.create(rows.schema)
        table.append(rows, writer=WRITER, batch=(table.last_batch(WRITER) or 0) + 1)

    def _same_days(self, table: LakeTable, made: str) -> str | None:
        """The rows of the same days in a table, as a part of ``from``; None where there are none."""
        if table.version() is None:
            return None
        days = {day for (day,) in self._connection.execute(f"select distinct {DAY} from {made}").fetchall()}
        files = [file for file in table.snapshot().files if file.date is None or file.date in days]
        if not files:
            return None
        self._connection.register("qmf_audit_known", table.dataset(files))
        return "qmf_audit_known"

    # -- the table of parts

    def _store(self, end: dict[str, TablePosition]) -> None:
        rows = self._connection.sql(together({name: part_table(name) for name in PARTS}, PARTS))
        numbers = {f"{_READ}{path}": item.version for path, item in end.items() if item.version is not None}
        batch = (self._parts.last_batch(WRITER) or 0) + 1
        self._parts.replace(rows, where=None, writer=WRITER, batch=batch, partition_by=(), numbers=numbers)

    def _load(self) -> None:
        """Take over the parts of the last stream."""
        if self._parts.version() is None or self._parts.last_batch(WRITER) is None:
            return
        with duckdb_errors(self._parts.url):
            self._connection.register("qmf_audit_stored", self._parts.dataset(self._parts.snapshot().files))
            for name, columns in PARTS.items():
                self._state.insert(name, chosen("qmf_audit_stored", name, columns))

    def _read(self, path: str) -> TablePosition:
        """How much of a table was read."""
        if path not in self._position:
            self._position[path] = TablePosition(self._parts.last_batch(f"{_READ}{path}"))
        return self._position[path]
