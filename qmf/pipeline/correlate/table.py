"""The table of alerts, and what a stream remembers from step to step.

::

    OUT/batch/*.parquet                    what the last batch found
    OUT/stream/qmf_batch=N/*.parquet       what step N of the stream found, where it found something
    OUT/stream/_state/N/out=.../*.parquet  states of the rules' machines after step N
    OUT/stream/_state/current.json         the last step, and how far it came: replacing this file commits the step

A step that is killed before that is done again, from the state of the step before, and replaces what it had written.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import attrs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from qmf.pipeline.correlate.alerts import Alert, in_order
from qmf.pipeline.correlate.detectors import NEVER
from qmf.pipeline.correlate.evaluation import ALERT, OUT_ALERT, OUT_COUNTS, RESULT, EvaluationCounts
from qmf.pipeline.correlate.event_time import ConnectionChange
from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.spark.sinks import BATCH_COLUMN, read_table

_STATE = "_state"
_CURRENT = "current.json"

_TYPES: dict[str, T.DataType] = {
    "string": T.StringType(),
    "int16": T.ShortType(),
    "int64": T.LongType(),
    "double": T.DoubleType(),
}

#: The schema of what machines give out.
RESULT_SCHEMA = T.StructType([T.StructField(name, _TYPES[kind]) for name, kind in RESULT])


@attrs.frozen(kw_only=True)
class StreamProgress:
    """How far a stream came.

    Attributes:
        step: number of the last step.
        folder: of `_state` that holds the states; None for no state.
        entry: of the lake's log, the last one that was read.
        begin: everything before this time was looked at, ns.
        due: when a state has something to do.
        pending: entries that may hold rows that are not looked at yet, with their last arrival.
        base: the checkpoint of the log that was begun with, which stands for all entries up to its number.
        lag: ns that rows waited for their commit, as the last entry tells.
        runs: first and last arrival of each recorder's run.
        pauses: of the runs' connections.
    """

    step: int = 0
    folder: str | None = None
    entry: int = 0
    begin: int = 0
    due: int = NEVER
    pending: dict[int, int] = attrs.field(factory=dict)
    base: int = 0
    lag: int = 0
    runs: dict[str, tuple[int, int]] = attrs.field(factory=dict)
    pauses: tuple[ConnectionChange, ...] = ()

    def to_json(self) -> str:
        """As text."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def parse(cls, text: str) -> StreamProgress:
        """The way back."""
        content: dict[str, Any] = json.loads(text)
        content["pending"] = {int(key): value for key, value in content["pending"].items()}
        content["runs"] = {key: (value[0], value[1]) for key, value in content["runs"].items()}
        content["pauses"] = tuple(ConnectionChange(**item) for item in content["pauses"])
        return cls(**content)


class StreamTable:
    """The stream's part of the table; for one process at a time."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self) -> StreamProgress:
        """How far the stream came; clears up what a killed step left.

        Raises:
            LakeError: the file system refused.
        """
        try:
            (self.root / _STATE).mkdir(parents=True, exist_ok=True)
            progress = self.progress()
            for path in (self.root / _STATE).iterdir():
                if path.name not in (progress.folder, _CURRENT):
                    _remove(path)
            for number, path in self._steps():
                if number > progress.step:
                    _remove(path)
        except OSError as error:
            raise LakeError(f"{self.root}: {error.strerror or error}") from error
        return progress

    def progress(self) -> StreamProgress:
        """How far the stream came."""
        path = self.root / _STATE / _CURRENT
        return StreamProgress.parse(path.read_text(encoding="utf-8")) if path.exists() else StreamProgress()

    def state_path(self, folder: str) -> str:
        """Where a folder of states is."""
        return str(self.root / _STATE / folder)

    def step_path(self, step: int) -> str:
        """Where the alerts of a step are."""
        return str(self.root / f"{BATCH_COLUMN}={step}")

    def has(self, folder: str, out: str) -> bool:
        """A folder of `_state` has results of a kind."""
        return any(self._results(folder, out))

    def write(self, step: int) -> tuple[list[Alert], EvaluationCounts]:
        """Take the alerts out of a step's results, and write them into the table.

        Returns:
            them, and the counts.

        Raises:
            LakeError: the file system refused.
        """
        names = [name for name, _ in ALERT]
        alerts = in_order(Alert(**row) for row in self._rows(str(step), OUT_ALERT, names))
        told = self._rows(str(step), OUT_COUNTS, ["rows", "misdated", "too_late", "due"])
        counts = EvaluationCounts(
            rows=sum(row["rows"] for row in told),
            misdated=sum(row["misdated"] for row in told),
            too_late=sum(row["too_late"] for row in told),
            due=min((row["due"] for row in told), default=NEVER),
        )
        folder = Path(self.step_path(step))
        try:
            if folder.exists():
                _remove(folder)
            if alerts:
                folder.mkdir()
                import_pyarrow().parquet.write_table(_arrow(alerts), folder / "alerts.parquet")
        except OSError as error:
            raise LakeError(f"{folder}: {error.strerror or error}") from error
        return alerts, counts

    def _results(self, folder: str, out: str) -> Iterator[Path]:
        return (Path(self.state_path(folder)) / f"out={out}").glob("*.parquet")

    def _rows(self, folder: str, out: str, names: list[str]) -> list[dict[str, Any]]:
        files = sorted(self._results(folder, out))
        return [row for path in files for row in import_pyarrow().parquet.ParquetFile(path).read(names).to_pylist()]

    def commit(self, progress: StreamProgress) -> None:
        """Make a step count, and drop the states of the one before.

        Raises:
            LakeError: the file system refused; the step does not count.
        """
        target = self.root / _STATE / _CURRENT
        temporary = target.with_name(f".{_CURRENT}.tmp")
        try:
            before = self.progress().folder
            with temporary.open("w", encoding="utf-8") as file:
                file.write(progress.to_json())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
            if before is not None and before != progress.folder:
                _remove(self.root / _STATE / before)
        except OSError as error:
            raise LakeError(f"{target}: {error.strerror or error}") from error

    def steps(self, after: int) -> list[int]:
        """Steps that found something, in order, beginning behind `after`; committed ones only."""
        last = self.progress().step
        return sorted(number for number, _ in self._steps() if after < number <= last)

    def alerts(self, step: int) -> list[Alert]:
        """What a step found, in order."""
        names = [name for name, _ in ALERT]
        files = sorted(Path(self.step_path(step)).glob("*.parquet"))
        rows = [row for path in files for row in import_pyarrow().parquet.ParquetFile(path).read(names).to_pylist()]
        return in_order(Alert(**row) for row in rows)

    def _steps(self) -> Iterator[tuple[int, Path]]:
        for path in self.root.glob(f"{BATCH_COLUMN}=*"):
            number = path.name.partition("=")[2]
            if number.isdecimal():
                yield int(number), path


def finished(results: DataFrame) -> DataFrame:
    """The table of alerts, of what machines gave out."""
    names = [name for name, _ in ALERT]
    alerts = results.where(F.col("out") == OUT_ALERT)
    times = [F.timestamp_micros(F.expr(f"{name}_ns div 1000")).alias(name) for name in ("began", "at")]
    return alerts.select(*names[:12], *times, *names[12:])


def alerts(spark: SparkSession, out: str, *, by: str = "stream") -> DataFrame | None:
    """The table that a job wrote; None where there is nothing yet.

    Args:
        spark: to read with.
        out: as of the job.
        by: ``batch`` or ``stream``.
    """
    return read_table(spark, f"{out.rstrip('/')}/{by}")


def _arrow(alerts: Sequence[Alert]) -> Any:
    """What `finished` gives, without Spark."""
    pa = import_pyarrow()
    table = pa.Table.from_pylist(
        [attrs.asdict(alert) for alert in alerts],
        schema=pa.schema([pa.field(name, pa.type_for_alias(kind)) for name, kind in ALERT]),
    )
    for place, name in ((12, "began"), (13, "at")):
        micros = [value // 1000 for value in table.column(f"{name}_ns").to_pylist()]
        table = table.add_column(place, name, pa.array(micros, pa.timestamp("us", tz="UTC")))
    return table


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
