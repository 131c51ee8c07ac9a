"""The roll-up of a class that has more samples in a day than a task should read: its objects are divided.

A map reads samples of files, each file once; they are brought together by object; a reduce rolls up the days of its
objects in their order. It knows no runner.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import attrs

from qmf.pipeline.duckdb_queries import quote_name
from qmf.pipeline.lake.arrow import arrow_schema, import_pyarrow
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.rollup.rows import LOOK_BACK_DAYS
from qmf.pipeline.rollup.source import ClassSource, sample_columns
from qmf.pipeline.rollup.tables import RollupOptions, rollup_schema
from qmf.pipeline.rollup.tasks import ClassTask
from qmf.pipeline.rollup.zones import Zone
from qmf.pipeline.runners.runner import Rows, Runner, conformed_batches, duckdb_batches

_SAMPLES = "qmf_share"

#: By what samples are brought together.
_OBJECT = ("_agent", "_object")


@attrs.frozen
class ShareSource(ClassSource):
    """The samples of some objects of a class, in a table of the connection."""

    def of_day(self, zone: Zone, day: str) -> ClassSource:
        """As of `ClassSource`."""
        return self.of_times(zone.start_ns(day), zone.end_ns(day))

    def _sql(self, connection: Any, days: Sequence[str]) -> str:  # noqa: ARG002
        return _SAMPLES


@attrs.frozen
class SampleFiles:
    """Files of samples.

    Attributes:
        source: the files, and which of their rows are wanted.
        ends: only the last sample of each object and member is wanted.
    """

    source: ClassSource
    ends: bool = False

    def rows(self, connection: Any) -> Iterator[Any]:
        """The samples as record batches.

        Raises:
            LakeError: a file cannot be read.
        """
        source = self.source
        columns = ", ".join(quote_name(name) for name, _type in sample_columns(source.versions, source.members))
        samples = f"(select {columns} from {source.sql(connection)} where _statistics)"
        if not self.ends:
            yield from duckdb_batches(connection, f"from {samples}")
            return
        connection.execute(f"create or replace temp table {_SAMPLES} as from {samples}")
        last = "qualify row_number() over (partition by _agent, _object order by _ts_ns desc, _run desc, _seq desc) = 1"
        each = [
            f"(from {_SAMPLES} where {quote_name(member.value)} is not null {last})"
            for member in source.members
            if member.linked
        ]
        yield from duckdb_batches(connection, f"select distinct * from ({' union all '.join(each)})")


def divided_rows(runner: Runner, options: RollupOptions, source: ClassSource, limit: int) -> Rows:
    """The rows of a class.

    Args:
        runner: where to run.
        options: of the roll-up.
        source: of the class; it has members, and samples on the days of the roll-up.
        limit: samples of a task, about.
    """
    zone = options.zone
    days = source.zone_days(zone, options.first, options.last)
    start, end = zone.start_ns(days[0]), zone.end_ns(days[-1])
    tasks = [SampleFiles(part) for part in _portions(source.of_times(start, end), limit)]
    if any(member.linked for member in source.members):
        earlier = source.of_times(start - LOOK_BACK_DAYS * NS_PER_DAY, start)
        tasks += [SampleFiles(part, ends=True) for part in _portions(earlier, limit)]
    # The days alone, not their files, which the reduce does not read.
    known = {date: [_any_file(*source.days[date][0])] for date in source.days if source.days[date]}
    own = ShareSource(source.versions, source.members, known)
    schema = arrow_schema(sample_columns(source.versions, source.members))
    samples = runner.map(tasks, file_samples, schema)
    return samples.reduce(_OBJECT, partial(_share_rows, ClassTask(options, own, tuple(days))), rollup_schema())


def file_samples(connection: Any, task: SampleFiles) -> Iterator[Any]:
    """The map: the samples of some files."""
    return task.rows(connection)


def _share_rows(task: ClassTask, connection: Any, batches: Iterator[Any]) -> Iterator[Any]:
    """The reduce: the rows of some objects."""
    schema = arrow_schema(sample_columns(task.source.versions, task.source.members))
    reader = import_pyarrow().RecordBatchReader.from_batches(schema, conformed_batches(batches, schema))
    connection.register("qmf_samples", reader)
    connection.execute(f"create or replace temp table {_SAMPLES} as from qmf_samples")
    connection.unregister("qmf_samples")
    yield from task.rows(connection)


def _portions(source: ClassSource, limit: int) -> Iterator[ClassSource]:
    """Parts of the files of a source, of about so many samples."""
    chosen: list[tuple[LakeTable, TableFile]] = []
    count = 0
    for date in sorted(source.days):
        for table, file in source.days[date]:
            chosen.append((table, file))
            count += file.rows
            if count >= limit:
                yield source.with_files(chosen, source.left_out)
                chosen, count = [], 0
    if chosen:
        yield source.with_files(chosen, source.left_out)


def _any_file(table: LakeTable, file: TableFile) -> tuple[LakeTable, TableFile]:
    """A file with samples of any time of its day."""
    return table, attrs.evolve(file, rows=0, first_ns=None, last_ns=None)
