"""A rollup of a real host agent, compared with plain Python over the recorded rows."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterator
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pyarrow.parquet
import pytest

from qmf.broker import EmbeddedBroker
from qmf.console.aio import Client
from qmf.hostagent import EmbeddedHostAgent, ProcessSelection, Settings
from qmf.models.host import schema as host
from qmf.pipeline import Lake, LakeRecorder
from qmf.schema import ClassSchema, Statistic, Style

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.aggregation.tables import RollupOptions
from qmf.pipeline.rollup.job import read_rollups, rollup_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

SECOND = 10**9

#: Counters, gauges, hilos and mmas are all among their statistics.
CLASSES: tuple[ClassSchema, ...] = (host.SYSTEM, host.CPU, host.MEMORY, host.FILESYSTEM)

Row = dict[str, Any]


def rows_of(lake: Path, kind: ClassSchema) -> list[Row]:
    """The recorded samples of a class."""
    folder = lake / "objects" / f"qmf_package={kind.package}" / f"qmf_class={kind.key.name}"
    found: list[Row] = []
    for path in folder.rglob("[!.]*.parquet"):
        found += pyarrow.parquet.ParquetFile(path).read().to_pylist()
    return [row for row in found if row["_statistics"]]


async def record(url: str, lake: Path, start_agent: Callable[[], EmbeddedHostAgent]) -> None:
    """Record an agent that is restarted, until there are samples of both its runs."""
    recorder = LakeRecorder(Client(url, discover=True), Lake(lake), interval=0.2)
    task = asyncio.create_task(recorder.run())
    try:
        for lives in (1, 2):
            agent = await asyncio.to_thread(start_agent)
            async with asyncio.timeout(60):
                while not all(_enough(rows_of(lake, kind), lives) for kind in CLASSES):
                    await asyncio.sleep(0.2)
            await asyncio.to_thread(agent.close)
    finally:
        recorder.stop()
        await task


def _enough(rows: list[Row], lives: int) -> bool:
    samples: dict[int, int] = defaultdict(int)
    for row in rows:
        samples[row["_epoch"]] += 1
    return len(samples) == lives and min(samples.values()) >= 6


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


@attrs.frozen
class Grown:
    """Growth and restarts of a counter in a window."""

    delta: int
    resets: int


def grown(rows: list[Row], name: str, *, continued: bool) -> Grown:
    delta = resets = 0
    for before, after in pairwise(rows):
        anew = not continued and before["_epoch"] != after["_epoch"]
        is_reset = anew or after[name] < before[name]
        delta += int(after[name]) if is_reset else int(after[name] - before[name])
        resets += is_reset
    return Grown(delta, resets)


def expected(rows: list[Row], statistic: Statistic, *, continued: bool) -> Row | None:
    """The rollup of a statistic from a window's rows of an object; None for no value."""
    name, style = statistic.name, statistic.type.style
    value, low, high = name, name, name
    if style is Style.HILO:
        low, high = f"{name}Low", f"{name}High"
    if style is Style.MMA:
        value, low, high = f"{name}Avg", f"{name}Min", f"{name}Max"
        rows = [row for row in rows if row[f"{name}Count"]]
    rows = sorted((row for row in rows if row[value] is not None), key=lambda row: (row["_ts_ns"], row["_seq"]))
    if not rows:
        return None
    weights = [int(row[f"{name}Count"]) if style is Style.MMA else 1 for row in rows]
    total = sum(row[value] * weight for row, weight in zip(rows, weights, strict=True))
    numbers = {
        "first": rows[0][value],
        "last": rows[-1][value],
        "low": min(row[low] for row in rows),
        "high": max(row[high] for row in rows),
        "total": total,
    }
    is_whole = not isinstance(rows[0][value], float)
    steps = grown(rows, name, continued=continued) if style is Style.COUNT else None
    span = (rows[-1]["_ts_ns"] - rows[0]["_ts_ns"]) / SECOND
    return {
        **{key: float(number) for key, number in numbers.items()},
        **{f"{key}_exact": Decimal(int(number)) if is_whole else None for key, number in numbers.items()},
        **{f"{key}_ns": rows[at]["_ts_ns"] for key, at in (("first", 0), ("last", -1))},
        **{f"{key}_epoch": rows[at]["_epoch"] for key, at in (("first", 0), ("last", -1))},
        "samples": len(rows),
        "weight": sum(weights),
        "mean": float(total) / sum(weights),
        "delta_exact": steps.delta if steps else None,
        "delta": steps.delta if steps else None,
        "resets": steps.resets if steps else None,
        "rate": steps.delta / span if steps and span > 0 else None,
        "style": style.value,
        "unit": statistic.unit,
    }


#: What stands for a row: start of the window in seconds, class, agent, object, member.
Key = tuple[int, str, str, str, str]


def by_hand(lake: Path, length: int, *, continued: bool) -> dict[Key, Row]:
    """All rows of the table, by plain Python."""
    found: dict[Key, Row] = {}
    for kind in CLASSES:
        windows: dict[tuple[int, str, str], list[Row]] = defaultdict(list)
        for row in rows_of(lake, kind):
            start = row["_ts_ns"] // (length * SECOND) * length
            windows[start, row["_agent"], row["_object"]].append(row)
        for (start, agent, name), rows in windows.items():
            for statistic in kind.statistics:
                if statistic.type.base in ("absTime", "bool", "sstr", "lstr", "uuid", "map", "list", "objId"):
                    continue
                one = expected(rows, statistic, continued=continued)
                if one is not None:
                    found[start, kind.key.name, agent, name, statistic.name] = one
    return found


@pytest.mark.parametrize(("size", "length", "continued"), [("1s", 1, False), ("1h", 3600, True), ("1h", 3600, False)])
def test_a_rollup_of_a_real_agent_equals_its_rows(
    spark: SparkSession, lake: Path, tmp_path: Path, size: str, length: int, continued: bool
) -> None:
    names = tuple(f"{kind.package}:{kind.key.name}" for kind in CLASSES)
    options = RollupOptions(lake=str(lake), out=str(tmp_path), sizes=(size,), classes=names, continued=continued)
    lines: list[str] = []
    count = rollup_batch(spark, options, lines.append)
    rows = read_rollups(spark, options).selectExpr("*", "unix_timestamp(window_start) as start").collect()
    answers = {(row["start"], row["class"], row["agent"], row["object"], row["member"]): row.asDict() for row in rows}
    wanted = by_hand(lake, length, continued=continued)
    assert count == len(rows) == len(answers)
    assert answers.keys() == wanted.keys()
    for key, one in wanted.items():
        answer = {name: answers[key][name] for name in one}
        for name, value in one.items():
            exact = name.endswith(("_exact", "_ns", "_epoch")) or not isinstance(value, float)
            assert answer[name] == (value if exact else pytest.approx(value, rel=1e-12)), (key, name)
    styles = {row["style"] for row in wanted.values()}
    assert styles >= {Style.DIRECT.value, Style.COUNT.value, Style.HILO.value}
    # The agent started anew within the hour, and the kernel's counters didn't.
    if length == 3600:
        assert any(row["resets"] for row in wanted.values()) is not continued
