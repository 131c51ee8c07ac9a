"""How many files, and how much time, does a question about one object cost, before and after a day is clustered?

Records a day of a class in some commits, combines their files as `optimize` does with days that are not large, and then
clusters the day. Of each of the three lakes, prints how many files hold rows of one object as far as the log tells, how
many it has, and the processor time of reading the object's samples by DuckDB, beside that of reading all files.

    python bench/pipeline_layout.py [--objects N] [--samples N]
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from pipeline_lake import SECOND

from qmf.pipeline.history.files import LakeFiles
from qmf.pipeline.history.reader import LakeReader
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.maintenance.optimizing import optimize_lake
from qmf.pipeline.record.buffers import RowBuffers
from qmf.pipeline.record.lake_writer import LakeWriter
from qmf.pipeline.runners.process import ProcessRunner
from qmf.schema import TYPES, ClassSchema, Property, Schema, Statistic, to_xml

COMMITS = 24
START = 1_700_000_000 // 86_400 * 86_400
RUN, AGENT = "00000000000000000001_1", "example.org:bench:layout"
SCHEMA = ClassSchema(
    package="org.example.bench",
    name="Queue",
    properties=(Property(name="name", type=TYPES["sstr"], index=True),),
    statistics=tuple(Statistic(name=f"value{number}", type=TYPES["count64"]) for number in range(7)),
)
VERSION = ClassVersion.from_schema(SCHEMA)

#: Size of files in bytes: small enough for a day to have several.
TARGET = 4 * 1024 * 1024


def fill(lake: DeltaLake, objects: int, samples: int) -> None:
    """Record so many samples of each object, in equal commits over a day."""
    lake.create()
    buffers, writer = RowBuffers(), LakeWriter(lake, "bench")
    seq = 0

    def add(kind: RowKind, at_ns: int, cells: tuple[object, ...], version: ClassVersion | None = None) -> None:
        nonlocal seq
        seq += 1
        buffers.add(kind, version, at_ns, (RUN, seq, at_ns // 1000, at_ns, at_ns, AGENT, 1, *cells))

    package = (VERSION.package, VERSION.name, VERSION.hash, False, VERSION.to_json())
    add(RowKind.SCHEMAS, START * SECOND, (*package, to_xml(Schema(package=VERSION.package, classes=(SCHEMA,))), None))
    add(RowKind.AGENTS, START * SECOND, ("added", None, 10.0))
    step = 86_400 * SECOND // samples
    for number in range(samples):
        at_ns = START * SECOND + number * step
        for own in range(objects):
            values = tuple(number * 7 + own * part for part in range(7))
            cells = (f"org.example.bench:queue:{own:06}", 1, START * SECOND, 0, True, True, f"{own:06}", *values)
            add(RowKind.OBJECTS, at_ns, cells, VERSION)
        if number % (samples // COMMITS) == samples // COMMITS - 1:
            writer.commit(number // (samples // COMMITS) + 1, buffers.take())


def files(root: str, name: str) -> tuple[int, int]:
    """How many files may have rows of an object, and how many there are."""
    own = LakeFiles(root)
    own.refresh()
    version = own.classes[0].version
    chosen = own.select(RowKind.OBJECTS, version, object=(AGENT, name)).files
    return len(chosen), len(own.select(RowKind.OBJECTS, version).files)


def asked(root: str, name: str) -> tuple[float, int]:
    """Processor time of reading the samples of an object, and how many there are."""
    times = []
    for _ in range(3):
        with LakeReader(root) as reader:
            reader.refresh()
            key = reader.classes()[0]
            begun = time.process_time()
            found = reader.series([key], (AGENT, name), ["value1"], START * SECOND, (START + 86_400) * SECOND)
            times.append(time.process_time() - begun)
    return statistics.median(times), len(found.samples)


def main() -> None:
    """Measure the three layouts."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--objects", type=int, default=2000, metavar="N", help="default: %(default)s")
    parser.add_argument("--samples", type=int, default=576, metavar="N", help="of each object; default: %(default)s")
    options = parser.parse_args()
    name = f"org.example.bench:queue:{options.objects // 3:06}"
    with tempfile.TemporaryDirectory() as folder:
        root = str(Path(folder, "lake"))
        fill(DeltaLake(root), options.objects, options.samples)
        expected = options.samples
        for layout, rows in (("as recorded", None), ("combined", 1 << 40), ("clustered", 1000)):
            begun = time.process_time()
            if rows is not None:
                optimize_lake(ProcessRunner(), DeltaLake(root), target_bytes=TARGET, cluster_rows=rows)
            spent = time.process_time() - begun
            opened, total = files(root, name)
            seconds, found = asked(root, name)
            assert found == expected, f"{found} samples"
            took = f"{seconds * 1000:.0f} ms of processor time"
            print(
                f"{layout}: {opened} of {total} files opened, {took} for one object; made in {spent:.1f} s", flush=True
            )


if __name__ == "__main__":
    main()
