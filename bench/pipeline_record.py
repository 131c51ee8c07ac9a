"""What does recording cost the processor? 30 classes, a commit each 10 seconds, for an hour of commits and more.

Makes the rows of each interval as the recorder does, and commits them: the batch is stored, written to each table, and
small files are combined when there are many. Beside it, the same rows are written by pyarrow alone, a file for each
class. Prints, for each block of commits, processor time for each, and their share of one core at one commit each 10 s.

    python bench/pipeline_record.py [--commits N] [--classes N] [--objects N]

Exit code 1 where a block takes more than a tenth of a core.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from uuid import UUID

import attrs
import pyarrow.parquet

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.record.buffers import RowBuffers, RowConverter
from qmf.pipeline.record.lake_writer import LakeWriter
from qmf.pipeline.record.writer_state import PendingBatch, WriterState, state_folder
from qmf.schema import TYPES, ClassSchema, Property, Statistic

INTERVAL = 10.0
BLOCK = 60
LIMIT = 0.1
SECOND = 10**9
RUN = "00000000000000000001_1"


def schema(number: int) -> ClassSchema:
    """A class with ten values."""
    return ClassSchema(
        package="org.example.bench",
        name=f"thing{number}",
        hash=UUID(int=number + 1),
        properties=(Property(name="name", type=TYPES["sstr"]), Property(name="limit", type=TYPES["uint64"])),
        statistics=(
            *(Statistic(name=f"done{n}", type=TYPES["count64"]) for n in range(4)),
            Statistic(name="load", type=TYPES["double"]),
            Statistic(name="level", type=TYPES["hilo32"]),
        ),
    )


@attrs.define
class Times:
    """Seconds of the processor: rows made, commits, the same rows by pyarrow alone; and rows."""

    rows: float = 0.0
    commits: float = 0.0
    plain: float = 0.0
    count: int = 0


def main() -> int:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--commits", type=int, default=480)
    parser.add_argument("--classes", type=int, default=30)
    parser.add_argument("--objects", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return measure(Path(folder), options.commits, options.classes, options.objects)


def measure(root: Path, commits: int, classes: int, objects: int) -> int:
    """Record and print."""
    lake = DeltaLake(str(root / "lake"))
    lake.create()
    writer, state = LakeWriter(lake, "bench"), WriterState(state_folder(lake, "bench"))
    versions = [ClassVersion.from_schema(schema(number)) for number in range(classes)]
    converters = [RowConverter(version) for version in versions]
    buffers = RowBuffers()
    for version in versions:
        schema = (version.package, version.name, version.hash, False, version.to_json(), "", None)
        buffers.add(RowKind.SCHEMAS, None, 0, (RUN, 0, 0, 0, 0, None, None, *schema))
    print(f"{'commits':>8} {'rows/s':>10} {'commit':>9} {'pyarrow':>9} {'core':>7}")
    times, highest = Times(), 0.0
    with state.lock():
        for number in range(1, commits + 1):
            one(number, buffers, converters, objects, writer, state, root / "plain.parquet", times)
            if number % BLOCK == 0:
                share = times.commits / BLOCK / INTERVAL
                highest = max(highest, share)
                print(
                    f"{number:8} {times.count / times.rows:10,.0f} {times.commits / BLOCK * 1000:6.0f} ms"
                    f" {times.plain / BLOCK * 1000:6.0f} ms {share:7.1%}",
                    flush=True,
                )
                times = Times()
    return int(highest > LIMIT)


def one(
    number: int,
    buffers: RowBuffers,
    converters: list[RowConverter],
    objects: int,
    writer: LakeWriter,
    state: WriterState,
    plain: Path,
    times: Times,
) -> None:
    """One interval: rows of all objects, their commit, and the same rows by pyarrow."""
    time_ns = (1_900_000_000 + int(number * INTERVAL)) * SECOND
    started = time.process_time()
    values: dict[str, object] = {"name": "one", "limit": 7, "load": number / 7}
    values |= {"level": 3, "levelHigh": 9, "levelLow": 1}
    for converter in converters:
        for item in range(objects):
            values |= {f"done{n}": number * item + n for n in range(4)}
            common = (RUN, number * 10_000 + item, time_ns // 1000, time_ns, time_ns, "bench", 1)
            own = (f"thing-{item}", 0, 0, 0, False, True)
            buffers.add(
                RowKind.OBJECTS, converter.version, time_ns, (*common, *own, *converter.cells(values, statistics=True))
            )
    made = time.process_time()
    tables = writer.tables(buffers.take())
    state.store(PendingBatch(number, RUN, time_ns, tables))
    state.mark(RUN, time_ns)
    writer.write(number, tables)
    state.remove(number)
    writer.combine()
    committed = time.process_time()
    for table in tables.values():
        pyarrow.parquet.write_table(table, plain, compression="zstd")
    times.rows += made - started
    times.commits += committed - made
    times.plain += time.process_time() - committed
    times.count += len(converters) * objects


if __name__ == "__main__":
    sys.exit(main())
