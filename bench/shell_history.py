"""How long does qmf-shell take for the past of one object in a lake of a day with 100 million values?

Makes a lake of one class with 7 statistics, whose objects were sampled every 10 seconds for a day: once as compaction
leaves it, and once as a recorder wrote it, a file per commit. Then asks for one statistic of one object over the day
(`history`), for the object at noon (`at ... show`), and for all objects at noon (`at ... list`): in a session that is
open, and as `qmf-shell --lake DIR -c ...`, the start of the program included. The peer is a plain DuckDB query in a new
connection, on the same files, that fetches the same samples; the answers must be equal. The program fails when
`history` in the compacted lake takes longer than its limit. It needs about 3 GB in the temporary folder.

    python bench/shell_history.py [--values N] [--runs N] [--json FILE]
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
from figures import Figure, note, parser, report
from pipeline_lake import CLASS, VALUES
from qmf_shell.commands import standard
from qmf_shell.modes.executor import evaluate
from qmf_shell.results.result import ResultGroup, Table
from qmf_shell.session.context import Context
from qmf_shell.session.history_backend import HistoryBackend
from qmf_shell.session.lake_source import LakeSource, latest

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.location import class_path
from qmf.pipeline.lake.maintenance import TARGET_BYTES
from qmf.pipeline.record.buffers import RowBuffers
from qmf.pipeline.record.lake_writer import LakeWriter

#: Milliseconds that the answer may take.
LIMIT = 1000.0
#: 2023-11-15, and the seconds between samples.
DAY, STEP = 1_700_006_400, 10
SECOND = 10**9
#: The rows of the class.
_FOLDER = f"{class_path(RowKind.OBJECTS, CLASS.package, CLASS.key.name)}/_date=2023-11-15"
RUN = f"{DAY * SECOND:020d}_1"
AGENT = "example.org:bench:1"
PEER = "DuckDB query, same files"
SAMPLES = 86_400 // STEP

ROWS = """
select '{run}' as _run, (t * {objects} + o + 10)::bigint as _seq, make_timestamptz(time // 1000) as _ts,
    time as _ts_ns, time + 5000000 as _received_ns, '{agent}' as _agent, 1::bigint as _epoch,
    'thing-' || o as _object, 1::bigint as _object_epoch, {first} as _create_ns, 0::bigint as _delete_ns,
    t = 0 as _properties, true as _statistics,
    (t * 100 + o)::decimal(20, 0) as done, (hash(t, o) % 100000) / 7 as load, (hash(o, t) % 1000)::integer as level,
    3::decimal(20, 0) as "delayCount", (hash(t) % 10)::bigint as "delayMin", (hash(o) % 100)::bigint as "delayMax",
    (hash(t + o) % 1000) / 9 as "delayAvg", '2023-11-15' as _date, '{hash}' as _hash
from (select t, o, ({day} + t * {step}) * 1000000000 as time from range({begin}, {end}) x(t), range({objects}) y(o))
order by t, o
"""


def make(root: Path, objects: int, *, compacted: bool) -> None:
    """Write the rows of all kinds, as a recorder or as compaction does."""
    lake = DeltaLake(str(root))
    lake.create()
    _write_others(lake)
    (path,) = lake.tables_of(lake.class_versions())
    connection = duckdb.connect(config={"threads": 2})
    # About as many rows as fit into a file of the size that compaction makes.
    samples = max(1, TARGET_BYTES // (objects * 30)) if compacted else 180
    number = 0
    for begin in range(0, SAMPLES, samples):
        end = min(SAMPLES, begin + samples)
        times = {"first": DAY * SECOND, "day": DAY, "step": STEP, "begin": begin, "end": end}
        sql = ROWS.format(run=RUN, agent=AGENT, hash=CLASS.hash, objects=objects, **times)
        table = connection.sql(sql).to_arrow_table()
        for at in range(0, len(table), len(table) if compacted else objects):
            number += 1
            part = table if compacted else table.slice(at, objects)
            lake.table(path).append(part, writer="generator", batch=number)
    connection.close()


def _write_others(lake: DeltaLake) -> None:
    """The agent, its heartbeats, and the class."""
    version = ClassVersion.from_schema(CLASS)
    buffers = RowBuffers()
    first = DAY * SECOND

    def add(kind: RowKind, seq: int, time_ns: int, *cells: object) -> None:
        buffers.add(kind, None, time_ns, (RUN, seq, time_ns // 1000, time_ns, time_ns, AGENT, 1, *cells))

    add(RowKind.AGENTS, 1, first, "added", None, 10.0)
    add(RowKind.SCHEMAS, 2, first, version.package, version.name, version.hash, False, version.to_json(), "", None)
    for beat in range(SAMPLES):
        add(RowKind.HEARTBEATS, 3, first + beat * STEP * SECOND, 10.0, None, 1, None, None)
    LakeWriter(lake, "other").commit(1, buffers.take())


@contextmanager
def session(root: Path) -> Iterator[Context]:
    """A session without a broker."""
    lake = LakeSource(str(root))
    reader = lake.open()
    backend = HistoryBackend(reader, lambda: latest(reader))
    try:
        yield Context(backend, standard(), deletions=backend.deletions, lake=lake)
    finally:
        lake.close()


def timed(work: Callable[[], Any], runs: int) -> tuple[float, Any]:
    """Median milliseconds, and the last answer."""
    took: list[float] = []
    answer: Any = None
    for _ in range(runs):
        began = time.perf_counter()
        answer = work()
        took.append((time.perf_counter() - began) * 1e3)
    return statistics.median(took), answer


def plain(root: Path, name: str) -> list[Any]:
    """The samples of one statistic of an object, by DuckDB alone."""
    connection = duckdb.connect(config={"threads": 2})
    try:
        return connection.execute(
            f"select _ts_ns, level from read_parquet('{root}/{_FOLDER}/*.parquet') "
            "where _object = ? and _agent = ? and _statistics order by _ts_ns",
            [name, AGENT],
        ).fetchall()
    finally:
        connection.close()


def by_shell(root: Path, line: str) -> int:
    """The whole program."""
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry), "HOME": str(root)}
    program = [sys.executable, "-m", "qmf_shell.main", "--lake", str(root), "-c", line]
    return len(subprocess.run(program, check=True, capture_output=True, env=environment).stdout)


def measure(kind: str, root: Path, objects: int, runs: int) -> list[Figure]:
    """The figures of one lake."""
    name = f"thing-{objects // 2}"
    history = f"history -l 0 {name} level from 2023-11-15T00:00Z to 2023-11-15T23:59:59Z"
    show, every = f"at 2023-11-15T12:00:05Z show {name}", "at 2023-11-15T12:00:05Z list thing"

    def fresh(line: str) -> Any:
        with session(root) as context:
            return evaluate(line, context)

    peer, rows = timed(lambda: plain(root, name), runs)
    took, answer = timed(lambda: fresh(history), runs)
    assert isinstance(answer, ResultGroup)
    table = answer.parts[1]
    assert isinstance(table, Table)
    shown = [getattr(row[1], "value", row[1]) for row in table.rows if row[1] is not None]
    assert shown == [level for _, level in rows], "the answers differ"
    found, _ = timed(lambda: fresh(show), runs)
    listed, answer = timed(lambda: fresh(every), runs)
    assert isinstance(answer, Table)
    assert len(answer.rows) == objects
    started, _ = timed(lambda: by_shell(root, history.replace("-l 0 ", "")), runs)
    limit = LIMIT if kind == "compacted" else None
    return [
        Figure(f"{kind}: history of one object, a day", took, "ms", PEER, peer, limit=limit),
        Figure(f"{kind}: the same, with the start of qmf-shell", started, "ms", PEER, peer),
        Figure(f"{kind}: at noon, show one object", found, "ms"),
        Figure(f"{kind}: at noon, list all {objects:,} objects", listed, "ms"),
    ]


def main() -> int:
    """Measure, print, and compare with the limit."""
    options = parser("The past of one object in a lake of a day.")
    options.add_argument("--values", type=int, default=100_000_000, help="values of the day (%(default)s)")
    options.add_argument("--runs", type=int, default=5, help="answers that count (%(default)s)")
    chosen = options.parse_args()
    objects = max(1, round(chosen.values / SAMPLES / VALUES))
    figures: list[Figure] = []
    for kind in ("compacted", "uncompacted"):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "lake"
            began = time.perf_counter()
            make(root, objects, compacted=kind == "compacted")
            size = sum(path.stat().st_size for path in root.rglob("*.parquet"))
            count = len(list((root / _FOLDER).iterdir()))
            note(
                f"{kind}: {objects * SAMPLES * VALUES:,} values in {count:,} files, {size / 1e6:,.0f} MB, "
                f"made in {time.perf_counter() - began:.0f} s"
            )
            figures += measure(kind, root, objects, chosen.runs)
    report(figures, chosen.json)
    ratio = figures[0].value / LIMIT
    print(f"history of one object in the compacted lake: {ratio:.2f} of the limit of {LIMIT:g} ms")
    return 0 if all(item.reached is not False for item in figures) else 1


if __name__ == "__main__":
    sys.exit(main())
