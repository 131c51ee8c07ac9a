"""The table of alerts, and the state of a stream between its steps.

::

    OUT/batch/*.parquet                    alerts of the last batch
    OUT/stream/qmf_batch=N/*.parquet       alerts of step N of the stream, where there are any
    OUT/stream/_state/N/out=.../*.parquet  states of the rules' detectors after step N
    OUT/stream/_state/current.json         the last step, and its progress: replacing this file commits the step

A step that is killed before its commit is done again, from the state of the step before, and replaces what it had
written.
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

from qmf.pipeline.correlate.alerts import AlertRow, in_order
from qmf.pipeline.correlate.detectors import NEVER
from qmf.pipeline.correlate.evaluation import (
    ALERT_COLUMNS,
    OUT_ALERT,
    OUT_COUNTS,
    OUT_STATE,
    RESULT_COLUMNS,
    EvaluationCounts,
)
from qmf.pipeline.correlate.event_time import ConnectionChange
from qmf.pipeline.errors import lake_errors
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.spark.sinks import BATCH_COLUMN, read_table

_STATE = "_state"
_CURRENT = "current.json"

_SPARK_TYPES: dict[str, T.DataType] = {
    "string": T.StringType(),
    "int16": T.ShortType(),
    "int64": T.LongType(),
    "double": T.DoubleType(),
}

#: The Spark schema of the results of an evaluation.
RESULT_SCHEMA = T.StructType([T.StructField(name, _SPARK_TYPES[type]) for name, type in RESULT_COLUMNS])

_ALERT_NAMES = [name for name, _type in ALERT_COLUMNS]

#: The timestamps of the table, made from `began_ns` and `at_ns`, and the index of the first of them.
_TIMESTAMPS, _TIMESTAMP_INDEX = ("began", "at"), 12


@attrs.frozen(kw_only=True)
class StreamProgress:
    """The progress of a stream. The names of the attributes are those in `current.json`.

    Attributes:
        step: number of the last step.
        folder: of `_state` that holds the states; None for no state.
        entry: of the lake's log, the last one that was read.
        begin: everything before this time was evaluated, ns.
        due: when a state has something to do.
        pending: entries that may hold rows that are not evaluated yet, with their last arrival.
        base: the checkpoint of the log that the stream started with; it replaces all entries up to its number.
        lag: ns that the rows of the last entry waited for their commit.
        runs: first and last arrival of each recorder's run.
        pauses: changes of the runs' connections.
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
        """The content of `current.json`."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def parse(cls, text: str) -> StreamProgress:
        """The reverse of `to_json`."""
        content: dict[str, Any] = json.loads(text)
        content["pending"] = {int(key): value for key, value in content["pending"].items()}
        content["runs"] = {key: (value[0], value[1]) for key, value in content["runs"].items()}
        content["pauses"] = tuple(ConnectionChange(**item) for item in content["pauses"])
        return cls(**content)


class StreamTable:
    """The stream's part of the table; for one process at a time.

    Methods raise `LakeError` where the file system fails.
    """

    def __init__(self, root: Path) -> None:
        self.root = root

    def open(self) -> StreamProgress:
        """The stream's progress; removes what a killed step left."""
        with lake_errors(self.root):
            (self.root / _STATE).mkdir(parents=True, exist_ok=True)
            progress = self.progress()
            for path in (self.root / _STATE).iterdir():
                if path.name not in (progress.folder, _CURRENT):
                    _remove(path)
            for number, path in self._steps():
                if number > progress.step:
                    _remove(path)
        return progress

    def progress(self) -> StreamProgress:
        """The progress of the last committed step."""
        path = self.root / _STATE / _CURRENT
        return StreamProgress.parse(path.read_text(encoding="utf-8")) if path.exists() else StreamProgress()

    def state_path(self, folder: str) -> str:
        """The path of a folder of states."""
        return str(self.root / _STATE / folder)

    def step_path(self, step: int) -> str:
        """The path of a step's alerts."""
        return str(self.root / f"{BATCH_COLUMN}={step}")

    def has_states(self, folder: str) -> bool:
        """True where a folder of `_state` holds states."""
        return any(self._results(folder, OUT_STATE))

    def write_alerts(self, step: int) -> tuple[list[AlertRow], EvaluationCounts]:
        """Read the results of a step, and write its alerts into the table.

        Returns:
            the alerts, and the counts.
        """
        alerts = in_order(AlertRow(**row) for row in self._rows(str(step), OUT_ALERT, _ALERT_NAMES))
        rows = self._rows(str(step), OUT_COUNTS, ["rows", "misdated", "too_late", "due"])
        counts = EvaluationCounts(
            rows=sum(row["rows"] for row in rows),
            misdated=sum(row["misdated"] for row in rows),
            too_late=sum(row["too_late"] for row in rows),
            due=min((row["due"] for row in rows), default=NEVER),
        )
        folder = Path(self.step_path(step))
        with lake_errors(folder):
            if folder.exists():
                _remove(folder)
            if alerts:
                folder.mkdir()
                import_pyarrow().parquet.write_table(_arrow_table(alerts), folder / "alerts.parquet")
        return alerts, counts

    def _results(self, folder: str, out: str) -> Iterator[Path]:
        return (Path(self.state_path(folder)) / f"out={out}").glob("*.parquet")

    def _rows(self, folder: str, out: str, names: list[str]) -> list[dict[str, Any]]:
        return _read_rows(sorted(self._results(folder, out)), names)

    def commit(self, progress: StreamProgress) -> None:
        """Commit a step, and remove the states of the step before. A step that fails here is not committed."""
        target = self.root / _STATE / _CURRENT
        temporary = target.with_name(f".{_CURRENT}.tmp")
        with lake_errors(target):
            before = self.progress().folder
            with temporary.open("w", encoding="utf-8") as file:
                file.write(progress.to_json())
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
            if before is not None and before != progress.folder:
                _remove(self.root / _STATE / before)

    def steps(self, after: int) -> list[int]:
        """The committed steps after `after` that have alerts, in order."""
        last = self.progress().step
        return sorted(number for number, _ in self._steps() if after < number <= last)

    def alerts(self, step: int) -> list[AlertRow]:
        """The alerts of a step, in order."""
        files = sorted(Path(self.step_path(step)).glob("*.parquet"))
        return in_order(AlertRow(**row) for row in _read_rows(files, _ALERT_NAMES))

    def _steps(self) -> Iterator[tuple[int, Path]]:
        for path in self.root.glob(f"{BATCH_COLUMN}=*"):
            number = path.name.partition("=")[2]
            if number.isdecimal():
                yield int(number), path


def alert_table(results: DataFrame) -> DataFrame:
    """The table of alerts, from the results of an evaluation."""
    alerts = results.where(F.col("out") == OUT_ALERT)
    times = [F.timestamp_micros(F.expr(f"{name}_ns div 1000")).alias(name) for name in _TIMESTAMPS]
    return alerts.select(*_ALERT_NAMES[:_TIMESTAMP_INDEX], *times, *_ALERT_NAMES[_TIMESTAMP_INDEX:])


def alerts_from_results(results: DataFrame) -> list[AlertRow]:
    """The alerts among the results of an evaluation, in order."""
    rows = results.where(F.col("out") == OUT_ALERT).select(*_ALERT_NAMES).collect()
    return in_order(AlertRow(**row.asDict()) for row in rows)


def alerts(spark: SparkSession, out: str, *, by: str = "stream") -> DataFrame | None:
    """The table that a job wrote; None where there is nothing yet.

    Args:
        spark: to read with.
        out: as of the job.
        by: ``batch`` or ``stream``.
    """
    return read_table(spark, f"{out.rstrip('/')}/{by}")


def _read_rows(files: Sequence[Path], names: list[str]) -> list[dict[str, Any]]:
    return [row for path in files for row in import_pyarrow().parquet.ParquetFile(path).read(names).to_pylist()]


def _arrow_table(alerts: Sequence[AlertRow]) -> Any:
    """`alert_table` without Spark."""
    pa = import_pyarrow()
    table = pa.Table.from_pylist(
        [attrs.asdict(alert) for alert in alerts],
        schema=pa.schema([pa.field(name, pa.type_for_alias(type)) for name, type in ALERT_COLUMNS]),
    )
    for index, name in enumerate(_TIMESTAMPS, _TIMESTAMP_INDEX):
        micros = [value // 1000 for value in table.column(f"{name}_ns").to_pylist()]
        table = table.add_column(index, name, pa.array(micros, pa.timestamp("us", tz="UTC")))
    return table


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
