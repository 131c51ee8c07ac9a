"""Pieces of work for executors: the roll-up of a day of a class, or of a part of its objects.

A task reads the files of its day itself, and what it needs of the days before, so no samples go through Spark. Its rows
go back to Spark, or into a file of the table; then only the file's name and statistics go back, and the driver commits
them.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
from pyspark.sql import SparkSession

from qmf.pipeline.duckdb_queries import duckdb_errors, quoted, text
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.lake.days import day as utc_day
from qmf.pipeline.lake.delta_errors import import_deltalake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.row_columns import DATE
from qmf.pipeline.lake.table_files import GROUP_ROWS, TableFile
from qmf.pipeline.lake.table_log import LOG
from qmf.pipeline.rollup.columns import ROLLUP_COLUMNS
from qmf.pipeline.rollup.day import ClassRollup
from qmf.pipeline.rollup.frames import executor_connection
from qmf.pipeline.rollup.rows import LOOK_BACK_DAYS
from qmf.pipeline.rollup.source import ClassSource
from qmf.pipeline.rollup.stream_windows import WindowRange, WindowRollup
from qmf.pipeline.rollup.tables import OUT, PARTITIONS, RollupOptions, rollup_table
from qmf.pipeline.rollup.zones import UTC, Zone
from qmf.pipeline.spark.tasks import run_tasks

#: Samples of a task; a day of a class that has more is divided by its objects.
TASK_SAMPLES = 5_000_000

#: Bytes of a file that are copied at once.
_COPIED_BYTES = 1 << 20

#: What a task says about a file that it wrote.
WRITTEN = (
    f"`package` string, `class` string, `size` string, `{DATE}` string, `path` string, "
    "`bytes` bigint, `rows` bigint, `stats` string"
)


@attrs.frozen
class RollupPart:
    """What some rows of a task are about.

    Attributes:
        package, name: of the class.
        size: of the windows.
        day: of the windows.
    """

    package: str
    name: str
    size: str
    day: str


@attrs.frozen
class WindowTask:
    """The roll-up of a range of windows of a stream.

    Attributes:
        options: of the roll-up; the paths are absolute.
        windows: the range.
        is_first: there is no table of earlier rows yet.
    """

    options: RollupOptions
    windows: WindowRange
    is_first: bool

    def run(self) -> Iterator[tuple[Any, RollupPart, str]]:
        """As of `RollupTask`.

        Raises:
            LakeError: the table of earlier rows is not on this machine, or a file cannot be read.
        """
        source, size = self.windows.source, self.windows.size
        if not self.is_first:
            rollup_table(self.options, "stream").delta()  # refuses what isn't there
        with closing(executor_connection()) as connection, duckdb_errors(self.options.lake):
            if not WindowRollup(connection, self.options).roll_up(self.windows):
                return
            for (day,) in connection.execute(f"select distinct {DATE} from {OUT} order by {DATE}").fetchall():
                rows = f"select * exclude ({', '.join(PARTITIONS)}) from {OUT} where {DATE} = {text(day)}"
                connection.execute(f"create or replace temp table qmf_part as {rows}")
                yield connection, RollupPart(source.package, source.name, size, day), "qmf_part"


@attrs.frozen
class RollupTask:
    """A piece of work.

    Attributes:
        lake: for errors.
        source: the samples of the day, and those of the days before in which the samples before it are looked for.
        day: to roll up.
        sizes: of the windows.
        continued: counters outlive restarts of their agents.
        zone: of the day.
    """

    lake: str
    source: ClassSource
    day: str
    sizes: tuple[str, ...]
    continued: bool
    zone: Zone = UTC

    def run(self) -> Iterator[tuple[Any, RollupPart, str]]:
        """Do the work: yields the connection, and a table with rows of one size."""
        with (
            closing(executor_connection()) as connection,
            duckdb_errors(self.lake),
            closing(ClassRollup(connection, self.source, self.sizes, self.continued, self.zone)) as rollup,
            rollup.day(self.day) as tables,
        ):
            for size, table in tables.items():
                yield connection, RollupPart(self.source.package, self.source.name, size, self.day), table


@attrs.frozen
class KeptRows:
    """The rows of a file of the table that a commit does not replace, to be written again.

    Attributes:
        table: with the file.
        file: to read.
        size: of its windows.
        replaced: condition in SQL for the rows that are replaced.
    """

    table: LakeTable
    file: TableFile
    size: str
    replaced: str

    def run(self) -> Iterator[tuple[Any, RollupPart, str]]:
        """As of `RollupTask`; the rows count for no class."""
        day = str(self.file.date)
        with closing(executor_connection()) as connection, duckdb_errors(self.table.url):
            connection.register("qmf_stored", self.table.dataset([self.file]))
            columns = ", ".join(quoted(name) for name in ROLLUP_COLUMNS)
            connection.execute(
                f"create temp table qmf_part as select {columns} from "
                f"(select * replace ({text(self.size)} as size, {text(day)} as {DATE}) from qmf_stored) "
                f"where not coalesce({self.replaced}, false)"
            )
            if connection.execute("select 1 from qmf_part limit 1").fetchall():
                yield connection, RollupPart("", "", self.size, day), "qmf_part"


#: What an executor does for the table of roll-ups.
Task = RollupTask | WindowTask | KeptRows


def make_tasks(
    lake: str,
    sources: Iterable[ClassSource],
    sizes: Sequence[str],
    *,
    continued: bool,
    first: str | None = None,
    last: str | None = None,
    zone: Zone = UTC,
) -> list[RollupTask]:
    """The pieces of the roll-up of some days, see `RollupTask`."""
    tasks = []
    for source in sources:
        for day in source.zone_days(zone, first, last) if source.members else ():
            start, end = zone.start_ns(day), zone.end_ns(day)
            oldest = utc_day(start - LOOK_BACK_DAYS * NS_PER_DAY)
            days = {date: source.days[date] for date in source.between(oldest, utc_day(end - 1))}
            own = source.of_times(start, end)
            if not own.days:
                continue
            parts = -(-own.samples(None, None) // TASK_SAMPLES)
            for part in range(max(parts, 1)):
                where = f"hash(_object) % {parts} = {part}" if parts > 1 else ""
                tasks.append(
                    RollupTask(
                        lake,
                        attrs.evolve(source, days=days, where=where),
                        day,
                        tuple(sizes),
                        continued,
                        zone,
                    )
                )
    return tasks


def written_files(spark: SparkSession, tasks: Sequence[Task], table: LakeTable) -> list[Any]:
    """Run tasks, each of which writes its files into the folder of a table; returns `WRITTEN` of each file."""

    def work(task: Task) -> Iterator[Any]:
        for connection, part, rows in task.run():
            yield from _write(connection, rows, table, part)

    return run_tasks(spark, tasks, work, WRITTEN).collect()


def _write(connection: Any, rows: str, table: LakeTable, part: RollupPart) -> Iterator[Any]:
    """Write rows into files, and say what is in them."""
    delta, pa = import_deltalake(), import_pyarrow()
    store = table.store()
    with tempfile.TemporaryDirectory(prefix="qmf-rollup-") as folder:
        # The library's writer makes the statistics, which only it brings to the form that its readers want.
        delta.write_deltalake(
            folder,
            connection.sql(f"from {rows}").to_arrow_table(),
            configuration=table.configuration,
            writer_properties=delta.WriterProperties(compression="ZSTD", max_row_group_size=GROUP_ROWS),
        )
        for added in _added(Path(folder)):
            # A name of its own for each attempt: what an attempt that failed has written is never committed.
            path = f"size={part.size}/{DATE}={part.day}/part-{uuid.uuid4()}.zstd.parquet"
            store.create_dir(path.rpartition("/")[0], recursive=True)
            with Path(folder, added["path"]).open("rb") as source, store.open_output_stream(path) as target:
                shutil.copyfileobj(source, target, _COPIED_BYTES)
            values = {
                "package": part.package,
                "class": part.name,
                "size": part.size,
                DATE: part.day,
                "path": path,
                "bytes": added["size"],
                "rows": json.loads(added["stats"])["numRecords"],
                "stats": added["stats"],
            }
            yield pa.RecordBatch.from_pylist([values])


def _added(folder: Path) -> Iterator[Mapping[str, Any]]:
    """The files that the only commit of a table added, in the words of the Delta protocol."""
    for line in (folder / LOG / f"{0:020}.json").read_text().splitlines():
        action = json.loads(line)
        if "add" in action:
            yield action["add"]


def add_actions(files: Iterable[Any]) -> list[Any]:
    """Written files as the library commits them."""
    from deltalake.transaction import AddAction

    now = int(time.time() * 1000)
    return [
        AddAction(file["path"], file["bytes"], {"size": file["size"], DATE: file[DATE]}, now, True, file["stats"])
        for file in files
    ]
