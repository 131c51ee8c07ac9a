"""A rollup of a real host agent, compared with plain Python over the recorded rows."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pipeline import rollup_reference

from qmf.broker import EmbeddedBroker
from qmf.console.aio import Client
from qmf.hostagent import EmbeddedHostAgent, ProcessSelection, Settings
from qmf.models.host import schema as host
from qmf.pipeline import LakeRecorder
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.location import class_path
from qmf.pipeline.rollup.members import number_members
from qmf.schema import ClassSchema, Style

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")

from pipeline.lakes import HERE

from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.tables import RollupOptions, rollup_table

pytestmark = pytest.mark.slow

SECOND = 10**9

#: Counters, gauges, hilos and mmas are all among their statistics.
CLASSES: tuple[ClassSchema, ...] = (host.SYSTEM, host.CPU, host.MEMORY, host.FILESYSTEM)

Row = dict[str, Any]


def rows_of(lake: Path, kind: ClassSchema) -> list[Row]:
    """The recorded samples of a class."""
    table = DeltaLake(str(lake)).table(class_path(RowKind.OBJECTS, kind.package, kind.key.name))
    if table.version() is None:
        return []
    found = table.dataset(table.snapshot().files).to_table().to_pylist()
    return [row for row in found if row["_statistics"]]


async def record(url: str, lake: Path, start_agent: Callable[[], EmbeddedHostAgent]) -> None:
    """Record an agent that is restarted, until there are samples of both its runs."""
    recorder = LakeRecorder(Client(url, discover=True), DeltaLake(str(lake)), interval=0.2)
    task = asyncio.create_task(recorder.run())
    try:
        for runs in (1, 2):
            agent = await asyncio.to_thread(start_agent)
            async with asyncio.timeout(60):
                while not all(_enough(rows_of(lake, kind), runs) for kind in CLASSES):
                    await asyncio.sleep(0.2)
            await asyncio.to_thread(agent.close)
    finally:
        recorder.stop()
        await task


def _enough(rows: list[Row], runs: int) -> bool:
    samples: dict[int, int] = defaultdict(int)
    for row in rows:
        samples[row["_epoch"]] += 1
    return len(samples) == runs and min(samples.values()) >= 6


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    root = tmp_path_factory.mktemp("host") / "lake"
    settings = Settings(interval=0.3, instance="rollup", selection=ProcessSelection.parse("none"))
    with EmbeddedBroker() as broker:

        def start() -> EmbeddedHostAgent:
            agent = EmbeddedHostAgent(broker.url, settings=settings)
            agent.start()
            return agent

        asyncio.run(record(broker.url, root, start))
        yield root


#: What stands for a row: start of the window in nanoseconds, class, agent, object, member.
Key = tuple[int, str, str | None, str, str]


def by_hand(lake: Path, length: int, *, continued: bool) -> dict[Key, Row]:
    """All rows of the table, by plain Python."""
    found: dict[Key, Row] = {}
    for kind in CLASSES:
        members = number_members([ClassVersion.from_schema(kind)])
        rows = rollup_reference.rolled_up(rows_of(lake, kind), members, length, continued=continued)
        found |= {(start, kind.key.name, *others): row for (start, *others), row in rows.items()}  # type: ignore[misc]
    return found


@pytest.mark.parametrize(("size", "length", "continued"), [("1s", 1, False), ("1h", 3600, True), ("1h", 3600, False)])
def test_a_rollup_of_a_real_agent_equals_its_rows(
    lake: Path, tmp_path: Path, size: str, length: int, continued: bool
) -> None:
    names = tuple(f"{kind.package}:{kind.key.name}" for kind in CLASSES)
    options = RollupOptions(lake=str(lake), out=str(tmp_path), sizes=(size,), classes=names, continued=continued)
    lines: list[str] = []
    count = roll_up_lake(HERE, options, lines.append)
    rows = rollup_table(options, "batch").delta().to_pyarrow_table().to_pylist()
    answers = {
        (int(row["window_start"].timestamp()) * SECOND, row["class"], row["agent"], row["object"], row["member"]): row
        for row in rows
    }
    wanted = by_hand(lake, length, continued=continued)
    assert count == len(rows) == len(answers)
    assert answers.keys() == wanted.keys()
    for key, one in wanted.items():
        for name, value in one.items():
            exact = name.endswith(("_exact", "_ns", "_epoch")) or not isinstance(value, float)
            assert answers[key][name] == (value if exact else pytest.approx(value, rel=1e-9)), (key, name)
    styles = {row["style"] for row in wanted.values()}
    assert styles >= {Style.DIRECT.value, Style.COUNT.value, Style.HILO.value}
    # The agent started anew within the hour, and the kernel's counters didn't.
    if length == 3600:
        assert any(row["resets"] for row in wanted.values()) is not continued
