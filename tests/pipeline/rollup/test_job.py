"""The job `rollup` as a batch and as a stream: the same rows, whatever the clocks, the order, or kills."""

from __future__ import annotations

import datetime
import random
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from pipeline.kills import kill_family
from pipeline.lakes import Shop
from pipeline.quick import PATIENCE, QUICK
from pipeline.shop import TILL
from support.processes import running
from support.waiting import wait_until

from qmf.pipeline.aggregation.tables import RollupOptions
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.maintenance import compact

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from pyspark.sql import functions as F

from qmf.pipeline.frames import Frames
from qmf.pipeline.rollup import job, rollup
from qmf.pipeline.spark.streaming_queries import MetricsCollector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

PROGRAM = "import sys; from qmf.pipeline.cli import main; sys.exit(main())"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


@pytest.fixture
def options(shop: Shop) -> RollupOptions:
    return RollupOptions(lake=shop.root, out=f"{shop.root}/_tables", sizes=("1m",), late="60 seconds")


def ignore(_text: str) -> None:
    """Ignore a line of output."""


def rows(spark: SparkSession, options: RollupOptions, by: str = "batch") -> list[tuple[Any, ...]]:
    """Start of the window in seconds, member, object, growth, restarts, samples."""
    found = []
    for row in job.read_rollups(spark, options, by).where("member = 'sales'").collect():
        start = int(row["window_start"].replace(tzinfo=datetime.UTC).timestamp())
        found.append((start, row["object"], int(row["delta_exact"]), row["resets"], row["samples"]))
    return sorted(found)


def batch(spark: SparkSession, options: RollupOptions) -> list[tuple[Any, ...]]:
    job.rollup_batch(spark, options, ignore)
    return rows(spark, options)


def stream(spark: SparkSession, options: RollupOptions) -> MetricsCollector:
    """Run a stream over all that is in the lake."""
    (query,) = job.rollup_stream(spark, options, once=True)
    assert query.awaitTermination(PATIENCE)
    return MetricsCollector(query)


def test_a_repeated_batch_is_the_same_and_late_data_changes_its_window_only(
    spark: SparkSession, shop: Shop, options: RollupOptions
) -> None:
    shop.put((1, 10), (61, 20), (90, 25))
    lines: list[str] = []
    assert job.rollup_batch(spark, options, lines.append) == 2
    assert lines[-2] == "org.example.shop:till by 1m: 3 samples became 2 rows"
    assert lines[-1].startswith("Rolled up by 1m in ")
    first = rows(spark, options)
    assert batch(spark, options) == first == [(0, "one", 0, 0, 1), (60, "one", 5, 0, 2)]
    shop.put((30, 14))
    compact(shop.lake)
    assert batch(spark, options) == [(0, "one", 4, 0, 2), (60, "one", 5, 0, 2)]


@pytest.mark.parametrize("large", [0, 2, job.LARGE])
def test_a_batch_of_several_classes_equals_batches_of_each(
    spark: SparkSession,
    shop: Shop,
    options: RollupOptions,
    monkeypatch: pytest.MonkeyPatch,
    large: int,
) -> None:
    monkeypatch.setattr(job, "LARGE", large)
    strange = attrs.evolve(ClassVersion.from_schema(TILL), package="p/q", name="ä b")
    texts = attrs.evolve(strange, name="texts", columns=strange.columns[:1])
    shop.put((1, 10), (2, 12), queue=3, queueLow=1, queueHigh=5)
    shop.put((1, 5), (61, 3), table=strange, serviceCount=2, serviceMin=1, serviceMax=9, serviceAvg=4)
    shop.put((1, 0), table=texts, name="x")
    lines: list[str] = []
    assert job.rollup_batch(spark, options, lines.append) == 2 + 4
    # Where it takes long, there are lines of progress as well.
    assert [line for line in lines[:-1] if "samples became" in line] == [
        "org.example.shop:till by 1m: 2 samples became 2 rows",
        "p/q:texts by 1m: 1 samples became 0 rows",
        "p/q:ä b by 1m: 2 samples became 4 rows",
    ]
    together = sorted(job.read_rollups(spark, options).collect())
    folders = {path.relative_to(options.out).as_posix() for path in Path(options.out).glob("batch/*/*/*")}
    assert f"batch/qmf_size=1m/qmf_package={b'p/q'.hex()}/qmf_class={'ä b'.encode().hex()}" in folders
    alone: list[Any] = []
    for of in Frames(spark, shop.root).classes():
        alone += rollup(Frames(spark, shop.root).class_rows(of), of, "1m").withColumn("qmf_size", F.lit("1m")).collect()
    assert together == sorted(alone)


def test_a_stream_waits_for_late_data_and_counts_what_is_too_late(
    spark: SparkSession, shop: Shop, options: RollupOptions
) -> None:
    shop.put((1, 10), (70, 20))
    stream(spark, options)
    shop.put((30, 14))  # late, but within a minute of the latest
    shop.put((200, 30))
    assert stream(spark, options).collect().late == 0
    assert rows(spark, options, "stream") == [(0, "one", 4, 0, 2), (60, "one", 0, 0, 1)]
    shop.put((50, 16), (400, 40))
    assert stream(spark, options).collect().late == 1
    assert rows(spark, options, "stream") == [(0, "one", 4, 0, 2), (60, "one", 0, 0, 1), (180, "one", 0, 0, 1)]
    assert batch(spark, options)[0] == (0, "one", 6, 0, 3)


def test_restarts_and_resets_have_known_answers_in_both(
    spark: SparkSession, shop: Shop, options: RollupOptions
) -> None:
    shop.put((1, 100), (2, 110))
    shop.put((3, 115), (4, 120), epoch=2)  # another start of the agent: counted from zero
    shop.put((5, 3), (6, 8), epoch=2)  # a reset by hand
    shop.put((1000, 0), epoch=2)
    stream(spark, options)
    expected = (0, "one", 10 + 115 + 5 + 3 + 5, 2, 6)
    assert rows(spark, options, "stream") == [expected]
    assert batch(spark, options)[0] == expected


def test_a_clock_set_back_is_not_a_restart(spark: SparkSession, shop: Shop, options: RollupOptions) -> None:
    shop.put((30, 10), (40, 20), (50, 30))
    shop.put((20, 40), (35, 50), (45, 60))  # half a minute back, within the window
    assert batch(spark, options) == [(0, "one", 50, 0, 6)]


def test_a_clock_far_ahead_does_not_make_other_rows_late(
    spark: SparkSession, shop: Shop, options: RollupOptions
) -> None:
    shop.put((10, 1), (20, 2))
    shop.put((10**9, 5), object="ahead", agent="b", received=20)
    stream(spark, options)
    shop.put((30, 3), (300, 4))
    found = stream(spark, options).collect()
    assert found.late == 0
    assert rows(spark, options, "stream") == [(0, "one", 2, 0, 3)]
    assert [row for row in batch(spark, options) if row[1] == "ahead"] == [(999_999_960, "ahead", 0, 0, 1)]


@pytest.mark.soak
def test_killed_at_a_random_point_the_command_continues_without_loss_or_repetition(
    spark: SparkSession, shop: Shop
) -> None:
    chance = random.Random(random.randrange(1000))  # pytest-randomly prints the seed
    options = RollupOptions(lake=shop.root, out=f"{shop.root}/_tables/rollup", sizes=("10s",), late="0 seconds")
    total, at = 0, 0

    def more() -> None:
        nonlocal total, at
        for _ in range(chance.randint(2, 5)):
            samples = []
            for _ in range(20):
                at, total = at + 1, total + chance.randrange(100)
                samples.append((at, total))
            shop.put(*samples)

    command = ("rollup", "--stream", "--late", "0s", "--every", "0s", "--lake", shop.root, "--size", "10s")
    settings = [f"--conf={key}={value}" for key, value in {**QUICK, "spark.sql.shuffle.partitions": "1"}.items()]
    more()
    with running(sys.executable, "-c", PROGRAM, *command, "--master", "local[1]", *settings) as process:
        begun = Path(options.out) / "stream"
        wait_until(lambda: any(begun.glob("**/_checkpoint/offsets/[0-9]*")), "a batch", PATIENCE)
        for _ in range(3):
            more()
            threading.Event().wait(chance.uniform(0, 1))  # so that the kill comes at any point of its work
        kill_family(process)
    shop.put((at + 1000, total))
    stream(spark, options)
    streamed, expected = rows(spark, options, "stream"), batch(spark, options)
    # The last window stays open until something later comes; all others are the same, each once.
    assert streamed == expected[:-1]
    assert sum(row[4] for row in streamed) == at
