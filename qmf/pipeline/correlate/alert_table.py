"""The tables of alerts, as Delta tables: `OUT/batch` of the last batch, `OUT/stream` of all steps of a stream.

Each step of a stream is committed once: a step that was committed before a kill is not committed again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

import attrs

from qmf.pipeline.correlate.alerts import AlertRow, in_order
from qmf.pipeline.duckdb_queries import connect, duckdb_errors, quote_name
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import is_local, local_path
from qmf.pipeline.lake.table_files import WrittenFile
from qmf.pipeline.lake.table_log import exact_statistics
from qmf.pipeline.runners.runner import Rows

#: The columns of an `AlertRow`; the tables have `began` and `at` as well, timestamps made from `began_ns` and `at_ns`.
COLUMNS = tuple(field.name for field in attrs.fields(AlertRow))

#: The Arrow types of its attributes.
_TYPES = {"str": "string", "str | None": "string", "int": "int64", "float | None": "double"}

#: The step of a stream; null in the table of a batch.
_STEP = "step"

_WRITER = "correlate"

#: The order of the rows of a batch.
_ORDER = ("at_ns", "alert_id")

#: Alerts that are fetched, or made into Arrow, at once.
_PORTION = 1000


class AlertTable:
    """One table of alerts. Methods raise `LakeError` where the file system or the object store fails."""

    def __init__(self, out: str, by: str) -> None:
        """Name a table in a folder or URL: ``batch`` or ``stream``."""
        root = str(local_path(out)) if is_local(out) else out.rstrip("/")
        #: The Delta table.
        self.table = LakeTable(f"{root}/{by}", statistics=exact_statistics(_schema()))

    def append(self, step: int, alerts: Sequence[AlertRow]) -> None:
        """Commit the alerts of a step, unless they were committed before."""
        self.table.append(arrow_table(alerts, step), writer=_WRITER, batch=step, partition_by=())

    def commit(self, step: int, files: Sequence[WrittenFile]) -> None:
        """Commit the alerts of a step that were written as files, unless they were committed before."""
        if files:
            self.table.commit_files(files, arrow_table([], step).schema, writer=_WRITER, batch=step)

    def replace(self, alerts: Rows) -> int:
        """Replace all alerts by those of a batch, and return their number."""
        written = alerts.write(self.table, order=_ORDER)
        schema = arrow_table([], None).schema
        self.table.commit_files(written.files, schema, writer=_WRITER, batch=time.time_ns(), replace=True)
        return written.rows

    def read(self) -> Any:
        """The table as an Arrow table; None where there is nothing yet."""
        if self.table.version() is None:
            return None
        return self.table.dataset(self.table.snapshot().files).to_table()

    def in_order(self) -> Iterator[AlertRow]:
        """The alerts by time, as of `in_order`, few of them in memory."""
        if self.table.version() is None:
            return
        names = ", ".join(quote_name(name) for name in COLUMNS)
        with duckdb_errors(self.table.url), closing(connect()) as connection:
            connection.register("alerts", self.table.dataset(self.table.snapshot().files))
            connection.execute(
                f"SELECT {names} FROM alerts ORDER BY at_ns, alert_id, change = 'cleared', change <> 'raised'"
            )
            while rows := connection.fetchmany(_PORTION):
                yield from (AlertRow(**dict(zip(COLUMNS, row, strict=True))) for row in rows)

    def steps(self, after: int) -> list[tuple[int, list[AlertRow]]]:
        """The steps after a step that have alerts, with their alerts in order."""
        if self.table.version() is None:
            return []
        import_pyarrow()
        from pyarrow import dataset

        later = dataset.field(_STEP) > after
        table = self.table.dataset(self.table.snapshot().files).to_table(columns=[*COLUMNS, _STEP], filter=later)
        found: dict[int, list[AlertRow]] = {}
        for row in table.to_pylist():
            found.setdefault(row.pop(_STEP), []).append(AlertRow(**row))
        return [(step, in_order(found[step])) for step in sorted(found)]


def alerts(out: str, *, by: str = "stream") -> Any:
    """The table that a job wrote, as an Arrow table in the order of time; None where there is nothing yet.

    Args:
        out: folder or URL of the tables, as of the job.
        by: ``batch`` or ``stream``.
    """
    table = AlertTable(out, by).read()
    return None if table is None else table.sort_by([("at_ns", "ascending"), ("alert_id", "ascending")])


def _schema() -> Any:
    pa = import_pyarrow()
    types = {field.name: _TYPES[str(field.type)] for field in attrs.fields(AlertRow)} | {"severity": "int16"}
    return pa.schema([pa.field(name, pa.type_for_alias(type)) for name, type in types.items()])


def fill_columns(table: Any, schema: Any, name: str, value: str) -> Any:
    """A table with the other columns of a wider schema, of which one has a value and the others are null."""
    pa = import_pyarrow()
    for field in list(schema)[len(table.schema) :]:
        own = [value if field.name == name else None] * table.num_rows
        table = table.append_column(field, pa.array(own, field.type))
    return table


def alert_tables(alerts: Iterator[AlertRow]) -> Iterator[Any]:
    """Alerts as of `arrow_table`, not all of them in memory at once."""
    while portion := list(islice(alerts, _PORTION)):
        yield arrow_table(portion, None)


def arrow_table(rows: Sequence[AlertRow], step: int | None) -> Any:
    """Alerts with the columns of the tables; the step is that of a stream, None in a batch."""
    pa = import_pyarrow()
    table = pa.Table.from_pylist([attrs.asdict(row) for row in rows], schema=_schema())
    for name in ("began", "at"):
        micros = [value // 1000 for value in table.column(f"{name}_ns").to_pylist()]
        table = table.append_column(name, pa.array(micros, pa.timestamp("us", tz="UTC")))
    return table.append_column(_STEP, pa.array([step] * len(rows), pa.int64()))
