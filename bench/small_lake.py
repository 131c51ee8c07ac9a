"""A small lake for benchmarks: five classes of samples, one of events, heartbeats, agents and schemas."""

from __future__ import annotations

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.record.buffers import RowBuffers
from qmf.pipeline.record.lake_writer import LakeWriter
from qmf.schema import TYPES, Argument, ClassSchema, EventSchema, Property, Severity, Statistic

SECOND = 10**9
RUN, AGENT, START = "00000000000000000001_1", "example.org:bench:small", 1_700_000_000

CLASSES, OBJECTS, COMMITS, SAMPLES = 5, 20, 4, 180

#: Rules over it.
RULES = """
[busy]
kind = "threshold"
class = "thing0"
value = "level"
above = 98
[growing]
kind = "rate"
class = "thing1"
value = "done"
above = 1000
[silent]
kind = "absence"
of = "heartbeats"
expect = ["example.org:bench:small"]
for = "60s"
"""

_EVENT = ClassVersion.from_schema(
    EventSchema(
        package="org.example.bench",
        name="happened",
        severity=Severity.INFORM,
        arguments=(Argument(name="what", type=TYPES["sstr"]),),
    )
)

_TABLES = [
    ClassVersion.from_schema(
        ClassSchema(
            package="org.example.bench",
            name=f"thing{number}",
            properties=(Property(name="name", type=TYPES["sstr"], index=True),),
            statistics=(
                Statistic(name="done", type=TYPES["count64"]),
                Statistic(name="level", type=TYPES["int32"]),
                Statistic(name="load", type=TYPES["double"]),
            ),
        )
    )
    for number in range(CLASSES)
]


class SmallLake:
    """The lake, which can grow."""

    def __init__(self, url: str) -> None:
        #: The lake.
        self.lake = DeltaLake(url)
        self.lake.create()
        self._writer = LakeWriter(self.lake, "bench")
        self._commits = self._samples = self._seq = 0
        self._buffers = RowBuffers()
        for table in (*_TABLES, _EVENT):
            cells = (table.package, table.name, table.hash, table.event, table.to_json(), "", None)
            self._add(RowKind.SCHEMAS, START * SECOND, cells)
        self._add(RowKind.AGENTS, START * SECOND, ("added", None, 10.0))
        for _ in range(COMMITS):
            self.commit(SAMPLES // COMMITS)

    def __str__(self) -> str:
        files = sum(len(self.lake.table(path).snapshot().files) for path in self.lake.paths())
        return f"{self._seq} rows in {files} files"

    def commit(self, samples: int) -> None:
        """Record so many samples more of each object, 20 seconds apart."""
        for sample in range(self._samples, self._samples + samples):
            at_ns = (START + 20 * sample) * SECOND
            for table in _TABLES:
                for own in range(OBJECTS):
                    name = f"{table.name}-{own}"
                    state = (name, 1, START * SECOND, 0, sample % 60 == 0, True)
                    self._add(RowKind.OBJECTS, at_ns, (*state, name, sample * own, sample % 100, sample / 7), table)
            for beat in range(2):
                self._add(RowKind.HEARTBEATS, at_ns + beat * 10 * SECOND, (10.0, None, 1, None, None))
            for number in range(8):
                self._add(RowKind.EVENTS, at_ns + number, (6, None, f"event {number}"), _EVENT)
        self._samples += samples
        self._commits += 1
        self._writer.commit(self._commits, self._buffers.take())

    def _add(self, kind: RowKind, at_ns: int, cells: tuple[object, ...], table: ClassVersion | None = None) -> None:
        self._seq += 1
        self._buffers.add(kind, table, at_ns, (RUN, self._seq, at_ns // 1000, at_ns, at_ns, AGENT, 1, *cells))
