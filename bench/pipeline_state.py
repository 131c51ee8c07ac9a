"""The engine of `correlate` beside Spark's own state (`transformWithState`): one rule over the same rows.

The rule: a value above a limit for 10 s raises an alert, a value below another limit clears it. Both engines see the
same files: all rows at once, then 20 small files of 100 rows one after the other. Prints the seconds until the first
result of a small first file (the start), rows per second, seconds from a small file to its result, and memory.

    python bench/pipeline_state.py [ROWS]        default: 1000000
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow
import pyarrow.parquet

OBJECTS, SECOND, SMALL, STEPS = 100, 10**9, 100, 20

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


class Ours:
    """`CorrelationStream` over a lake."""

    def __init__(self, folder: Path) -> None:
        from pipeline_lake import CLASS

        from qmf.pipeline.correlate import parse_rules
        from qmf.pipeline.correlate.options import CorrelateOptions
        from qmf.pipeline.correlate.stream import CorrelationStream
        from qmf.pipeline.kinds import RowKind
        from qmf.pipeline.lake.columns import ClassVersion
        from qmf.pipeline.lake.delta_lake import DeltaLake
        from qmf.pipeline.record.buffers import RowBuffers, RowConverter
        from qmf.pipeline.record.lake_writer import LakeWriter

        self._objects, self._buffers, self._table = RowKind.OBJECTS, RowBuffers(), ClassVersion.from_schema(CLASS)
        self._cells = RowConverter(self._table)
        table = self._table
        cells = ("run", 0, 0, 0, 0, None, None, table.package, table.name, table.hash, False, table.to_json(), "", None)
        self._buffers.add(RowKind.SCHEMAS, None, 0, cells)
        lake = DeltaLake(str(folder / "lake"))
        self._writer = LakeWriter(lake, "bench")
        self._number = self._batch = 0
        options = CorrelateOptions(lake=lake.url, out=str(folder / "out"), rules=parse_rules(RULES))
        self._stream = CorrelationStream(options, lambda _text: None)
        self.found = 0

    def write(self, some: list[tuple[int, str, int]]) -> None:
        """Commit rows."""
        values: dict[str, object] = {
            "done": 0,
            "load": 0.0,
            "delayCount": 0,
            "delayMin": 0,
            "delayMax": 0,
            "delayAvg": 0,
        }
        for at, name, value in some:
            self._number += 1
            cells = self._cells.cells({**values, "level": value}, statistics=True)
            common = ("run", self._number, at // 1000, at, at, "bench", 1, name, 0, 0, 0, False, True)
            self._buffers.add(self._objects, self._table, at, (*common, *cells))
        self._batch += 1
        self._writer.commit(self._batch, self._buffers.take())

    def evaluate(self) -> None:
        """Evaluate what was written."""
        step = self._stream.step()
        self.found += 0 if step is None else len(step.alerts)

    def close(self) -> None:
        """End."""
        self._stream.close()


class Sparks:
    """A streaming query with `transformWithState`, its state in RocksDB."""

    def __init__(self, folder: Path) -> None:
        from pyspark.sql import Row, SparkSession
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

        os.environ["PYSPARK_PYTHON"] = sys.executable
        self._folder = folder / "rows"
        self._folder.mkdir()
        provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        self._spark = (
            SparkSession.builder.master("local[2]")
            .config("spark.sql.streaming.stateStore.providerClass", provider)
            .config("spark.sql.shuffle.partitions", "2")
            .config("spark.ui.enabled", "false")
            .config("spark.ui.showConsoleProgress", "false")
            .getOrCreate()
        )
        self._spark.sparkContext.setLogLevel("OFF")
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
            .start()
        )
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
        """Wait until the query has evaluated what was written."""
        self._query.processAllAvailable()

    def close(self) -> None:
        """End."""
        self._query.stop()
        self._spark.stop()


def one(name: str, count: int) -> None:
    """Measure one engine in this process, and print its line."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        engine = (Ours if name == "ours" else Sparks)(Path(folder))
        waits: list[float] = []
        for first, number in portions(count):
            engine.write(rows(first, number))
            started = time.perf_counter()
            engine.evaluate()
            waits.append(time.perf_counter() - started)
            if len(waits) == 1:
                start = time.perf_counter() - begun
        peak = memory()
        engine.close()
    right = engine.found == expected(count + SMALL * (STEPS + 1))
    small = statistics.median(waits[2:])
    print(f"{name:>8} {start:8.1f} {count / waits[1]:12,.0f} {small:10.3f} {peak:10.0f}   {'ok' if right else 'WRONG'}")


def main() -> int:
    """Measure both, each in a process of its own."""
    if len(sys.argv) == 3:
        one(sys.argv[1], int(sys.argv[2]))
        return 0
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    print(f"{'engine':>8} {'start s':>8} {'rows/s':>12} {'small s':>10} {'memory MB':>10}", flush=True)
    for name in ("ours", "spark"):
        subprocess.run([sys.executable, __file__, name, str(count)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
