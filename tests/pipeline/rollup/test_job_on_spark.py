"""The job `rollup` as a batch on Spark: the table is that of the job in one process."""

from __future__ import annotations

import math
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import pytest
from pipeline.lakes import HERE, Shop
from pipeline.shop import TILL

from qmf.pipeline import LakeError
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.rollup.source import class_sources
from qmf.pipeline.rollup.stream_windows import WindowRange
from qmf.pipeline.rollup.tables import PARTITIONS, RollupOptions, rollup_schema, rollup_table
from qmf.schema import TYPES, ClassSchema, Statistic

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.rollup import job
from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.stream import RollupStream, TaskRollupStream
from qmf.pipeline.rollup.tasks import WindowTask, task_rows
from qmf.pipeline.runners.spark import SparkRunner

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.slow

DAY = 86_400
OTHER = attrs.evolve(ClassVersion.from_schema(TILL), package="p/q", name="ä b")
TEXTS = attrs.evolve(OTHER, name="texts", columns=OTHER.columns[:1])


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path / "lake")
    for number in range(4):
        made.put((1, 10 + number), (DAY - 5, 20), (DAY + 7, 25 + number), object=f"till-{number}")
    made.put((1, 5), (61, 3), table=OTHER, serviceCount=2, serviceMin=1, serviceMax=9, serviceAvg=4)
    made.put((1, 0), table=TEXTS, name="x")
    return made


def ignore(_text: str) -> None:
    """Ignore a line of output."""


def table(options: RollupOptions, by: str = "batch") -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = rollup_table(options, by).delta().to_pyarrow_table().to_pylist()
    return sorted(
        rows, key=lambda row: tuple(str(row[name]) for name in ("size", "class", "window_start", "object", "member"))
    )


@pytest.mark.parametrize(("limit", "timezone"), [(2, "UTC"), (5_000_000, "Europe/Berlin")])
def test_it_writes_what_the_job_in_one_process_writes(
    spark: SparkSession, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int, timezone: str
) -> None:
    monkeypatch.setattr(job, "MAX_VALUES", 0)
    there = RollupOptions(lake=shop.root, out=str(tmp_path / "there"), sizes=("1m", "1h"), timezone=timezone)
    here = attrs.evolve(there, out=str(tmp_path / "here"))
    lines: list[str] = []
    count = roll_up_lake(HERE, here, ignore)
    for _ in range(2):  # again, it replaces its rows
        lines.clear()
        # Days are divided by their objects.
        assert roll_up_lake(SparkRunner(spark, limit), there, lines.append) == count
        assert table(there) == table(here)
    # Where it takes long, there are lines of progress as well.
    assert "org.example.shop:till by 1m: 12 samples became 12 rows" in lines


def test_readers_that_choose_rows_find_them(spark: SparkSession, shop: Shop, tmp_path: Path) -> None:
    scale = ClassVersion.from_schema(
        ClassSchema(package="p", name="scale", statistics=(Statistic(name="load", type=TYPES["double"]),))
    )
    shop.put(*((second, 0) for second in range(2)), table=scale, load=math.inf)
    huge = Decimal((1 << 64) - 1)
    shop.put((3, huge), object="huge", table=OTHER)  # type: ignore[arg-type]
    there = RollupOptions(lake=shop.root, out=str(tmp_path / "there"))
    here = attrs.evolve(there, out=str(tmp_path / "here"))
    roll_up_lake(SparkRunner(spark), there, ignore)
    roll_up_lake(HERE, here, ignore)
    for options in (there, here):
        delta = rollup_table(options, "batch").delta()
        for column in ("class", "object", "member", "samples", "first", "last", "last_exact", "window_start", "mean"):
            for value in {row[column] for row in table(options)} - {None}:
                found = delta.to_pyarrow_table(filters=[(column, "=", value)])
                assert found.num_rows == sum(row[column] == value for row in table(options)), (column, value)
    limits = [rollup_table(options, "batch").delta().get_add_actions(flatten=True) for options in (there, here)]
    assert {str(name) for name in limits[0].schema.names} == {str(name) for name in limits[1].schema.names}


def test_a_table_of_an_earlier_version_gets_what_it_lacks(spark: SparkSession, shop: Shop, tmp_path: Path) -> None:
    there = RollupOptions(lake=shop.root, out=str(tmp_path / "there"), late="60s")
    here = attrs.evolve(there, out=str(tmp_path / "here"))
    schema = rollup_schema()
    earlier = schema.remove(schema.get_field_index("last_created_ns"))
    for options in (there, here):
        for by in ("batch", "stream"):
            LakeTable(f"{options.out}/{by}").create(earlier, PARTITIONS)
    roll_up_lake(SparkRunner(spark), there, ignore)
    roll_up_lake(HERE, here, ignore)
    assert table(there) == table(here)
    with closing(TaskRollupStream(SparkRunner(spark), there)) as ours, closing(RollupStream(here)) as theirs:
        assert ours.step() == theirs.step() > 0
    assert table(there, "stream") == table(here, "stream")
    for options in (there, here):
        found = rollup_table(options, "batch").delta().to_pyarrow_table(filters=[("class", "=", "till")])
        assert found.num_rows == 12


def test_days_and_classes(spark: SparkSession, shop: Shop, tmp_path: Path) -> None:
    there = RollupOptions(lake=shop.root, out=str(tmp_path / "there"))
    here = attrs.evolve(there, out=str(tmp_path / "here"))
    roll_up_lake(SparkRunner(spark), there, ignore)
    roll_up_lake(HERE, here, ignore)
    shop.put((DAY + 20, 99), (30, 99))
    shop.put((DAY + 20, 99), table=OTHER)
    day = "1970-01-02"
    roll_up_lake(SparkRunner(spark), attrs.evolve(there, first=day, last=day, classes=("till",)), ignore)
    roll_up_lake(HERE, attrs.evolve(here, first=day, last=day, classes=("till",)), ignore)
    assert table(there) == table(here)
    assert [row["delta"] for row in table(there) if row["object"] == "one" and row["class"] == "till"] == [0]
    written = rollup_table(there, "batch")
    assert (written.version(), written.last_batch("rollup")) == (2, 2)  # the table, then one commit for each batch


def test_a_stream_writes_what_the_stream_in_one_process_writes(spark: SparkSession, shop: Shop, tmp_path: Path) -> None:
    there = RollupOptions(lake=shop.root, out=str(tmp_path / "there"), sizes=("1m", "1h"), late="60s")
    here = attrs.evolve(there, out=str(tmp_path / "here"))
    for last in (False, True, False, True):
        with closing(TaskRollupStream(SparkRunner(spark), there)) as ours, closing(RollupStream(here)) as theirs:
            assert ours.step(last=last) == theirs.step(last=last)
            assert attrs.evolve(ours.counts, busy=0) == attrs.evolve(theirs.counts, busy=0)
        assert table(there, "stream") == table(here, "stream")
        # One commit for each that wrote something, and one that made the table.
        assert rollup_table(there, "stream").version() == rollup_table(there, "stream").last_batch("rollup")
        if last:
            shop.put((DAY + 100, 40), (DAY + 250, 50), object="till-1")


def test_relative_paths_are_those_of_the_program(
    spark: SparkSession, shop: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # the executors have another working directory
    there = RollupOptions(lake="lake", out="there", late="60s")
    here = attrs.evolve(there, out="here")
    assert roll_up_lake(SparkRunner(spark), there, ignore) == roll_up_lake(HERE, here, ignore)
    assert table(there) == table(here)
    for at in (DAY + 200, DAY + 400):
        shop.put((at, 60), object="till-1")
        with closing(TaskRollupStream(SparkRunner(spark), there)) as ours, closing(RollupStream(here)) as theirs:
            assert ours.step() == theirs.step()
        assert table(there, "stream") == table(here, "stream")


def test_a_table_that_an_executor_lacks_is_an_error(shop: Shop, tmp_path: Path) -> None:
    (source,) = class_sources(shop.lake, ["till"])
    options = RollupOptions(lake=shop.root, out=str(tmp_path / "out"))
    windows = WindowRange(source, "1m", 0, 60 * 10**9, last=False)
    first, later = (HERE.map([[WindowTask(options, windows, of)]], task_rows, rollup_schema()) for of in (True, False))
    assert first.table().num_rows
    with pytest.raises(LakeError, match="no such table"):
        later.table()
