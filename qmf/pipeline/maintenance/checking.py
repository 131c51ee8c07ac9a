"""Checking a lake: what is damaged or missing, by the name of its file, and repairing what can be."""

from __future__ import annotations

import datetime
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from qmf.pipeline.duckdb_queries import duckdb_errors
from qmf.pipeline.errors import LakeError, import_extra
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_table, columns_of, import_pyarrow, with_text
from qmf.pipeline.lake.columns import DATE, some_columns
from qmf.pipeline.lake.days import day
from qmf.pipeline.lake.delta_errors import delta_errors
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_versions import batches_of_recorders
from qmf.pipeline.lake.location import JOB_TABLES, is_local
from qmf.pipeline.lake.maintenance import RETAIN, Finding
from qmf.pipeline.lake.row_source import RowSource
from qmf.pipeline.lake.runs import RecordedRuns
from qmf.pipeline.lake.table_files import FilesByTable, TableFile, file_system
from qmf.pipeline.lake.table_log import LOG, LogFile, damaged_log_files
from qmf.pipeline.lake.waiting import ENDED_NS, ReaderNote, Share, recorded_shares
from qmf.pipeline.runners.runner import Runner, duckdb_batches

#: Seconds that a check waits for recorders that are committing, and from one look to the next.
WAIT_LIMIT, _POLL_INTERVAL = 10.0, 0.02

#: A recorder whose last heartbeat is older than this, in ns, has ended.
_RECENT = 60 * 10**9

#: Numbers of rows of a run that are counted together.
_NUMBERS = 10_000_000

#: Where repairing puts what it takes out of tables.
DAMAGED = "_damaged"

#: The writer's name of repairs.
WRITER = "check"


class LakeCheck:
    """One check of a lake. Repairs need that no recorder runs."""

    def __init__(self, runner: Runner, lake: DeltaLake, *, repair: bool = False, now_ns: int | None = None) -> None:
        """Name a lake; nothing is read yet. A runner reads the files, repairs are made here; None is now."""
        self._runner = runner
        self._lake = lake
        self._repair = repair
        self._now_ns = time.time_ns() if now_ns is None else now_ns
        self._gaps: list[tuple[str, int]] = []
        self._damaged_urls: set[str] = set()

    def findings(self) -> Iterator[Finding]:
        """All findings, each after it was repaired."""
        damaged: list[str] = []
        roots = [*(kind.value for kind in RowKind), JOB_TABLES]
        folders = self._lake.table_folders(roots)
        urls = [f"{self._lake.url}/{path}" for path in folders]
        logs = self._runner.each(urls, partial(damaged_log_files, options=self._lake.options))
        for path, files in zip(folders, logs, strict=True):
            for finding in self._check_log(path, files):
                yield finding
                damaged.append(path)
        readable, unreadable = [], []
        for path in self._lake.table_folders(roots):
            try:
                self._lake.table(path).version()
                readable.append(path)
            except LakeError as error:
                unreadable.append(path)
                if path not in damaged or self._repair:
                    yield Finding(f"{self._lake.url}/{path}", f"cannot be read: {error}")
        for path in readable:
            if path in damaged and self._repair:
                yield from self._restore(path)
        yield from self._check_files(readable)
        if not unreadable:
            yield from self._check_classes()
            yield from self._check_numbers(self._lake.paths())
            yield from self._check_runs()
        yield from self._check_shares()
        self._write_gaps()

    # -- logs

    def _check_log(self, path: str, files: Sequence[LogFile]) -> Iterator[Finding]:
        url = f"{self._lake.url}/{path}"
        for file in files:
            done = self._repair_log_file(path, file) if self._repair else ""
            yield Finding(f"{url}/{file.path}", f"damaged: {file.damage}", done)

    def _repair_log_file(self, path: str, file: LogFile) -> str:
        self._set_aside(path, file.path)
        store = file_system(f"{self._lake.url}/{path}", self._lake.options)
        with delta_errors(f"{self._lake.url}/{path}/{file.path}"):
            if file.is_checkpoint:
                if store.get_file_info(f"{LOG}/_last_checkpoint").is_file:
                    store.delete_file(f"{LOG}/_last_checkpoint")
                return f"moved to {DAMAGED}; the entries before it are read instead"
            if not file.version:
                return f"moved to {DAMAGED}; the table cannot be restored without it"
            # What comes after it needs an entry of this number; what it said is found again by `_restore`.
            empty = {"commitInfo": {"timestamp": self._now_ns // 1_000_000, "operation": "REPAIR"}}
            with store.open_output_stream(f"{LOG}/{file.path.rpartition('/')[2]}") as stream:
                stream.write(json.dumps(empty).encode())
        return f"moved to {DAMAGED}, an entry without changes is in its place"

    def _set_aside(self, path: str, inside: str) -> None:
        store = file_system(self._lake.url, self._lake.options)
        source, target = f"{path}/{inside}", f"{DAMAGED}/{path}/{inside}"
        with delta_errors(f"{self._lake.url}/{source}"):
            if is_local(self._lake.url):
                Path(self._lake.url, target).parent.mkdir(parents=True, exist_ok=True)
            store.copy_file(source, target)
            store.delete_file(source)

    def _restore(self, path: str) -> Iterator[Finding]:
        """Commit again the rows of files that no entry of a repaired log has, unless the table has the rows."""
        pa, fs = import_pyarrow(), import_extra("pyarrow.fs")
        table = self._lake.table(path)
        known = {file.path for file in table.snapshot().files}
        store = file_system(table.url, self._lake.options)
        keys, seen = ["_run", "_seq"], None
        with delta_errors(table.url):
            entries = store.get_file_info(fs.FileSelector("", recursive=True))
        for entry in entries:
            inside = entry.path.lstrip("/")
            if entry.type is not fs.FileType.File or not inside.endswith(".parquet") or inside.startswith(LOG):
                continue
            if inside in known:
                continue
            try:
                rows = pa.parquet.ParquetFile(store.open_input_file(inside)).read()
            except (OSError, ValueError):
                continue
            if not set(keys) <= set(rows.column_names):
                continue
            seen = table.dataset(table.snapshot().files).to_table(columns=keys) if seen is None else seen
            lost = rows.join(seen, keys, join_type="left anti").select(rows.column_names)
            if not lost.num_rows:
                continue
            seen = pa.concat_tables([seen, lost.select(keys)])
            partition_by = []
            if inside.startswith(f"{DATE}="):
                lost, partition_by = with_text(lost, DATE, inside[len(DATE) + 1 :].partition("/")[0]), [DATE]
            table.append(lost, writer=WRITER, partition_by=partition_by)
            yield Finding(f"{table.url}/{inside}", "no entry of the log has it", f"{lost.num_rows} rows restored")

    # -- files

    def _check_files(self, paths: Sequence[str]) -> Iterator[Finding]:
        files = {path: self._lake.table(path).snapshot().files for path in paths}
        work = partial(_damaged_files, self._lake)
        found: dict[str, list[tuple[TableFile, str]]] = defaultdict(list)
        for damaged in self._runner.each(self._runner.portions(files), work):
            for path, file, reason in damaged:
                found[path].append((file, reason))
        self._damaged_urls = {file.url for own in found.values() for file, _reason in own}
        for path, own in sorted(found.items()):
            yield from self._take_out(path, own)

    def _take_out(self, path: str, damaged: Sequence[tuple[TableFile, str]]) -> Iterator[Finding]:
        table = self._lake.table(path)
        for file, reason in damaged:
            if self._repair and reason != "missing":
                self._set_aside(path, file.path)
            done = f"taken out of the table, {file.rows} rows are lost" if self._repair else ""
            yield Finding(file.url, reason, done)
        if self._repair:
            table.retry(lambda: table.delta().repair())
            self._gaps += [(f"{path}/{file.path}", file.rows) for file, _reason in damaged]

    # -- rows

    def _check_classes(self) -> Iterator[Finding]:
        for item in self._lake.classes():
            if self._lake.table(item.table).version() is None:
                version = item.version
                text = f"there is no table of {version.package}:{version.name}, whose schema is known"
                yield Finding(f"{self._lake.url}/{item.table}", text, is_damage=False)

    def _check_numbers(self, paths: list[str]) -> Iterator[Finding]:
        """Each run numbers its rows from 1 without a gap, in all tables together, as long as no days are dropped."""
        is_whole = all(self._lake.table(path).last_batch(RETAIN) is None for path in paths)
        numbers = self._numbers(paths)
        ends = {run: last for run, _rows, _distinct, last in numbers}
        committing = False
        if any(distinct < last for _run, _rows, distinct, last in numbers):
            # While the tables were read one by one, recorders committed to them.
            committing = self._await_batches()
            numbers = self._numbers(self._lake.paths(), ends)
        for run, rows, distinct, _last in numbers:
            if distinct < rows:
                yield Finding(f"run {run}", f"{rows - distinct} rows are there more than once")
            missing = ends.get(run, 0) - distinct
            if missing > 0 and is_whole:
                text = "are in no table yet: a recorder is committing" if committing else "are missing"
                yield Finding(f"run {run}", f"{missing} of {missing + distinct} rows {text}", is_damage=not committing)

    def _await_batches(self) -> bool:
        """Wait until the batches that recorders are committing are in all tables; False if all are."""
        if not self._lake.is_local:
            # The states of recorders are elsewhere.
            beats = self._lake.kind_table(RowKind.HEARTBEATS)
            files = () if beats.version() is None else beats.snapshot().files
            return any((file.last_received_ns or 0) > self._now_ns - _RECENT for file in files)
        waiting = batches_of_recorders(self._lake)
        give_up = time.monotonic() + WAIT_LIMIT
        # Recorders commit what is followed, and hold nothing of it back.
        note = ReaderNote(self._lake, "check", time.time_ns)
        note.renew(self._lake.paths())
        try:
            while waiting and time.monotonic() < give_up:
                time.sleep(_POLL_INTERVAL)
                waiting &= batches_of_recorders(self._lake)
        finally:
            note.close()
        return bool(waiting)

    def _numbers(self, paths: list[str], ends: Mapping[str, int] | None = None) -> list[tuple[str, int, int, int]]:
        """For each run the number of its rows, of different numbers of these, and the highest.

        With `ends`, only these runs and their rows up to that number count.
        """
        files = {
            path: [file for file in self._lake.table(path).snapshot().files if file.url not in self._damaged_urls]
            for path in paths
        }
        numbers = partial(_row_numbers, self._lake, None if ends is None else dict(ends))
        rows = self._runner.map(self._runner.portions(files), numbers, _number_schema())
        # A run may have most of the rows of a lake, so that its numbers are counted in parts.
        parts = rows.reduce(["_run", "part"], _counted_numbers, _count_schema())
        found = parts.reduce(["_run"], _summed_counts, _count_schema()).table().to_pylist()
        return sorted((row["_run"], row["rows"], row["numbers"], row["last"]) for row in found)

    def _check_runs(self) -> Iterator[Finding]:
        agents: dict[tuple[str, str], set[str]] = defaultdict(set)
        for row in RecordedRuns(self._lake).left_out_rows():
            agents[row.counted, row.run].add(row.agent)
        for (counted, run), names in sorted(agents.items()):
            text = f"recorded {len(names)} agents at the same time as {counted}, whose rows count there"
            yield Finding(f"run {run}", text, is_damage=False)

    def _check_shares(self) -> Iterator[Finding]:
        """Where recorders divide the agents of a bus, each share needs one that is recording."""
        shares = recorded_shares(self._lake)
        live = {item.share for item in shares if item.time_ns >= self._now_ns - ENDED_NS}
        numbers = sorted({share.count for share in live})
        for share in (Share(number, count) for count in numbers for number in range(1, count + 1)):
            if share in live:
                continue
            had = max((item for item in shares if item.share == share), key=lambda item: item.time_ns, default=None)
            last = "no recorder ever had it" if had is None else f"{had.recorder!r} had it until {_time(had.time_ns)}"
            yield Finding(f"share {share}", f"no recorder is recording the agents of this share: {last}")
        if len(numbers) > 1:
            counts = ", ".join(map(str, numbers))
            yield Finding(self._lake.url, f"recorders divide the agents into different numbers of shares: {counts}")

    # -- writing

    def _write_gaps(self) -> None:
        if not self._gaps:
            return
        columns = columns_of(RowKind.GAPS, None)
        run, now = f"{self._now_ns:020d}_{WRITER}", self._now_ns
        rows = [
            (run, number, now // 1000, now, now, None, None, "damaged", place, count, None)
            for number, (place, count) in enumerate(self._gaps, 1)
        ]
        table = self._lake.kind_table(RowKind.GAPS)
        arrow = with_text(arrow_table(columns, rows), DATE, day(now))
        table.append(arrow, writer=WRITER)


def _time(ns: int) -> str:
    return datetime.datetime.fromtimestamp(ns / 1e9, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


# -- what a runner does, see `qmf.pipeline.runners.runner`


def _damaged_files(lake: DeltaLake, files: FilesByTable) -> list[tuple[str, TableFile, str]]:
    found = []
    for path, own in files.items():
        store = file_system(f"{lake.url}/{path}", lake.options)
        for file in own:
            reason = _damage(store, file)
            if reason is not None:
                found.append((path, file, reason))
    return found


def _damage(store: Any, file: TableFile) -> str | None:
    with delta_errors(file.url):
        info = store.get_file_info(file.path)
    if not info.is_file:
        return "missing"
    if info.size != file.size:
        return f"damaged: {info.size} bytes instead of {file.size}"
    try:
        rows = import_pyarrow().parquet.read_metadata(store.open_input_file(file.path)).num_rows
    except (OSError, ValueError) as error:
        return f"damaged: {str(error).splitlines()[0]}"
    return None if rows == file.rows else f"damaged: {rows} rows instead of {file.rows}"


def _row_numbers(
    lake: DeltaLake, ends: Mapping[str, int] | None, connection: Any, files: FilesByTable
) -> Iterator[Any]:
    """Run and number of each row of some files, up to the highest number of its run that counts."""
    columns = some_columns(RowKind.OBJECTS, "_run", "_seq")
    counted = ""
    if ends is not None:
        connection.execute("create temp table ends (_run varchar, last bigint)")
        for end in ends.items():
            connection.execute("insert into ends values (?, ?)", end)
        counted = " join ends using (_run) where _seq <= last"
    with duckdb_errors(lake.url):
        for path, own in files.items():
            if own:
                rows = RowSource(lake.table(path), tuple(own), columns).sql(connection)
                query = f"select _run, _seq // {_NUMBERS} as part, _seq from {rows}{counted}"
                yield from duckdb_batches(connection, query)


def _counted_numbers(connection: Any, batches: Iterator[Any]) -> Iterator[Any]:
    connection.register("rows", import_pyarrow().RecordBatchReader.from_batches(_number_schema(), batches))
    yield from duckdb_batches(
        connection,
        'select _run, count(*) as "rows", count(distinct _seq) as numbers, max(_seq) as last from rows '
        "group by _run, part",
    )


def _summed_counts(connection: Any, batches: Iterator[Any]) -> Iterator[Any]:
    connection.register("counts", import_pyarrow().RecordBatchReader.from_batches(_count_schema(), batches))
    sums = ", ".join(f'cast(sum("{name}") as bigint) as "{name}"' for name in ("rows", "numbers"))
    yield from duckdb_batches(connection, f"select _run, {sums}, max(last) as last from counts group by _run")


def _number_schema() -> Any:
    pa = import_pyarrow()
    return pa.schema([("_run", pa.string()), ("part", pa.int64()), ("_seq", pa.int64())])


def _count_schema() -> Any:
    pa = import_pyarrow()
    return pa.schema([("_run", pa.string()), *((name, pa.int64()) for name in ("rows", "numbers", "last"))])
