"""The tables of roll-ups: what to compute, and where the rows go.

Batches and streams write the same rows, each to a Delta table of its own, with all classes and all sizes::

    OUT/batch     OUT/stream      columns `size` and `_date`, by which they are partitioned, then those of `columns`
    OUT/ZONE/batch and so on      of days in a time zone other than UTC
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import quote_name, text
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.columns import DATE
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import absolute
from qmf.pipeline.rollup.columns import ROLLUP_COLUMNS
from qmf.pipeline.rollup.members import window_seconds
from qmf.pipeline.rollup.zones import UTC, Zone, base_seconds


@attrs.frozen(kw_only=True)
class RollupOptions:
    """Options of a rollup.

    Attributes:
        lake: path, or any URL that Spark reads.
        out: folder of the tables.
        sizes: of the windows, see `window_seconds`.
        classes: names, with or without ``package:``; none for all.
        first, last: days of a batch, ``2030-01-31``, both included; None for no limit.
        late: how long a stream waits for late data.
        continued: counters outlive restarts of their agents, as those do that an agent only forwards.
        timezone: whose days windows begin with, see `Zone`.
        storage: options of the object stores of both.
    """

    lake: str
    out: str
    sizes: tuple[str, ...] = ("1m",)
    classes: tuple[str, ...] = ()
    first: str | None = None
    last: str | None = None
    late: str = "10 minutes"
    continued: bool = False
    timezone: str = "UTC"
    storage: Mapping[str, str] = attrs.field(factory=dict)

    def check(self) -> None:
        """Check the sizes and the time zone; `PipelineError` if one is none."""
        for size in self.sizes:
            window_seconds(size)
        self.zone.check()

    @property
    def zone(self) -> Zone:
        """The time zone."""
        return Zone(self.timezone)

    @property
    def base_seconds(self) -> int:
        """As of that function."""
        return base_seconds(self.sizes, self.zone)


#: The columns by which the tables are partitioned: size of the windows, and day in their time zone.
PARTITIONS = ("size", DATE)

#: The temporary table in which a job collects its rows, with the columns by which the job's tables are partitioned.
OUT = "qmf_out"

#: The columns with statistics: what rows are chosen by. Those of values would hide rows from readers by the library
#: where an infinity or a number of more than 64 bits is among them.
STATISTICS = ("window_start", "package", "class", "agent", "object", "member", "first_ns", "last_ns")

#: The columns without a dictionary in files: with one, writing rows took a third longer, and files were a third larger.
PLAIN = tuple(name for name, type in ROLLUP_COLUMNS.items() if type != "varchar")

#: The writer of the tables, in their logs.
WRITER = "rollup"

#: The beginnings of the names of numbers in the log of a batch's table, without and with counters that outlive agents.
_READ = {False: "rollup read ", True: "rollup read continued "}


def rollup_table(options: RollupOptions, by: str) -> LakeTable:
    """A table of roll-ups; `by` is ``batch`` or ``stream``. Each time zone has tables of its own."""
    folder = "" if options.zone.is_utc else f"{options.timezone}/"
    return LakeTable(f"{absolute(options.out)}/{folder}{by}", options.storage, statistics=STATISTICS, plain=PLAIN)


def read_version(table: LakeTable, size: str, path: str, *, continued: bool) -> int | None:
    """The version of a table of the lake, by its path, of which all samples are in a batch's table; None for none."""
    number = table.last_batch(f"{_READ[continued]}{size} {path}")
    return number - 1 if number else None


def read_numbers(table: LakeTable, options: RollupOptions, versions: Mapping[str, int]) -> dict[str, int]:
    """The numbers from which `read_version` is known, to be committed with the rows of a batch.

    A batch that has read some days only says nothing new, unless it replaced rows of the other kind of counters.
    """
    found: dict[str, int] = {}
    for size in options.sizes:
        for path, version in versions.items():
            other = f"{_READ[not options.continued]}{size} {path}"
            if table.last_batch(other):
                found[other] = 0
            if options.first is None and options.last is None:
                found[f"{_READ[options.continued]}{size} {path}"] = version + 1
    return found


def rollup_schema() -> Any:
    """The columns of the tables, as an Arrow schema."""
    return sql_schema({**dict.fromkeys(PARTITIONS, "varchar"), **ROLLUP_COLUMNS})


def sql_schema(columns: Mapping[str, str]) -> Any:
    """Columns with types in SQL, of those of `ROLLUP_COLUMNS`, as an Arrow schema."""
    pa = import_pyarrow()
    types = {
        "timestamptz": pa.timestamp("us", "UTC"),
        "varchar": pa.string(),
        "bigint": pa.int64(),
        "double": pa.float64(),
        "boolean": pa.bool_(),
    }
    return pa.schema([(name, types.get(type) or pa.decimal128(38, 0)) for name, type in columns.items()])


def add_rows(connection: Any, out: str, table: str, size: str, zone: Zone = UTC) -> int:
    """Add rows of one size to a table `out` with the columns of the job's tables; returns their number."""
    columns = ", ".join(f"{quote_name(name)} {type}" for name, type in ROLLUP_COLUMNS.items())
    connection.execute(f"create temp table if not exists {out} (size varchar, {DATE} varchar, {columns})")
    ((count,),) = connection.execute(f"insert into {out} {table_rows(table, size, zone)}").fetchall()
    return int(count)


def table_rows(table: str, size: str, zone: Zone = UTC) -> str:
    """Rows of one size with the columns of the job's tables, as a query; the arguments are those of `add_rows`."""
    local = "window_start" if zone.is_utc else f"timezone({text(zone.name)}, window_start)"
    return f"select {text(size)} as size, strftime({local}, '%Y-%m-%d') as {DATE}, * from {table}"
