"""How long do the jobs take over a lake of many classes, where planning costs more than rows?

Makes a lake with all classes and events of the schemas in `schemas/`, those of a broker and a host among them, with a
few thousand samples each, and runs the batches of rollup, audit and report over it, as the commands do, and of rollup
and audit on Spark. Prints seconds for each.

    python bench/pipeline_classes.py [--samples N] [--classes N] [--lake DIR] [JOB ...]

With `--lake` the lake is made there, or taken as it is where there is one, and what the jobs write stays in it. Spark's
start is not counted. All have two processors.
"""

from __future__ import annotations

import argparse
import random
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipeline_lake import SECOND

from qmf.pipeline.audit.job import audit_lake
from qmf.pipeline.audit.tables import AuditOptions
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion, ColumnType, LakeColumn, MemberKind, MemberPart
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.record.buffers import RowBuffers
from qmf.pipeline.record.lake_writer import LakeWriter
from qmf.pipeline.report.collect import ReportOptions, collect
from qmf.pipeline.report.source import end_of_recording
from qmf.pipeline.report.time_range import parse_time_range
from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.tables import RollupOptions
from qmf.pipeline.runners.process import ProcessRunner
from qmf.pipeline.runners.spark import SparkRunner
from qmf.pipeline.spark import session
from qmf.schema import Style, read_schema

NAMES = ("rollup", "audit", "report", "rollup-on-spark", "audit-on-spark")

SCHEMAS = Path(__file__).parent.parent / "schemas"
RUN = "00000000000000000001_1"
AGENT = "example.org:bench:classes"

#: When the lake begins; objects of a class; commits that it is made in; events to a sample of a class.
START, OBJECTS, COMMITS, EVENTS = 1_900_000_000, 20, 12, 10


def classes(most: int | None) -> list[ClassVersion]:
    """The tables of all classes and events."""
    found: list[ClassVersion] = []
    for path in sorted(SCHEMAS.glob("*.xml")):
        schema = read_schema(path)
        found += [ClassVersion.from_schema(item) for item in schema.classes[:most]]
        found += [ClassVersion.from_schema(item) for item in schema.events]
    return found


def value(column: LakeColumn, n: int, chance: random.Random) -> object:
    """A value of a column, of the n-th sample of an object."""
    if column.kind is not MemberKind.STATISTIC:
        # A property changes now and then.
        number = n // 500
    elif column.style is Style.COUNT:
        number = n * 3 if n % 700 else 0
    else:
        number = chance.randrange(100)
    if column.part is MemberPart.COUNT:
        number = n % 3
    match column.column_type:
        case ColumnType.TEXT:
            return f"text {number}"
        case ColumnType.BOOL:
            return number % 2 == 0
        case ColumnType.FLOAT | ColumnType.DOUBLE:
            return number / 7
        case ColumnType.TIME:
            return number * 10**6
        case _:
            return number % 100


def fill(lake: DeltaLake, tables: list[ClassVersion], samples: int) -> int:
    """Record so many samples of each class; gives the rows written."""
    chance = random.Random(1)
    lake.create()
    buffers = RowBuffers()
    writer = LakeWriter(lake, "bench")
    seq = batches = 0

    def add(kind: RowKind, at_ns: int, cells: tuple[object, ...], table: ClassVersion | None = None) -> None:
        nonlocal seq
        seq += 1
        common = (RUN, seq, at_ns // 1000, at_ns, at_ns, AGENT, 1)
        buffers.add(kind, table, at_ns, (*common, *cells))

    begin = START * SECOND
    for table in tables:
        schema = (table.package, table.name, table.hash, table.event, table.to_json(), "", None)
        add(RowKind.SCHEMAS, begin, schema)
    add(RowKind.AGENTS, begin, ("added", None, 10.0))
    each = max(1, samples // COMMITS)
    for n in range(samples):
        at_ns = begin + (n // OBJECTS) * 5 * SECOND
        for table in tables:
            cells = tuple(value(column, n, chance) for column in table.columns)
            if not table.event:
                add(RowKind.OBJECTS, at_ns, (f"{table.name}-{n % OBJECTS}", 1, begin, 0, True, True, *cells), table)
            elif n % EVENTS == 0:
                add(RowKind.EVENTS, at_ns + n, (6, None, *cells), table)
        add(RowKind.HEARTBEATS, at_ns, (10.0, None, 1, None, None))
        if n % each == each - 1 or n == samples - 1:
            batches += 1
            writer.commit(batches, buffers.take())
    return seq


def jobs(spark: Any, root: str) -> dict[str, Callable[[], object]]:
    """What is measured."""
    rollup = RollupOptions(lake=root, out=f"{root}/_tables/rollup")
    audit = AuditOptions(lake=root, out=f"{root}/_tables/audit/batch")

    def report() -> None:
        time_range = parse_time_range(None, None, "1h", end_of_recording(ProcessRunner(), root))
        collect(ProcessRunner(), ReportOptions(lake=root, title="Bench"), time_range, ignore)

    return {
        "rollup": lambda: roll_up_lake(ProcessRunner(), rollup, ignore),
        "audit": lambda: audit_lake(ProcessRunner(), audit, ignore),
        "report": report,
        "rollup-on-spark": lambda: roll_up_lake(SparkRunner(spark), rollup, ignore),
        "audit-on-spark": lambda: audit_lake(SparkRunner(spark), audit, ignore),
    }


def ignore(_text: str) -> None:
    """A line for the user."""


def main() -> None:
    """Make the lake and run the jobs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("jobs", nargs="*", metavar="JOB", help=f"{', '.join(NAMES)}; default: all")
    parser.add_argument("--samples", type=int, default=2000, metavar="N", help="of each class; default: %(default)s")
    parser.add_argument("--classes", type=int, metavar="N", help="of each schema at most")
    parser.add_argument("--lake", type=Path, metavar="DIR", help="make the lake here, and keep it")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root = options.lake or Path(folder) / "lake"
        tables = classes(options.classes)
        if not root.exists():
            rows = fill(DeltaLake(str(root)), tables, options.samples)
            print(f"{rows:,} rows of {len(tables)} classes", flush=True)
        spark = session("local[2]", name="bench")
        spark.sparkContext.setLogLevel("ERROR")
        measured = jobs(spark, str(root))
        for name in options.jobs or measured:
            started = time.perf_counter()
            measured[name]()
            print(f"{name}: {time.perf_counter() - started:.1f} s", flush=True)
        spark.stop()


if __name__ == "__main__":
    main()
