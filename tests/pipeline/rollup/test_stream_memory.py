"""The newest samples of a stream in memory: the rows are those of a batch, and complete windows are not read again."""

from __future__ import annotations

import random
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import attrs
import pytest
from pipeline.lakes import HERE, Shop
from pipeline.shop import PACKAGE, TILL

from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.maintenance.optimizing import optimize_lake
from qmf.pipeline.rollup.tables import RollupOptions, rollup_table
from qmf.schema import TYPES, ClassSchema, Statistic

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")
pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.rollup import stream_memory
from qmf.pipeline.rollup.job import roll_up_lake
from qmf.pipeline.rollup.stream import RollupStream
from qmf.pipeline.rollup.stream_windows import WindowRollup

pytestmark = pytest.mark.slow

Row = dict[str, Any]

TILLS = ClassVersion.from_schema(TILL)
#: The same class with a statistic more.
LATER = ClassVersion.from_schema(
    attrs.evolve(
        TILL, hash=UUID(int=0x99), statistics=(Statistic(name="extra", type=TYPES["uint32"]), *TILL.statistics)
    )
)
#: Member, size and object of some rows.
OF_ONE = ("sales", "1m", "one")

SCALES = ClassVersion.from_schema(
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


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


@pytest.fixture
def options(shop: Shop) -> RollupOptions:
    return RollupOptions(lake=shop.root, out=f"{shop.root}/_tables/rollup", sizes=("10s", "1m"), late="30s")


def table(options: RollupOptions, by: str) -> list[Row]:
    """All rows, in order."""
    found = rollup_table(options, by)
    rows: list[Row] = found.delta().to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: (row["size"], row["class"], row["window_start"], row["object"], row["member"]))


def assert_rows_of_a_batch(options: RollupOptions) -> None:
    """All windows that the stream wrote, but for those that are not complete."""
    roll_up_lake(HERE, options, lambda _text: None)
    streamed, expected = table(options, "stream"), table(options, "batch")
    assert [_key(row) for row in streamed] == [_key(row) for row in expected]
    for ours, theirs in zip(streamed, expected, strict=True):
        for name, value in theirs.items():
            assert ours[name] == (pytest.approx(value) if isinstance(value, float) else value), (name, ours, theirs)


def _key(row: Row) -> tuple[Any, ...]:
    return row["size"], row["class"], row["window_start"], row["object"], row["member"]


def forbid_reading_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a stream fail that reads samples again."""

    def fail(_self: WindowRollup, _windows: object) -> int:
        raise AssertionError("samples are read again")

    monkeypatch.setattr(WindowRollup, "roll_up", fail)


def till_values(chance: random.Random) -> Row:
    low, high = sorted((chance.randrange(50), chance.randrange(50)))
    count = chance.choice([0, 1, 7])
    return {
        "queue": None if chance.random() < 0.2 else chance.randrange(low, high + 1),
        "queueLow": low,
        "queueHigh": high,
        "serviceCount": count,
        "serviceMin": Decimal(2),
        "serviceMax": Decimal(90),
        "serviceAvg": Decimal(chance.randrange(2, 90)) if count else None,
    }


def record_at_random(shop: Shop, chance: random.Random, times: int, step: Any, at: float = 86_300.0) -> None:
    """Record samples of two classes over the end of a day, and call `step` now and then."""
    epochs = {"one": 1, "two": 1}
    last: dict[str, float] = {}
    for _ in range(times):
        for _ in range(chance.randint(1, 4)):
            name = chance.choice(["one", "two"])
            at += chance.choice([1, 7, 20, 90])
            if chance.random() < 0.15:
                epochs[name] += 1
            start = max(at - 25, last.get(name, 0.0))
            moments = sorted(round(chance.uniform(start, at), 3) for _ in range(chance.randint(1, 5)))
            last[name] = moments[-1]
            kind = chance.choice([TILLS, SCALES])
            if kind is TILLS:
                sold: Any = [chance.choice([None, 3, (1 << 64) - 1, 90]) for _ in moments]
                sales = list(zip(moments, sold, strict=True))
                ends = moments[-1] if len(moments) == 1 and chance.random() < 0.3 else 0
                shop.put(*sales, object=name, epoch=epochs[name], delete=ends, **till_values(chance))
            else:
                more: Row = {"weighed": Decimal(chance.randrange(99)), "level": chance.randrange(-9, 9)}
                more["load"] = None if chance.random() < 0.2 else chance.uniform(-9, 9)
                shop.put(*((moment, 0) for moment in moments), table=SCALES, object=name, epoch=epochs[name], **more)
        step()


@pytest.mark.parametrize("continued", [False, True])
@pytest.mark.parametrize("sizes", [("10s", "1m"), ("90s", "1h"), ("10s", "15s", "1m", "1d"), ("1d",)])
def test_whatever_is_recorded_the_rows_are_those_of_a_batch(
    shop: Shop,
    options: RollupOptions,
    sizes: tuple[str, ...],
    continued: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    chance = random.Random(random.randrange(10**6))  # pytest-randomly prints the seed
    monkeypatch.setattr(stream_memory, "_FEW", chance.choice([5, 20_000]))
    options = attrs.evolve(options, sizes=sizes, continued=continued)
    with closing(RollupStream(options)) as made:
        record_at_random(shop, chance, 5, made.step)
        made.step(last=True)
        assert made.counts.late == 0
        assert made.counts.ahead == 0
    assert_rows_of_a_batch(options)


def test_complete_windows_are_not_read_again(
    shop: Shop, options: RollupOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_reading_again(monkeypatch)
    chance = random.Random(random.randrange(10**6))
    with closing(RollupStream(options)) as made:
        record_at_random(shop, chance, 5, made.step)
        assert made.counts.rows > 0


def test_a_stream_that_is_started_again_reads_open_windows_once(
    shop: Shop, options: RollupOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.put((1, 10), (62, 20), (130, 30))
    with closing(RollupStream(options)) as made:
        assert made.step() > 0
    forbid_reading_again(monkeypatch)
    shop.put((140, 35), (200, 50), (400, 60))
    with closing(RollupStream(options)) as made:
        assert made.step() > 0
        shop.put((1000, 70))
        assert made.step() > 0
    monkeypatch.undo()
    with closing(RollupStream(options)) as made:
        made.step(last=True)
    assert_rows_of_a_batch(options)


@pytest.mark.parametrize("late", [False, True])
def test_a_stream_that_is_started_again_counts_samples_in_combined_files_once(
    shop: Shop, options: RollupOptions, late: bool
) -> None:
    shop.put((1, 10), (62, 20), (130, 30))
    with closing(RollupStream(options)) as made:
        assert made.step() > 0
        shop.put((141, 50))
        made.step()  # nothing is complete, so it isn't written how far the lake was read
    shop.put((151, 60), (160, 70))
    shop.put((65, 1), object="late") if late else None
    assert optimize_lake(HERE, shop.lake).combined > 0
    with closing(RollupStream(options)) as made:
        made.step()
        assert (made.counts.read, made.counts.late) == (4, 1) if late else (3, 0)
        shop.put((300, 90))
        made.step()
    rows = [row for row in table(options, "stream") if (row["member"], row["size"], row["object"]) == OF_ONE]
    assert [(row["samples"], int(row["delta_exact"]), row["resets"]) for row in rows] == [
        (1, 0, 0),
        (1, 10, 0),
        (4, 50, 0),
    ]
    if not late:
        with closing(RollupStream(options)) as made:
            made.step(last=True)
        assert_rows_of_a_batch(options)


def test_what_comes_too_late_is_read_again(shop: Shop, options: RollupOptions) -> None:
    with closing(RollupStream(options)) as made:
        shop.put((3, 10), (15, 20), (70, 30))
        made.step()
        shop.put((13, 15), object="two")  # the first windows of 10 s are written, those of a minute are not
        made.step()
        assert made.counts.late == 1
        shop.put((75, 35), (135, 40))
        made.step()
        shop.put((140, 50), (300, 60))
        made.step()
    rows = [row for row in table(options, "stream") if row["member"] == "sales"]
    found = [(row["size"], row["first_ns"] // 10**9, row["object"], int(row["delta_exact"])) for row in rows]
    assert found == [
        ("10s", 3, "one", 0),
        ("10s", 15, "one", 10),
        ("10s", 70, "one", 15),
        ("10s", 135, "one", 5),
        ("10s", 140, "one", 10),
        ("1m", 3, "one", 10),
        ("1m", 13, "two", 0),
        ("1m", 70, "one", 15),
        ("1m", 135, "one", 15),
    ]


def test_more_samples_than_should_be_in_memory_are_read_from_the_lake(
    shop: Shop, options: RollupOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qmf.pipeline.rollup.stream.MAX_VALUES", 20)
    with closing(RollupStream(options)) as made:
        shop.put(*((second, second) for second in range(100)))
        made.step()
        shop.put((101, 130), (102, 150))
        made.step()
        shop.put((170, 190), (260, 200))
        made.step(last=True)
        assert made.counts.late == 0
    assert_rows_of_a_batch(options)


def test_a_new_version_of_a_class_joins(shop: Shop, options: RollupOptions) -> None:
    with closing(RollupStream(options)) as made:
        shop.put((1, 10), (11, 20), (61, 30))
        made.step()
        shop.put((65, 35), (80, 40), table=LATER, extra=5)
        made.step()
        shop.put((140, 50), (300, 60), table=LATER, extra=7)
        made.step()
        made.step(last=True)
    assert_rows_of_a_batch(options)


def test_of_two_recorders_the_rows_of_one_count(shop: Shop, options: RollupOptions) -> None:
    other = Shop(shop.root, run="00000000000000000002_1")
    with closing(RollupStream(options)) as made:
        for start in range(0, 400, 40):
            samples = [(start + second, 10 * (start + second)) for second in range(0, 40, 5)]
            for recorder in (shop, other) if start >= 120 else (shop,):
                recorder.put(*samples, commit=False)
                recorder.beat(*(time for time, _ in samples))
            made.step()
        made.step(last=True)
    assert_rows_of_a_batch(options)
    assert {row["samples"] for row in table(options, "stream") if row["size"] == "10s"} == {2}


def test_a_class_is_in_memory_again_after_samples_that_came_too_late(
    shop: Shop, options: RollupOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(RollupStream(options)) as made:
        shop.put((3, 10), (15, 20), (70, 30))
        made.step()
        shop.put((13, 15), object="two")
        made.step()
        assert made.counts.late == 1
        for at in (135, 200, 265):
            shop.put((at, at))
            made.step()
        forbid_reading_again(monkeypatch)
        shop.put((330, 400))
        assert made.step() > 0
