"""The job as a stream: step by step as the lake grows, each step exactly once.

Why no Spark streaming query: rules join several tables, of which some are silent for days, so that watermarks of theirs
would stand still; absence must be noticed when nothing comes at all; and a file of rules may change between two starts,
which a checkpoint forbids. So the lake's log is the source, a step is the very pass that a batch makes, over the time
that became complete, and the machines' states lie between the steps as a table.
"""

from __future__ import annotations

import fcntl
import time
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from typing import IO, Any

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.correlate.batch import PAUSES, CorrelateOptions
from qmf.pipeline.correlate.detectors import DetectorContext
from qmf.pipeline.correlate.evaluation import OUT_STATE, EvaluationCounts, EvaluationPass
from qmf.pipeline.correlate.event_time import ConnectionChange, merged_runs, outages
from qmf.pipeline.correlate.signals import InputTable, ReadPlan, SignalBuilder, plan, with_counters
from qmf.pipeline.correlate.spark_evaluation import results, states
from qmf.pipeline.correlate.table import RESULT_SCHEMA, StreamProgress, StreamTable
from qmf.pipeline.errors import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import LOG, RECORDED_FILES, LakePartition
from qmf.pipeline.lake.transaction_log import LogEntry, entry_name
from qmf.pipeline.spark import catalog

#: Files that one step reads at most: what bounds its memory.
DEFAULT_FILES = 1000

#: Runs of recorders, and losses of their connections, that are remembered.
_RUNS = 1000


@attrs.frozen
class StepResult:
    """What a step did.

    Attributes:
        number: of the step.
        alerts: rows of the table, by time.
        counts: of the signals.
        horizon: everything before this time was looked at.
        seconds: that it took.
    """

    number: int
    alerts: Sequence[Alert]
    counts: EvaluationCounts
    horizon: int
    seconds: float


class CorrelationStream:
    """Follows one lake; one process at a time for each `out`."""

    def __init__(
        self,
        spark: SparkSession,
        options: CorrelateOptions,
        print_line: Callable[[str], None],
        *,
        clock: Callable[[], int] = time.time_ns,
        files: int = DEFAULT_FILES,
    ) -> None:
        """Take up the state that is there.

        Args:
            spark: to run on.
            options: what; days don't count.
            say: told of classes that rules look at and the lake doesn't know.
            clock: ns since 1970.
            files: most files in one step.

        Raises:
            LakeError: the file system refused, or another process follows into this folder.
            PipelineError: the lake or `out` are no folders.
        """
        self._spark = spark
        self._options = options
        self._say = print_line
        self._clock = clock
        self._files = files
        self._lake = Lake(catalog.local_path(options.lake))
        self._hashes = [rule.hash for rule in options.rules]
        self.table = StreamTable(catalog.local_path(options.out) / "stream")
        self._lock = _lock(self.table.root)
        self._progress = self.table.open()
        self._is_first = True
        self._told: set[str] = set()
        self._signals: SignalBuilder | None = None

    @property
    def progress(self) -> StreamProgress:
        """How far it came."""
        return self._progress

    def close(self) -> None:
        """Let others follow into the folder."""
        self._lock.close()

    def step(self) -> StepResult | None:
        """Look at what became complete.

        Returns:
            what was done, or None where there was nothing to do.

        Raises:
            RuleError: a rule doesn't fit its class.
            LakeError: files were swept away before they were read; the file system refused.
        """
        started = time.monotonic()
        before = self._progress
        fresh, behind = self._fresh(before.entry)
        after = self._arrived(before, fresh, idle=not behind)
        signals = self._known(fresh)
        what = signals.plan
        old = list(self._entries(before.pending)) if what.uses else []
        if not self._is_due(what, old, fresh, after):
            self._progress = after
            return None
        span = EvaluationPass(
            begin=before.begin, end=after.begin, keep=True, context=DetectorContext(outages(after.runs, after.pauses))
        )
        parts = [part.where(F.col("at") >= before.begin) for part in self._parts(signals, old)]
        parts += self._parts(signals, fresh)
        if before.folder is not None and self.table.has(before.folder, OUT_STATE):
            parts.append(states(self._state(before.folder), self._hashes))
        found = results(self._spark, parts, with_counters(self._options.rules, what), self._hashes, span)
        number = before.step + 1
        writer = found.write.mode("overwrite").option("partitionOverwriteMode", "static").partitionBy("out")
        writer.parquet(self.table.state_path(str(number)))
        alerts, count = self.table.write(number)
        self._progress = attrs.evolve(after, step=number, folder=str(number), due=count.due)
        self.table.commit(self._progress)
        return StepResult(number, alerts, count, after.begin, time.monotonic() - started)

    def behind(self) -> bool:
        """There are entries of the log that were not read."""
        return self._lake.last_entry() > self._progress.entry

    # -- what there is to do

    def _fresh(self, after: int) -> tuple[list[LogEntry], bool]:
        """New entries, as many as fit one step, and whether there are more."""
        taken: list[LogEntry] = []
        files, last = 0, self._lake.last_entry()
        if not after and (base := self._lake.last_checkpoint()):
            return [LogEntry(base, self._lake.checkpoint_files(base))], base < last
        for entry in self._lake.entries(after, last):
            files += len(entry.added)
            if taken and files > self._files:
                break
            taken.append(entry)
        return taken, bool(taken) and taken[-1].number < last

    def _entries(self, numbers: dict[int, int]) -> Iterator[LogEntry]:
        for number in sorted(numbers):
            if number == self._progress.base:
                yield LogEntry(number, self._lake.checkpoint_files(number))
            else:
                yield from self._lake.entries(number - 1, number)

    def _arrived(self, before: StreamProgress, fresh: Sequence[LogEntry], *, idle: bool) -> StreamProgress:
        """How far time has come with some entries."""
        runs, pauses, pending = dict(before.runs), list(before.pauses), dict(before.pending)
        base, lag = before.base, before.lag
        if fresh and not before.entry and self._lake.last_checkpoint() == fresh[0].number:
            base = fresh[0].number
        for entry in fresh:
            if entry.moved:
                continue
            own, paused = self._look(entry)
            runs = merged_runs(runs, own)
            pauses += paused
            if own:
                pending[entry.number] = max(last for _, last in own.values())
                lag = max(0, self._committed(entry) - min(first for first, _ in own.values()))
        newest = max((last for _, last in runs.values()), default=0)
        last = newest
        if idle and not fresh and runs and self._is_recording():
            # Nothing comes because there is nothing: time goes on all the same.
            run = max(runs, key=lambda name: runs[name][1])
            newest = last = max(last, self._clock() - lag)
            runs[run] = (runs[run][0], last)
        begin = max(before.begin, last - self._options.late)
        latest = sorted(runs, key=lambda name: runs[name][1])[-_RUNS:]
        return attrs.evolve(
            before,
            entry=fresh[-1].number if fresh else before.entry,
            base=base,
            lag=lag,
            begin=begin,
            pending={number: last for number, last in pending.items() if last >= begin},
            runs={run: runs[run] for run in latest},
            pauses=tuple(pause for pause in pauses[-2 * _RUNS :] if pause.run in latest),
        )

    def _is_due(
        self, what: ReadPlan, old: Sequence[LogEntry], fresh: Sequence[LogEntry], after: StreamProgress
    ) -> bool:
        before = self._progress
        if self._is_first:
            self._is_first = False
            if before.folder is not None:
                return True  # rules may be others than before
        if any(self._paths(read, what, fresh) for read in what.uses):
            return True
        passed = after.begin > before.begin
        return passed and (before.due < after.begin or any(self._paths(read, what, old) for read in what.uses))

    def _known(self, fresh: Sequence[LogEntry]) -> SignalBuilder:
        """What to read; found out anew when the lake learns of a class."""
        news = any(path.startswith(f"{RowKind.SCHEMAS.value}/") for entry in fresh for path in entry.added)
        if self._signals is None or news:
            try:
                known = catalog.class_versions(str(self._lake.root))
            except LakeError:
                known = []  # it is not there yet, or nothing is in it
            self._signals = SignalBuilder(plan(self._options.rules, known, self._options.file), self._options.late)
            for text in self._signals.plan.missing:
                if text not in self._told:
                    self._told.add(text)
                    self._say(text)
        return self._signals

    # -- the lake

    def _look(self, entry: LogEntry) -> tuple[dict[str, tuple[int, int]], list[ConnectionChange]]:
        """First and last arrival of an entry's runs, and what its gaps tell."""
        runs: dict[str, tuple[int, int]] = {}
        pauses: list[ConnectionChange] = []
        for path in entry.added:
            if path.startswith(f"{RowKind.SCHEMAS.value}/"):
                continue
            file = import_pyarrow().parquet.ParquetFile(self._lake.find(path))
            runs = merged_runs(runs, _runs(path, file))
            if path.startswith(f"{RowKind.GAPS.value}/"):
                for row in file.read(["reason", "_received_ns", "_run"]).to_pylist():
                    if row["reason"] in PAUSES:
                        pauses.append(ConnectionChange(row["_run"], row["_received_ns"], PAUSES[row["reason"]]))
        return runs, pauses

    def _committed(self, entry: LogEntry) -> int:
        """When an entry was made."""
        path = self._lake.root / LOG / entry_name(entry.number)
        return path.stat().st_mtime_ns if path.exists() else 0

    def _is_recording(self) -> bool:
        """A recorder holds its lock."""
        for path in self._lake.root.glob("_lock_*"):
            if path.name == "_lock_upkeep":
                continue
            try:
                with path.open(encoding="utf-8") as file:
                    fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
            except OSError as error:
                raise LakeError(f"{path}: {error.strerror or error}") from error
        return False

    def _paths(self, read: InputTable, what: ReadPlan, entries: Sequence[LogEntry]) -> list[str]:
        kind = RowKind(read.kind)
        of = what.tables[read]
        folders = tuple(f"{LakePartition(kind, t.package, t.name, t.hash, '').folder}/" for t in of) or (
            f"{kind.value}/",
        )
        return [path for entry in entries if not entry.moved for path in entry.added if path.startswith(folders)]

    def _parts(self, signals: SignalBuilder, entries: Sequence[LogEntry]) -> list[DataFrame]:
        parts = []
        what = signals.plan
        for read in what.uses:
            paths = [str(self._lake.find(path)) for path in self._paths(read, what, entries)]
            if paths:
                schema = catalog.kind_schema(RowKind(read.kind), what.tables[read])
                parts.append(signals.of(self._spark.read.schema(schema).parquet(*paths), read))
        return parts

    def _state(self, folder: str) -> DataFrame:
        return self._spark.read.schema(RESULT_SCHEMA).parquet(f"{self.table.state_path(folder)}/out={OUT_STATE}")


def _lock(root: Path) -> IO[str]:
    """Keep others out of a folder until the file is closed; a killed process lets go by itself."""
    try:
        root.mkdir(parents=True, exist_ok=True)
        file = (root / "_lock").open("a", encoding="utf-8")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise
    except BlockingIOError:
        raise LakeError(f"{root}: another process follows into this folder") from None
    except OSError as error:
        raise LakeError(f"{root}: {error.strerror or error}") from error
    return file


def _runs(path: str, file: Any) -> dict[str, tuple[int, int]]:
    """First and last arrival of each run in a file: from its statistics, unless it was joined of several files."""
    if not fnmatch(Path(path).name, RECORDED_FILES):
        rows = file.read(["_run", "_received_ns"]).group_by("_run")
        found = rows.aggregate([("_received_ns", "min"), ("_received_ns", "max")]).to_pylist()
        return {row["_run"]: (row["_received_ns_min"], row["_received_ns_max"]) for row in found}
    index = file.schema_arrow.get_field_index("_received_ns")
    groups = [file.metadata.row_group(number).column(index) for number in range(file.metadata.num_row_groups)]
    spans = [(group.statistics.min, group.statistics.max) for group in groups]
    run = Path(path).name.split("-")[1]
    return {run: (min(first for first, _ in spans), max(last for _, last in spans))} if spans else {}
