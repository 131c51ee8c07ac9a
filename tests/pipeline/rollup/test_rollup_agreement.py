"""All ways to roll up the same samples make the same rows: batches and streams, in this process and in executors."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import attrs
import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st
from pipeline.lakes import HERE, Shop
from pipeline.shop import PACKAGE
from support.examples import examples

from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.rollup.tables import RollupOptions, rollup_table
from qmf.schema import TYPES, ClassSchema, Statistic

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")
pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'qmf[pipeline]'")
pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.rollup import class_rollup, divided_class, job, source
from qmf.pipeline.rollup.divided_class import DividedClass, SampleFiles
from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.stream import RollupStream
from qmf.pipeline.runners.process import ProcessRunner

pytestmark = pytest.mark.slow

Row = dict[str, Any]

SCALE = ClassVersion.from_schema(
    ClassSchema(
        package=PACKAGE,
        name="Scale",
        hash=UUID(int=0x55),
        statistics=(
            Statistic(name="load", type=TYPES["double"]),
            Statistic(name="weighed", type=TYPES["count64"]),
            Statistic(name="level", type=TYPES["int32"]),
        ),
    )
)

#: In the evening, in UTC, before the day of 2026 that has 25 hours in Berlin.
EVENING = 1_792_877_000

#: How late samples may be, in seconds.
LATE = 1800


@attrs.frozen
class Sample:
    """A sample, `step` seconds after the one before, and the object's life."""

    step: int
    late: int
    name: str
    values: tuple[float | None, int | None, int | None]
    epoch: int
    created: int
    deleted: bool


SAMPLES = st.lists(
    st.builds(
        Sample,
        step=st.sampled_from([0, 1, 30, 700, 3600, 20_000, 90_000]),
        late=st.sampled_from([0, 0, 1, 40, LATE - 1]),
        name=st.sampled_from(["one", "two"]),
        values=st.tuples(
            st.sampled_from([None, 1.5, -2.0, math.inf, -math.inf, math.nan]),
            st.sampled_from([None, 0, 7, 90, (1 << 64) - 1]),
            st.sampled_from([None, -9, 3]),
        ),
        epoch=st.sampled_from([1, 1, 1, 2]),
        created=st.sampled_from([0, 5, 5, 6]),
        deleted=st.sampled_from([False, False, False, True]),
    ),
    min_size=1,
    max_size=12,
).filter(lambda samples: any(item.step for item in samples))  # the first list to be tried says little


def record(shop: Shop, samples: Sequence[Sample]) -> Iterator[None]:
    """Record samples, some by a commit."""
    at = EVENING
    for number, item in enumerate(samples):
        at += item.step
        load, weighed, level = item.values
        values: Row = {"load": load, "weighed": None if weighed is None else Decimal(weighed), "level": level}
        life: Row = {"object": item.name, "epoch": item.epoch, "create": item.created, "delete": item.deleted}
        shop.put((at - item.late, 0), table=SCALE, **life, **values, commit=number % 3 == 2)
        if number % 3 == 2:
            yield
    shop.commit()


def comparable(rows: list[Row]) -> dict[tuple[Any, ...], Row]:
    """Rows by what they are about; numbers that are not one are equal to each other."""
    key = ("size", "_date", "window_start", "window_end", "object", "member")
    found = {tuple(row[name] for name in key): row for row in rows}
    assert len(found) == len(rows)
    return found


def assert_equal(ours: list[Row], theirs: list[Row]) -> None:
    one, two = comparable(ours), comparable(theirs)
    assert one.keys() == two.keys()
    for key, row in two.items():
        for name, value in row.items():
            right = pytest.approx(value, nan_ok=True, rel=1e-9) if isinstance(value, float) else value
            assert one[key][name] == right, (key, name, one[key], row)


def table(options: RollupOptions, by: str) -> list[Row]:
    written = rollup_table(options, by)
    return [] if written.version() is None else written.delta().to_pyarrow_table().to_pylist()


def batch(options: RollupOptions, most_values: int, runner: ProcessRunner = HERE) -> list[Row]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(job, "MAX_VALUES", most_values)
        roll_up_lake(runner, options, lambda _line: None)
    return table(options, "batch")


def check_all_ways(samples: list[Sample], stop: int, sizes: tuple[str, ...], timezone: str, continued: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(Path(folder, "lake"))
        options = RollupOptions(
            lake=shop.root, out=f"{folder}/out", sizes=sizes, late=f"{LATE}s", continued=continued, timezone=timezone
        )
        from_files = attrs.evolve(options, out=f"{folder}/files")
        follow(shop, samples, stop, options, from_files)
        expected = batch(options, 300_000)
        assert_equal(batch(attrs.evolve(options, out=f"{folder}/each"), 0), expected)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(class_rollup, "PART_SAMPLES", 2)
            patch.setattr(source, "MOST_READ", math.inf)
            assert_equal(batch(attrs.evolve(options, out=f"{folder}/parts"), 0), expected)
        # Days of a class in tasks of their own, or divided by time, by objects, or by what fits the files.
        for rows, most_read in ((2, 0.0), (2, math.inf), (10, source.MOST_READ)):
            divided = attrs.evolve(options, out=f"{folder}/tasks-{rows}-{most_read}")
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(source, "MOST_READ", most_read)
                patch.setattr(source, "MOST_OF_PART", math.inf)
                assert_equal(batch(divided, 0, ProcessRunner(task_rows=rows)), expected)
        assert_equal(table(options, "stream"), expected)
        assert_equal(table(from_files, "stream"), expected)


@pytest.mark.parametrize(
    ("sizes", "timezone"),
    [
        (("10s", "1m"), "UTC"),
        (("1m", "1h", "1d"), "UTC"),
        (("1d",), "UTC"),
        (("5m", "6h", "1d"), "Europe/Berlin"),
        (("1d",), "Asia/Kathmandu"),
    ],
)
@examples(1, deadline=None, suppress_health_check=list(HealthCheck))
@given(samples=SAMPLES, stop=st.integers(0, 3), continued=st.booleans())
def test_all_ways_make_the_same_rows(
    samples: list[Sample], stop: int, sizes: tuple[str, ...], timezone: str, continued: bool
) -> None:
    check_all_ways(samples, stop, sizes, timezone, continued)


def follow(shop: Shop, samples: list[Sample], stop: int, options: RollupOptions, from_files: RollupOptions) -> None:
    """Record samples while two streams follow, one of which has nothing in memory; both are started again once."""
    makers: list[Callable[[], RollupStream]] = [
        lambda: RollupStream(options),
        lambda: RollupStream(from_files, in_memory=False),
    ]
    streams = [make() for make in makers]
    try:
        for number, _ in enumerate(record(shop, samples)):
            for stream in streams:
                stream.step()
            if number == stop:
                for stream in streams:
                    stream.close()
                streams = [make() for make in makers]
        for stream in streams:
            stream.step(last=True)
            assert stream.counts.late == 0
    finally:
        for stream in streams:
            stream.close()


def test_infinite_values_and_those_that_are_no_numbers(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    for at, load in ((0, math.inf), (30, math.inf), (60, 2.0), (120, math.nan), (180, 4.0)):
        shop.put((at, 0), table=SCALE, load=load, level=1)
    options = RollupOptions(lake=shop.root, out=f"{tmp_path}/out", sizes=("1m", "1h"))
    rows = [row for row in batch(options, 0) if row["member"] == "load"]
    minutes = [row["mean"] for row in sorted(rows, key=lambda row: row["window_start"]) if row["size"] == "1m"]
    assert minutes == pytest.approx([math.inf, 2.0, math.nan, 4.0], nan_ok=True)
    (hour,) = (row for row in rows if row["size"] == "1h")
    assert math.isnan(hour["mean"])
    assert (hour["low"], hour["first"], hour["last"]) == (2.0, math.inf, 4.0)


def test_a_member_that_is_seldom_sent_is_looked_for_before_the_day(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    day = 86_400
    shop.put((10, 0), table=SCALE, load=5.0, weighed=Decimal(10), level=1)
    shop.put((day + 10, 0), table=SCALE, weighed=Decimal(20), level=2)
    shop.put((2 * day + 10, 0), table=SCALE, load=7.0, weighed=Decimal(25), level=2, create=2 * day)
    options = RollupOptions(lake=shop.root, out=f"{tmp_path}/out")
    rows = {row["member"]: row for row in batch(options, 0, ProcessRunner(1)) if row["_date"] == "1970-01-03"}
    assert rows["load"]["before_ns"] == 10 * 10**9
    assert (rows["weighed"]["delta"], rows["weighed"]["resets"]) == (5.0, 0)


def test_what_is_not_there_on_the_first_day_is_looked_for_before_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    day = 86_400
    shop.put((10, 0), table=SCALE, object="seldom", weighed=Decimal(10))
    shop.put((10, 0), table=SCALE, object="often", weighed=Decimal(1), level=1)
    shop.put((day + 10, 0), table=SCALE, object="often", level=2)
    shop.put((2 * day + 10, 0), table=SCALE, object="seldom", weighed=Decimal(25))
    shop.put((2 * day + 10, 0), table=SCALE, object="often", weighed=Decimal(9))
    options = RollupOptions(lake=shop.root, out=f"{tmp_path}/out", first="1970-01-02")
    for runner in (HERE, ProcessRunner(1), ProcessRunner(2)):
        rows = [row for row in batch(options, 0, runner) if row["member"] == "weighed"]
        assert {row["object"]: row["delta"] for row in rows} == {"seldom": 15.0, "often": 8.0}


def test_days_of_a_time_zone_without_samples(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    hour, day = 3600, 86_400
    # The day of the first sample, in UTC, has a part of the second day in Berlin, on which there is none.
    for at, sales in ((20 * hour, 5), (2 * day + 10 * hour, 9), (3 * day, 11)):
        shop.put((at, sales))
    options = RollupOptions(
        lake=shop.root, out=f"{tmp_path}/out", sizes=("1d",), timezone="Europe/Berlin", first="1970-01-02"
    )
    for most_values in (0, 300_000):
        rows = [row for row in batch(options, most_values) if row["member"] == "sales"]
        assert sorted((row["_date"], row["delta"]) for row in rows) == [("1970-01-03", 4), ("1970-01-04", 2)]


def test_days_of_a_time_zone(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    hours = range(0, 80)
    shop.put(*((EVENING - 7 * 3600 + 3600 * hour, hour) for hour in hours))
    options = RollupOptions(lake=shop.root, out=f"{tmp_path}/out", sizes=("1h", "1d"), timezone="Europe/Berlin")
    rows = [row for row in batch(options, 0) if row["member"] == "sales"]
    days = {row["_date"]: row for row in rows if row["size"] == "1d"}
    lengths = {day: (row["window_end"] - row["window_start"]).total_seconds() / 3600 for day, row in days.items()}
    assert lengths == {"2026-10-24": 24, "2026-10-25": 25, "2026-10-26": 24, "2026-10-27": 24}
    assert (days["2026-10-25"]["samples"], days["2026-10-25"]["delta"]) == (25, 25)
    assert sum(row["_date"] == "2026-10-25" and row["size"] == "1h" for row in rows) == 25
    one = attrs.evolve(options, first="2026-10-25", last="2026-10-25", out=f"{tmp_path}/one")
    of_day = [row for row in batch(options, 0) if row["_date"] == "2026-10-25"]
    for most_values, runner in ((0, HERE), (300_000, HERE), (0, ProcessRunner(task_rows=10))):
        assert_equal(batch(one, most_values, runner), of_day)


def test_many_files_in_one_window_of_a_divided_day(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "lake")
    for second in range(5):
        shop.put((600 + second, second), table=SCALE, weighed=Decimal(second))
    here = RollupOptions(lake=shop.root, out=f"{tmp_path}/here")
    there = attrs.evolve(here, out=f"{tmp_path}/there")
    assert_equal(batch(there, 0, ProcessRunner(task_rows=3)), batch(here, 0))


@pytest.mark.parametrize("most_read", [0, 9])
def test_the_day_before_a_divided_one_is_read_for_its_last_samples(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most_read: int
) -> None:
    shop = Shop(tmp_path / "lake")
    day, objects = 86_400, ("one", "two", "three")
    for number, name in enumerate(objects):
        shop.put((10, 0), table=SCALE, object=name, load=5.0, weighed=Decimal(10 + number))
        shop.put((20, 0), table=SCALE, object=name, weighed=Decimal(12 + number))
        shop.put((day + 10, 0), table=SCALE, object=name, load=1.0, weighed=Decimal(20))
    here = RollupOptions(lake=shop.root, out=f"{tmp_path}/here", first="1970-01-02")
    there = attrs.evolve(here, out=f"{tmp_path}/there")
    read: list[int] = []

    def file_samples(connection: Any, task: SampleFiles) -> Iterator[Any]:
        for found in samples(connection, task):
            read.append(found.num_rows)
            yield found

    def file_windows(own: DividedClass, connection: Any, task: SampleFiles) -> Iterator[Any]:
        for found in windows(own, connection, task):
            read.extend(found["samples"].to_pylist())
            yield found

    samples, windows = divided_class.file_samples, divided_class.file_windows
    monkeypatch.setattr(divided_class, "file_samples", file_samples)
    monkeypatch.setattr(divided_class, "file_windows", file_windows)
    monkeypatch.setattr(source, "MOST_READ", most_read)
    rows = batch(there, 0, ProcessRunner(task_rows=2))
    assert_equal(rows, batch(here, 0))
    # Of each object, its samples of the day, and the last one of each member before.
    assert sum(read) == 3 * 3
    assert {row["before_ns"] for row in rows if row["member"] == "load"} == {10 * 10**9}
    assert [row["delta"] for row in rows if row["member"] == "weighed" and row["object"] == "two"] == [7]
