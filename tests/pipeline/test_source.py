"""The data source `qmf`, and the rollup job over it: snapshots, streams, kills."""

from __future__ import annotations

import random
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pipeline.shop import PACKAGE, TILL
from support.processes import Process, eventually, running

from qmf.broker import EmbeddedBroker
from qmf.hostagent import EmbeddedHostAgent, Selection, Settings
from qmf.pipeline import Lake, LakeError
from qmf.pipeline.buffers import Buffers, commit
from qmf.pipeline.kinds import OWN, RowKind
from qmf.pipeline.members import Table, table_of
from qmf.pipeline.upkeep import compact
from qmf.schema import TYPES, ClassSchema, Property, Statistic

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline import jobs
from qmf.pipeline import spark as lakes

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

PROGRAM = "import sys; from qmf.pipeline.cli import main; sys.exit(main())"
SECOND = 10**9


class Shop:
    """Writes samples of tills into a lake, as a recorder would."""

    def __init__(self, root: Path) -> None:
        self.lake = Lake(root)
        self.lake.create()
        self._seq = self._files = 0

    def put(self, *samples: tuple[float, int], table: Table | None = None, **more: int) -> None:
        """Commit samples of `sales`, each with its time in seconds."""
        table = table or table_of(TILL)
        buffers = Buffers()
        schema = (table.package, table.name, table.hash, False, table.to_json(), "")
        self._add(buffers, RowKind.SCHEMAS, 0, schema, None)
        for at, sales in samples:
            own = ("one", 0, 0, 0, False, True)
            values = {"sales": sales, **more}
            cells = tuple(values.get(column.name) for column in table.columns)
            self._add(buffers, RowKind.OBJECTS, int(at * SECOND), (*own, *cells), table)
        batch = buffers.take()
        commit(self.lake, "shop", "00000000000000000001_1", self._files + 1, batch)
        self._files += len(batch.parts)

    def _add(
        self, buffers: Buffers, kind: RowKind, time_ns: int, cells: tuple[object, ...], table: Table | None
    ) -> None:
        self._seq += 1
        common = ("00000000000000000001_1", self._seq, time_ns // 1000, time_ns, time_ns, "a", 1)
        assert len(cells) >= len(OWN[kind])
        buffers.add(kind, table, time_ns, (*common, *cells))


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


def newer() -> Table:
    """The class with one statistic and one property more."""
    schema = ClassSchema(
        package=PACKAGE,
        name="till",
        properties=(*TILL.properties, Property(name="colour", type=TYPES["sstr"])),
        statistics=(*TILL.statistics, Statistic(name="coins", type=TYPES["count32"])),
    )
    return table_of(schema)


def test_a_lake_is_read_with_all_versions_of_a_class(spark: SparkSession, shop: Shop) -> None:
    shop.put((1, 10), (2, (1 << 64) - 1))
    shop.put((3, 7), table=newer(), coins=5)
    root = str(shop.lake.root)
    of = lakes.versions(lakes.tables(root), PACKAGE, "Till")
    rows = lakes.read(spark, root, RowKind.OBJECTS, of).orderBy("_seq").collect()
    assert [(int(row["sales"]), row["coins"], row["qmf_date"]) for row in rows] == [
        (10, None, "1970-01-01"),
        ((1 << 64) - 1, None, "1970-01-01"),
        (7, 5, "1970-01-01"),
    ]
    with pytest.raises(LakeError, match="no class 'shelf'"):
        lakes.versions(lakes.tables(root), None, "shelf")


def test_versions_that_disagree_are_told(shop: Shop) -> None:
    shop.put((1, 1))
    schema = ClassSchema(package=PACKAGE, name="till", statistics=(Statistic(name="sales", type=TYPES["float"]),))
    of = [table_of(TILL), table_of(schema)]
    with pytest.raises(LakeError, match="disagree about sales"):
        lakes.schema_of(RowKind.OBJECTS, of)


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    settings = Settings(interval=0.2, instance="spark", selection=Selection.parse("none"))
    with EmbeddedBroker() as broker, EmbeddedHostAgent(broker.url, settings=settings):
        yield broker.url


def test_a_snapshot_of_the_bus(spark: SparkSession, url: str) -> None:
    frame = spark.read.format("qmf").option("url", url).option("package", "qmf.host").option("class", "memory").load()
    (row,) = frame.collect()
    assert row["_agent"] == "qmf:host:spark"
    assert row["total"] > 0


def test_a_bus_is_followed_through_a_spool(spark: SparkSession, url: str, tmp_path: Path) -> None:
    stream = spark.readStream.format("qmf").options(
        **{"url": url, "spool": str(tmp_path / "spool"), "class": "memory", "interval": "0.1"}
    )
    query = (
        stream.load()
        .select("_run", "_seq")
        .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start(str(tmp_path / "out"))
    )
    try:
        eventually(
            "rows came through", lambda: _committed(spark, tmp_path / "out") > 3 or query.exception() is not None
        )
        assert query.exception() is None
    finally:
        query.stop()
    rows = spark.read.parquet(str(tmp_path / "out"))
    assert rows.count() == rows.distinct().count()


def key(rows: list[Any]) -> list[tuple[object, ...]]:
    return sorted((row["window_start"], row["member"], row["delta_exact"], row["samples"]) for row in rows)


def test_a_batch_again_gives_the_same_and_late_data_changes_its_window_only(spark: SparkSession, shop: Shop) -> None:
    shop.put((1, 10), (61, 20), (90, 25))
    options = jobs.RollupOptions(lake=str(shop.lake.root), out=str(shop.lake.root / "_tables"), sizes=("1m",))
    said: list[str] = []
    assert jobs.rollup_batch(spark, options, said.append) == 2
    assert said[0].startswith("org.example.shop:till rolled up in ")
    first = key(jobs.rolled_up(spark, options).collect())
    assert jobs.rollup_batch(spark, options, said.append) == 2
    assert key(jobs.rolled_up(spark, options).collect()) == first
    shop.put((30, 14))
    compact(shop.lake)
    jobs.rollup_batch(spark, options, said.append)
    again = key(jobs.rolled_up(spark, options).collect())
    assert [row[2:] for row in again] == [(4, 2), (5, 2)]


def test_a_killed_stream_goes_on_without_loss_or_repetition(shop: Shop, spark: SparkSession) -> None:
    chance = random.Random(random.randrange(1000))  # pytest-randomly's seed tells which
    root, out = shop.lake.root, shop.lake.root / "_tables"
    stream = [
        *(sys.executable, "-c", PROGRAM, "rollup", "--stream", "--lake", str(root), "--out", str(out)),
        *("--size", "10s", "--every", "0 seconds", "--late", "0 seconds", "--master", "local[1]"),
    ]
    total, at = 0, 0.0

    def more() -> None:
        nonlocal total, at
        for _ in range(chance.randint(2, 5)):
            samples = []
            for _ in range(20):
                at, total = at + 1, total + chance.randrange(100)
                samples.append((at, total))
            shop.put(*samples)

    more()
    offsets = out / "checkpoints" / "qmf_size=10s" / f"qmf_package={PACKAGE}" / "qmf_class=till" / "offsets"
    with running(*stream) as process:
        _started(process)
        eventually("a batch was begun", lambda: any(offsets.glob("[0-9]*")), 90)
        more()
        threading.Event().wait(chance.uniform(0, 3))  # anywhere in its work: that is the point
        process.end(signal.SIGKILL)
    shop.put((at + 1000, total))
    with running(*stream) as process:
        _started(process)
        seen = out / "stream" / "qmf_size=10s" / f"qmf_package={PACKAGE}" / "qmf_class=till"
        want = int(at) // 10 + 1
        eventually("every closed window is out", lambda: _committed(spark, seen) >= want, 90)
        assert process.end() == 0
    options = jobs.RollupOptions(lake=str(root), out=str(out), sizes=("10s",))
    streamed = key(jobs.rolled_up(spark, options, by="stream").collect())
    jobs.rollup_batch(spark, options, lambda _text: None)
    batch = key(jobs.rolled_up(spark, options).collect())
    # The last window stays open until something later comes; all others are the same, each once.
    assert streamed == batch[:-1]
    assert sum(row[3] for row in streamed) == at  # type: ignore[misc]


def _committed(spark: SparkSession, folder: Path) -> int:
    """Rows of the batches that are whole, by the sink's own list of files."""
    listed = folder / "_spark_metadata"
    if not listed.is_dir() or not any(path.suffix != ".crc" for path in listed.glob("[!.]*")):
        return 0
    return spark.read.schema("anything string").parquet(str(folder)).count()


def _started(process: Process) -> None:
    """Wait until the queries run: Spark takes its time where the processors are busy."""
    for attempt in range(4):
        try:
            process.wait_for("Following ")
        except AssertionError:
            if attempt == 3 or process.popen.poll() is not None:
                raise
        else:
            return
