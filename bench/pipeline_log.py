"""How large is the log of a table that gets a few rows every ten seconds, for a day?

Commits two samples of a processor at a time, as the recorder does where a stream follows the table, which combines
small files; then as it does with a quiet table, whose rows wait for each other; beside it the same rows with the
library's own settings and a checkpoint every 25 commits. Prints bytes of the log and of the rows (of the last version,
in large files) after the day, and of the log after `vacuum` without a time of grace; and what 20 tables write in a day,
one of which is committed each ten seconds (computed from the growth with each commit).

    python bench/pipeline_log.py [--commits N]

The commits of a day are made in some minutes. So that checkpoints are as large as in a day, files that were taken out
are kept in them for a shorter time. Nothing is old enough to be removed by the log's retention meanwhile: later, the
log has the size of 30 hours, whatever comes.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake

from qmf.models.host.schema import CPU
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import DATE, ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.maintenance import vacuum
from qmf.pipeline.maintenance.optimizing import optimize_lake
from qmf.pipeline.record.buffers import RowBuffers, RowConverter
from qmf.pipeline.record.lake_writer import SMALL_FILES, LakeWriter
from qmf.pipeline.record.quiet_tables import QuietTables
from qmf.pipeline.runners.process import ProcessRunner

DAY_COMMITS = 8640
INTERVAL = 10 * 10**9
START = 1_900_000_000 * 10**9
RUN = "00000000000000000001_1"
VERSION = ClassVersion.from_schema(CPU)


def rows(number: int) -> RowBuffers:
    """The rows of a commit."""
    buffers, converter = RowBuffers(), RowConverter(VERSION)
    time_ns = START + number * INTERVAL
    for processor in range(2):
        values: dict[str, object] = {"cpuId": processor, "userTime": number * 7, "idleTime": number * 3}
        common = (RUN, 2 * number + processor + 1, time_ns // 1000, time_ns, time_ns, "qmf:host:box", 1)
        own = (f"cpu{processor}", 1, 0, 0, False, True)
        buffers.add(RowKind.OBJECTS, VERSION, time_ns, (*common, *own, *converter.cells(values, statistics=True)))
    return buffers


def add_schema(lake: DeltaLake) -> None:
    """The class, without which a lake does not have its table."""
    buffers = RowBuffers()
    own = (VERSION.package, VERSION.name, VERSION.hash, False, VERSION.to_json(), "", None)
    buffers.add(RowKind.SCHEMAS, None, 0, (RUN, 0, 0, 0, 0, None, None, *own))
    LakeWriter(lake, "schemas").commit(1, buffers.take())


def record(lake: DeltaLake, commits: int) -> None:
    """As the recorder does."""
    writer = LakeWriter(lake, "recorder")
    started = time.perf_counter()
    for number in range(commits):
        writer.commit(number + 1, rows(number).take())
        writer.combine()
        if number == SMALL_FILES // 2:
            # An hour of the day that is simulated.
            hour = max(1, round((time.perf_counter() - started) / number * DAY_COMMITS / 24))
            kept = {"delta.deletedFileRetentionDuration": f"interval {hour} seconds"}
            for item in writer.tables(rows(0).take()):
                lake.table(item).delta().alter.set_table_properties(kept)


def record_quietly(lake: DeltaLake, commits: int) -> None:
    """As the recorder does with a table that nobody follows, for a whole day: it costs little."""
    now = 0.0
    writer, quiet = LakeWriter(lake, "recorder"), QuietTables(clock=lambda: now)
    for number in range(max(commits, DAY_COMMITS)):
        now = number * INTERVAL / 1e9
        tables = writer.tables(rows(number).take())
        quiet.add(number + 1, tables, followed=frozenset(), all_due=False)
        if quiet.due:
            writer.write(number + 1, quiet.due)
            quiet.on_committed()
            writer.combine()


def record_plainly(lake: DeltaLake, commits: int) -> None:
    """The same rows with the library's settings."""
    writer = LakeWriter(lake, "recorder")
    for number in range(commits):
        ((path, arrow),) = writer.tables(rows(number).take()).items()
        url = f"{lake.url}/{path}"
        if number % 25 == 0:
            table: Any = deltalake.DeltaTable(url) if number else url
        deltalake.write_deltalake(
            table,
            arrow,
            mode="append",
            partition_by=[DATE],
            configuration=None if number else {"delta.checkpointInterval": "25"},
            writer_properties=deltalake.WriterProperties(compression="ZSTD"),
            commit_properties=deltalake.CommitProperties(
                app_transactions=[deltalake.Transaction("recorder", number + 1)]
            ),
            post_commithook_properties=deltalake.PostCommitHookProperties(cleanup_expired_logs=False),
        )
        if number % SMALL_FILES == SMALL_FILES - 1:
            deltalake.DeltaTable(url).optimize.compact()


def log_size(lake: DeltaLake) -> int:
    """Bytes of the log of the table."""
    (log,) = Path(lake.url, "objects").rglob("_delta_log")
    return sum(file.stat().st_size for file in log.iterdir())


def measure(name: str, commit: Callable[[DeltaLake, int], None], commits: int) -> float:
    """Record, and print the sizes; returns the bytes of the log."""
    with tempfile.TemporaryDirectory() as folder:
        lake = DeltaLake(folder)
        lake.create()
        add_schema(lake)
        started = time.perf_counter()
        commit(lake, commits)
        seconds, day = time.perf_counter() - started, log_size(lake)
        (log,) = Path(lake.url, "objects").rglob("_delta_log")
        path = log.parent.relative_to(lake.url).as_posix()
        table = lake.table(path)
        optimize_lake(ProcessRunner(), lake)
        data = sum(file.size for file in table.snapshot().files)
        vacuum(lake, grace_days=0)
        print(
            f"{name}: log {day / 1e6:.1f} MB, rows {data / 1e6:.2f} MB, {day / data:.0f} bytes of log per byte; "
            f"log after vacuum {log_size(lake) / 1e6:.3f} MB; {1000 * seconds / commits:.0f} ms a commit",
            flush=True,
        )
        return day


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--commits", type=int, default=DAY_COMMITS, metavar="N", help="default: %(default)s, a day")
    options = parser.parse_args()
    followed = measure("recorder", record, options.commits) * DAY_COMMITS / options.commits
    quiet = measure("recorder, a quiet table for a day", record_quietly, options.commits)
    measure("the library's settings", record_plainly, options.commits)
    print(
        f"20 tables in a day, computed: {(followed + 19 * quiet) / 1e6:.0f} MB; "
        f"each committed every ten seconds {20 * followed / 1e6:.0f} MB"
    )


if __name__ == "__main__":
    main()
