"""Partial aggregates beside the files of a lake: what a roll-up of an optimised day reads instead of its samples.

`LAKE/_partials` has a Parquet file for each large data file of a class, with a row per object and minute. Data files
never change, and a file that is combined with others gets another name, so a partial is never used for other rows than
it was made of. Only files are worth it in which all samples have all members and came in the order of their times, and
in which no object ends or is created again and no agent starts again: partials of others would depend on the options of
a roll-up. Where one is missing, samples are read.
"""

from __future__ import annotations

import hashlib
import itertools
import os
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from qmf.pipeline.aggregation import rows
from qmf.pipeline.aggregation.members import NumberMember
from qmf.pipeline.aggregation.partials import ENDS, STEP, member_columns, merged
from qmf.pipeline.aggregation.source import ClassSource, class_sources, day_start_ns
from qmf.pipeline.aggregation.statements import ClassSamples, went_back
from qmf.pipeline.aggregation.windows import WINDOWS, sample_windows
from qmf.pipeline.aggregation.zones import WindowGrid
from qmf.pipeline.duckdb_queries import connect, duckdb_errors, parquet_files, text
from qmf.pipeline.lake.days import NS_PER_DAY
from qmf.pipeline.lake.delta_errors import delta_errors
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import is_local
from qmf.pipeline.lake.table_files import TableFile

#: The folder of a lake.
FOLDER = "_partials"

#: The windows of stored partials.
BASE_SECONDS = 60

#: Values of a file that has partials, at least.
LEAST_VALUES = 100_000

_FORMAT = "2"
_KEYS, _WINDOWS = "qmf_stored_keys", "qmf_stored_windows"


def store_partials(lake: DeltaLake) -> int:
    """Make the partials that are missing, and delete those of files that are gone.

    Args:
        lake: in a folder; elsewhere nothing is done.

    Returns:
        the number of files that were made.

    Raises:
        LakeError: a file cannot be read or written.
    """
    if not lake.is_local or not lake.classes():
        return 0
    made = 0
    with closing(connect()) as connection, duckdb_errors(lake.url), delta_errors(f"{lake.url}/{FOLDER}"):
        for source in class_sources(lake.url):
            for table, file in itertools.chain.from_iterable(source.days.values()):
                path = _path(table, file, source.members)
                if path is None or file.rows * len(source.members) < LEAST_VALUES:
                    continue
                if not path.exists() and not _none(path).exists():
                    path.parent.mkdir(parents=True, exist_ok=True)
                    made += _store(connection, source.with_files([(table, file)]), path)
        _delete_orphans(Path(lake.url))
    return made


def stored(source: ClassSource, date: str, seconds: int) -> list[Path] | None:
    """The partials of all samples of a day, from which windows of a size can be made; None where there are not all."""
    files = sorted((item for item in source.days[date]), key=lambda item: item[1].first_ns or 0)
    start = day_start_ns(date)
    if seconds % BASE_SECONDS or source.where or not source.members:
        return None
    if any(row.first_ns < start + NS_PER_DAY and row.end_ns > start for row in source.left_out):
        return None
    for (_, one), (_, two) in itertools.pairwise(files):
        if one.last_ns is None or two.first_ns is None or one.last_ns >= two.first_ns:
            return None
    paths = [_path(table, file, source.members) for table, file in files]
    found = [path for path in paths if path is not None and path.exists()]
    return found if found and len(found) == len(paths) else None


@contextmanager
def merged_rows(
    connection: Any,
    paths: Sequence[Path],
    source: ClassSource,
    grid: WindowGrid,
    carried: str | None,
    *,
    continued: bool,
) -> Iterator[str]:
    """The rows of the table of roll-ups from stored partials, as SQL within the block; arguments as of `rolled_up`."""
    samples = ClassSamples("", source.members, grid, continued, _KEYS)
    files = parquet_files([str(path) for path in paths])
    try:
        connection.execute(
            f"create temp table {_KEYS} as select *, cast(dense_rank() over (order by _agent, _object) as integer) "
            f"as _series from (select distinct _agent, _object from {files})"
        )
        columns = ", ".join(f"cast({name} as {type}) as {name}" for name, type in _columns(samples).items())
        partials = (
            f"(select _series, 0 as {STEP}, {columns} from {files} as p join {_KEYS} as k "
            "on p._object = k._object and p._agent is not distinct from k._agent)"
        )
        connection.execute(f"create temp table {_WINDOWS} as {merged(samples, partials)}")
        yield rows.rows(samples, source.package, source.name, _WINDOWS, carried)
    finally:
        for table in (_KEYS, _WINDOWS):
            connection.execute(f"drop table if exists {table}")


def _store(connection: Any, source: ClassSource, path: Path) -> bool:
    """Make the partials of a file; False where they are not worth it, which is noted."""
    with sample_windows(
        connection,
        source.sql(connection, list(source.days)),
        source.members,
        seconds=BASE_SECONDS,
        continued=False,
    ) as samples:
        if samples is None or samples.sparse or not samples.steady or _is_disordered(connection, samples):
            _none(path).touch()
            return False
        # Parquet has no integers of 128 bits.
        columns = ", ".join(
            f"cast({name} as decimal(38, 0)) as {name}" if type == "hugeint" else name
            for name, type in _columns(samples).items()
        )
        begun = path.with_name(f"{path.name}.{os.getpid()}.begun")
        connection.execute(
            f"copy (select _agent, _object, {columns} from {WINDOWS} join "
            f"(select distinct _series, _agent, _object from {samples.keys}) using (_series) "
            f"order by _object, first_ns) to {text(str(begun))} (format parquet, compression zstd)"
        )
        begun.replace(path)
        return True


def _is_disordered(connection: Any, samples: ClassSamples) -> bool:
    """True if some counters' samples arrived in another order than by their times."""
    where = went_back(samples) if samples.counters else "false"
    return bool(connection.execute(f"select 1 from {WINDOWS} where {where} limit 1").fetchall())


def _columns(samples: ClassSamples) -> dict[str, str]:
    """The columns of partials of a class, with their types in SQL."""
    found = dict(ENDS)
    for number in range(len(samples.members)):
        found |= member_columns(samples, number)
    return found


def _path(table: LakeTable, file: TableFile, members: Sequence[NumberMember]) -> Path | None:
    """Where the partials of a file are; None where there can't be any."""
    root, objects, name = table.url.rpartition("/objects/")
    if not is_local(table.url) or not objects:
        return None
    # Columns have the numbers of members, which another version of the class may change.
    mark = hashlib.sha256(repr((_FORMAT, BASE_SECONDS, list(members))).encode()).hexdigest()[:16]
    return Path(root, FOLDER, "objects", name, f"{Path(file.path).stem}.{mark}.parquet")


def _none(path: Path) -> Path:
    """The file that says that a file's partials are not worth it."""
    return path.with_suffix(".none")


def _delete_orphans(root: Path) -> None:
    """Delete the partials of files that are gone, and what a killed process has begun."""
    for folder in {path.parent for path in (root / FOLDER).rglob("*") if path.is_file()}:
        table = root / folder.relative_to(root / FOLDER)
        names = {path.stem for path in table.rglob("*.parquet")}
        for path in folder.iterdir():
            if path.suffix == ".begun" or path.name.rsplit(".", 2)[0] not in names:
                path.unlink(missing_ok=True)
