"""How do the stages of the pipeline grow with the number of agents?

For each number of agents, two recorders, each with half of the agents, write heartbeats (one each ten seconds, for ten
minutes) and samples of ten objects each into a lake of its own; then jobs read it. Prints processor seconds of each
stage, of all threads, and its exponent from one number of agents to the next: 1 is linear. Agents are invented: rows
are made where a recorder makes them from messages, and pass through the same buffers, conversions and commits.

    python bench/pipeline_scale.py [AGENTS ...]

Each stage runs in a process of its own.
"""

from __future__ import annotations

import itertools
import math
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from qmf.models.host.schema import CPU
from qmf.pipeline.audit.job import audit_lake
from qmf.pipeline.audit.tables import AuditOptions
from qmf.pipeline.correlate.batch import correlate_batch
from qmf.pipeline.correlate.batch_input import CorrelateOptions
from qmf.pipeline.correlate.rule_file import load_rules
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.runs import RecordedRuns
from qmf.pipeline.lake.waiting import Share
from qmf.pipeline.maintenance.checking import LakeCheck
from qmf.pipeline.maintenance.optimizing import optimize_lake
from qmf.pipeline.record.buffers import RowBuffers, RowConverter
from qmf.pipeline.record.heartbeats import HeartbeatIntervals
from qmf.pipeline.record.lake_writer import LakeWriter
from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.tables import RollupOptions
from qmf.pipeline.runners.process import ProcessRunner

SECOND = 10**9
START = 1_900_000_800 * SECOND

#: Heartbeats of each agent (ten minutes), objects of each, and samples of each of these.
HEARTBEATS, OBJECTS, SAMPLES = 60, 10, 2

#: Recorders that divide the agents.
RECORDERS = 2

#: Rows of a commit at most.
ROWS = 100_000

RULES = Path(__file__).resolve().parent.parent / "examples" / "rules.toml"

VERSION = ClassVersion.from_schema(CPU)


class Writer:
    """One recorder, as far as rows are made and committed."""

    def __init__(self, lake: DeltaLake, number: int, first: int = 1) -> None:
        self._run = f"{START:020d}_{number}"
        self._writer = LakeWriter(lake, f"recorder{number}")
        self._buffers = RowBuffers()
        self._seq, self._rows, self._batch = first - 1, 0, self._writer.next_batch() - 1

    def add(self, kind: RowKind, at: int, agent: str | None, cells: tuple[object, ...]) -> None:
        """Add a row; many are a commit."""
        self._seq += 1
        common = (self._run, self._seq, at // 1000, at, at, agent, 1)
        self._buffers.add(kind, VERSION if kind is RowKind.OBJECTS else None, at, (*common, *cells))
        self._rows += 1
        if self._rows >= ROWS:
            self.commit()

    def add_heartbeats(self, at: int, agent: str | None, _epoch: int | None, cells: tuple[object, ...]) -> None:
        """Add a row of heartbeats."""
        self.add(RowKind.HEARTBEATS, at, agent, cells)

    def commit(self) -> None:
        """Commit the rows that wait."""
        self._batch += 1
        self._writer.commit(self._batch, self._buffers.take())
        self._rows = 0


def agents_of(agents: int, number: int) -> list[str]:
    """The agents of a recorder."""
    share = Share(number, RECORDERS)
    return [name for name in (f"example.org:scale:{at}" for at in range(agents)) if share.has(name)]


class _Clock:
    """A clock that stands still."""

    def __init__(self, now: int) -> None:
        self.now = now

    def __call__(self) -> int:
        return self.now


def record_heartbeats(lake: DeltaLake, agents: int) -> None:
    """Both recorders, one after the other."""
    lake.create()
    for number in range(1, RECORDERS + 1):
        writer, own = Writer(lake, number), agents_of(agents, number)
        row = (VERSION.package, VERSION.name, VERSION.hash, False, VERSION.to_json(), "", None)
        writer.add(RowKind.SCHEMAS, START, None, row)
        for name in own:
            writer.add(RowKind.AGENTS, START, name, ("added", None, 10.0))
        now = itertools.count(START, 10 * SECOND)
        clock = _Clock(next(now))
        intervals = HeartbeatIntervals(writer.add_heartbeats, clock)
        for _beat in range(HEARTBEATS):
            for name in own:
                intervals.on_heartbeat(name, 1, 10.0, clock.now)
            intervals.write()
            clock.now = next(now)
        writer.commit()


def record_samples(lake: DeltaLake, agents: int) -> None:
    """Both recorders, one after the other."""
    converter = RowConverter(VERSION)
    tables = [lake.kind_table(kind) for kind in (RowKind.SCHEMAS, RowKind.AGENTS, RowKind.HEARTBEATS)]
    runs = [table.dataset(table.snapshot().files).to_table(["_run"])["_run"].to_pylist() for table in tables]
    recorded = [int(run[-1]) for own in runs for run in own]
    for number in range(1, RECORDERS + 1):
        names = agents_of(agents, number)
        writer = Writer(lake, number, first=1 + sum(run == number for run in recorded))
        for sample in range(SAMPLES):
            at = START + sample * 60 * SECOND
            for name in names:
                for processor in range(OBJECTS):
                    values: dict[str, object] = {"cpuId": processor, "userTime": sample * 7, "idleTime": sample * 3}
                    own = (f"qmf.host:cpu:{processor}", 1, START, 0, sample == 0, True)
                    writer.add(RowKind.OBJECTS, at, name, (*own, *converter.cells(values, statistics=True)))
        writer.commit()


def find_shared(lake: DeltaLake, _agents: int) -> None:
    """Which recorders had the same agents: none."""
    assert RecordedRuns(lake).left_out_rows() == ()


def roll_up(lake: DeltaLake, _agents: int) -> None:
    """Windows of an hour."""
    roll_up_lake(
        ProcessRunner(), RollupOptions(lake=lake.url, out=f"{lake.url}/_tables/rollup", sizes=("1h",)), _ignore
    )


def watch(lake: DeltaLake, _agents: int) -> None:
    """The example rules."""
    correlate_batch(
        ProcessRunner(),
        CorrelateOptions(lake=lake.url, out=f"{lake.url}/_tables/correlate", rules=load_rules(RULES)),
        _ignore,
    )


def audit(lake: DeltaLake, _agents: int) -> None:
    """Availability and lifetimes."""
    audit_lake(ProcessRunner(), AuditOptions(lake=lake.url, out=f"{lake.url}/_tables/audit/batch"), _ignore)


def combine(lake: DeltaLake, _agents: int) -> None:
    """Combine small files."""
    optimize_lake(ProcessRunner(), lake)


def check(lake: DeltaLake, _agents: int) -> None:
    """Check the lake."""
    findings = [finding for finding in LakeCheck(ProcessRunner(), lake).findings() if finding.is_damage]
    assert findings == [], findings[:3]


def _ignore(_text: str) -> None:
    return


STAGES: dict[str, Callable[[DeltaLake, int], None]] = {
    "record heartbeats": record_heartbeats,
    "record samples": record_samples,
    "find agents that two recorders have": find_shared,
    "rollup --size 1h": roll_up,
    "correlate, ten rules": watch,
    "audit": audit,
    "check": check,
    "optimize": combine,
}


def run_stage(name: str, folder: str, agents: int) -> tuple[float, float]:
    """Processor seconds and peak memory in MB of a stage, in a process of its own."""
    command = [sys.executable, __file__, "--stage", name, folder, str(agents)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{name} with {agents} agents failed:\n{done.stderr}")
    seconds, memory = done.stdout.split()
    return float(seconds), float(memory)


def main() -> None:
    """Measure all stages with each number of agents."""
    if sys.argv[1:2] == ["--stage"]:
        stage, place, number = sys.argv[2:]
        started = time.process_time()
        STAGES[stage](DeltaLake(place), int(number))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(time.process_time() - started, peak)
        return
    sizes = [int(word) for word in sys.argv[1:]] or [1_000, 10_000, 100_000]
    found: dict[int, dict[str, float]] = {}
    for agents in sizes:
        with tempfile.TemporaryDirectory() as folder:
            found[agents] = {}
            rows = agents * (HEARTBEATS + OBJECTS * SAMPLES + 1)
            print(f"{agents} agents, {rows} heartbeats and samples", flush=True)
            for name in STAGES:
                seconds, memory = run_stage(name, folder, agents)
                found[agents][name] = seconds
                print(f"  {name}: {seconds:.2f} s, {1e6 * seconds / rows:.2f} µs each, {memory:.0f} MB", flush=True)
                if name == "record heartbeats":
                    files = DeltaLake(folder).kind_table(RowKind.HEARTBEATS).snapshot().files
                    size = sum(file.size for file in files) / 1e6
                    print(f"    {sum(file.rows for file in files)} rows, {size:.2f} MB", flush=True)
    for one, two in itertools.pairwise(sizes):
        for name in STAGES:
            exponent = math.log(found[two][name] / found[one][name]) / math.log(two / one)
            print(f"{one} to {two} agents: {name}: {exponent:.2f}")


if __name__ == "__main__":
    main()
