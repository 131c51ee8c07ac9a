"""The engine of `correlate` beside Spark's own state (`transformWithState`): one rule over the same rows.

The rule: a value above a limit for 10 s raises an alert, a value below another limit clears it. All engines see the
same files: all rows at once, then 20 small files of 100 rows one after the other. The engines: the stream in the
process; the stream on Spark, by `foreachBatch` with its states in a Delta table; and `transformWithState` with RocksDB,
for which the rule is written by hand, and nothing else of what a stream does (late rows, rules that change, alerts in a
table). Both on Spark have the same session, `local[2]` with two partitions.

Prints the seconds until the first result of a small first file (the start), rows per second, seconds from a small file
to its result, processor seconds (with Java and Python's workers) of all rows and of a small file, and memory; then how
many times what `foreachBatch` takes `transformWithState` takes.

    python bench/pipeline_state.py [ROWS]        default: 1000000
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import attrs
import psutil
import pyarrow
import pyarrow.parquet
from pipeline_lake import CLASS
from spark_master import processor_seconds

from qmf.pipeline.correlate import parse_rules
from qmf.pipeline.correlate.batch_input import CorrelateOptions
from qmf.pipeline.correlate.stream import CorrelationStream
from qmf.pipeline.correlate.task_stream import TaskCorrelationStream
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.location import class_path
from qmf.pipeline.record.buffers import RowBuffers, RowConverter
from qmf.pipeline.record.lake_writer import LakeWriter
from qmf.pipeline.runners.runner import Pace
from qmf.pipeline.runners.spark import SparkRunner
from qmf.pipeline.spark import session
from qmf.pipeline.spark_access.session import job_settings

OBJECTS, SECOND, SMALL, STEPS = 100, 10**9, 100, 20

#: Seconds in which an engine must have started, or have evaluated a file.
WAIT_LIMIT = 600.0

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"

RULES = """
[level]
kind = "threshold"
class = "org.example.bench:thing"
value = "level"
above = 90
clear = 50
for = "10s"
"""


def level(second: int) -> int:
    """Bad at the end of every 500 seconds."""
    return 95 if second % 500 >= 450 else 40


def rows(first: int, count: int) -> list[tuple[int, str, int]]:
    """Time, object and value of some rows."""
    return [(n // OBJECTS * SECOND, f"thing-{n % OBJECTS}", level(n // OBJECTS)) for n in range(first, first + count)]


def expected(total: int) -> int:
    """Alerts raised and cleared by all rows."""
    seconds = total // OBJECTS
    raised = sum(1 for start in range(450, seconds, 500) if start + 10 < seconds)
    return (raised + sum(1 for start in range(500, seconds, 500))) * OBJECTS


def portions(count: int) -> Iterator[tuple[int, int]]:
    """First row and number of rows of each file: a small one, all, and small ones again."""
    yield 0, SMALL
    yield SMALL, count
    for step in range(STEPS):
        yield SMALL + count + step * SMALL, SMALL


def memory() -> float:
    """Resident memory of this process and all that it started, in MB."""
    me = psutil.Process()
    return sum(item.memory_info().rss for item in (me, *me.children(recursive=True))) / 2**20


class Lake:
    """Records rows as the recorder does; engines of the pipeline read them."""

    def __init__(self, folder: Path) -> None:
        self._buffers, self._table = RowBuffers(), ClassVersion.from_schema(CLASS)
        self._cells = RowConverter(self._table)
        table = self._table
        cells = ("run", 0, 0, 0, 0, None, None, table.package, table.name, table.hash, False, table.to_json(), "", None)
        self._buffers.add(RowKind.SCHEMAS, None, 0, cells)
        self.lake = DeltaLake(str(folder / "lake"))
        self._writer = LakeWriter(self.lake, "bench")
        self._number = self._batch = 0
        self.options = CorrelateOptions(lake=self.lake.url, out=str(folder / "out"), rules=parse_rules(RULES))
        self.path = class_path(RowKind.OBJECTS, table.package, table.name)
        self.found = 0

    def write(self, some: list[tuple[int, str, int]]) -> None:
        """Commit rows."""
        others: dict[str, object] = {"done": 0, "load": 0.0}
        others |= {"delayCount": 0, "delayMin": 0, "delayMax": 0, "delayAvg": 0}
        for at, name, value in some:
            self._number += 1
            cells = self._cells.cells({**others, "level": value}, statistics=True)
            common = ("run", self._number, at // 1000, at, at, "bench", 1, name, 0, 0, 0, False, True)
            self._buffers.add(RowKind.OBJECTS, self._table, at, (*common, *cells))
        self._batch += 1
        self._writer.commit(self._batch, self._buffers.take())


class InProcess(Lake):
    """`CorrelationStream` over a lake."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._stream = CorrelationStream(self.options, ignore)

    def evaluate(self) -> None:
        """Evaluate what was written."""
        step = self._stream.step()
        self.found += 0 if step is None else len(step.alerts)

    def close(self) -> None:
        """End."""
        self._stream.close()


class ForeachBatch(Lake):
    """`TaskCorrelationStream` over a lake, a query of Structured Streaming whose micro-batches are steps."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._spark = spark_session()
        self._checkpoint = str(folder / "checkpoint")
        self._stop, self._stepped, self._read = threading.Event(), threading.Condition(), -1
        # A stream belongs to one thread, that of its steps.
        self._thread = threading.Thread(target=self._follow)
        self._thread.start()

    def _follow(self) -> None:
        runner = SparkRunner(self._spark)
        with closing(TaskCorrelationStream(runner, self.options, ignore)) as stream:

            def step(until: Any) -> bool:
                found = stream.step(until)
                with self._stepped:
                    self.found += 0 if found is None else len(found.alerts)
                    self._read = stream.progress.read.get(self.path, -1)
                    self._stepped.notify()
                return False

            runner.follow(stream.lake, self._checkpoint, step, Pace(every=0.0), self._stop)

    def evaluate(self) -> None:
        """Wait until the query has evaluated what was written."""
        version = self.lake.table(self.path).version()
        assert version is not None
        with self._stepped:
            if not self._stepped.wait_for(lambda: self._read >= version, WAIT_LIMIT):
                raise TimeoutError(f"the stream has read version {self._read} of {version}")

    def close(self) -> None:
        """End."""
        self._stop.set()
        self._thread.join()
        self._spark.stop()


class WithState:
    """A streaming query with `transformWithState`, its state in RocksDB."""

    def __init__(self, folder: Path) -> None:
        from pyspark.sql import Row
        from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

        class Level(StatefulProcessor):
            """The rule, for one object."""

            def init(self, handle: StatefulProcessorHandle) -> None:
                self._state = handle.getValueState("level", "since long, open boolean")

            def handleInputRows(self, key: Any, rows: Iterator[Any], timerValues: Any) -> Iterator[Row]:  # noqa: ARG002
                known = self._state.get() or (None, False)
                since, is_open = known[0], known[1]
                for row in sorted(rows, key=lambda item: item["at"]):
                    at, value = row["at"], row["level"]
                    if is_open:
                        if value <= 50:
                            is_open, since = False, None
                            yield Row(object=key[0], at=at, change="cleared")
                    elif value > 90:
                        since = at if since is None else since
                        if at - since >= 10 * SECOND:
                            is_open = True
                            yield Row(object=key[0], at=at, change="raised")
                    else:
                        since = None
                self._state.update((since, is_open))

            def close(self) -> None:
                pass

        self._folder = folder / "rows"
        self._folder.mkdir()
        self._spark = spark_session()
        self.found = 0

        def count(frame: Any, _number: int) -> None:
            self.found += frame.count()

        schema = "at long, object string, level int"
        self._query = (
            self._spark.readStream.schema(schema)
            .parquet(str(self._folder))
            .groupBy("object")
            .transformWithState(Level(), "object string, at long, change string", "Append", "None")
            .writeStream.outputMode("append")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .foreachBatch(count)
        )
        self._started = self._query.start()
        self._written = 0

    def write(self, some: list[tuple[int, str, int]]) -> None:
        """Write a file."""
        at, names, values = zip(*some, strict=True)
        table = pyarrow.table({"at": at, "object": names, "level": pyarrow.array(values, pyarrow.int32())})
        self._written += 1
        temporary = self._folder / f".{self._written}"
        pyarrow.parquet.write_table(table, temporary)
        temporary.rename(self._folder / f"{self._written}.parquet")

    def evaluate(self) -> None:
        """Wait until the query has evaluated what was written.

        Spark gives a query's Python in the driver ten seconds to start, which is a constant of its code: on a machine
        that does much else it takes longer, and the query is started again.
        """
        give_up = time.monotonic() + WAIT_LIMIT
        while True:
            try:
                self._started.processAllAvailable()
                return
            except Exception as error:
                if "Python worker failed to connect back" not in str(error) or time.monotonic() > give_up:
                    raise
                print("Spark could not start Python in ten seconds; the query is started again", file=sys.stderr)
                self._started = self._query.start()

    def close(self) -> None:
        """End."""
        self._started.stop()
        self._spark.stop()


ENGINES: dict[str, type[InProcess | ForeachBatch | WithState]] = {
    "in the process": InProcess,
    "foreachBatch": ForeachBatch,
    "transformWithState": WithState,
}


def ignore(_text: str) -> None:
    """Ignore a line of a stream."""


def spark_session() -> Any:
    """A session as a job has it; RocksDB is not used by the pipeline."""
    settings = job_settings(small=False) | {
        "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
        # Its worker needs pandas.
        "spark.python.daemon.module": "qmf.pipeline.runners.worker_daemon",
        "spark.log.level": "OFF",
    }
    return session("local[2]", partitions=2, settings=settings)


@attrs.frozen
class Measured:
    """What an engine took.

    Attributes:
        start: seconds to the first result.
        rows: rows per second of all rows at once.
        small: seconds from a small file to its result, median.
        all_used, small_used: processor seconds of all rows, and of a small file.
        memory: in MB.
        right: the alerts are those that the rows have.
    """

    start: float
    rows: float
    small: float
    all_used: float
    small_used: float
    memory: float
    right: bool


def used() -> float:
    """Processor seconds of this process and of all that it started."""
    return sum(processor_seconds().values())


def measure(name: str, count: int) -> Measured:
    """Measure an engine in this process."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        engine = ENGINES[name](Path(folder))
        waits, costs = [], []
        for first, number in portions(count):
            engine.write(rows(first, number))
            started, before = time.perf_counter(), used()
            engine.evaluate()
            waits.append(time.perf_counter() - started)
            costs.append(used() - before)
            if len(waits) == 1:
                start = time.perf_counter() - begun
        peak = memory()
        engine.close()
        right = engine.found == expected(count + SMALL * (STEPS + 1))
    small = statistics.mean(costs[2:])
    return Measured(start, count / waits[1], statistics.median(waits[2:]), costs[1], small, peak, right)


def main() -> int:
    """Measure all, each in a process of its own."""
    if len(sys.argv) == 3:
        print(json.dumps(attrs.asdict(measure(sys.argv[1], int(sys.argv[2])))))
        return 0
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(
        f"{'engine':>18} {'start s':>8} {'rows/s':>10} {'small s':>8} {'used s':>8} {'small':>8} {'MB':>6}", flush=True
    )
    found = {}
    for name in ENGINES:
        ran = subprocess.run([sys.executable, __file__, name, str(count)], check=True, stdout=subprocess.PIPE)
        item = found[name] = Measured(**json.loads(ran.stdout.splitlines()[-1]))
        times = f"{item.start:8.1f} {item.rows:10,.0f} {item.small:8.2f} {item.all_used:8.1f} {item.small_used:8.2f}"
        print(f"{name:>18} {times} {item.memory:6.0f}{'' if item.right else '  WRONG'}", flush=True)
    state, batch = found["transformWithState"], found["foreachBatch"]
    print(
        f"transformWithState beside foreachBatch, processor seconds: {state.all_used / batch.all_used:.2f} times for "
        f"all rows, {state.small_used / batch.small_used:.2f} times for a small file"
    )
    return int(not all(item.right for item in found.values()))


if __name__ == "__main__":
    sys.exit(main())
