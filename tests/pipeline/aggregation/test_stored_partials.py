"""Partial aggregates that `optimize` stores: the rows are those of the samples."""

from __future__ import annotations

import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import attrs
import pytest
from pipeline.lakes import Shop

from qmf.pipeline.aggregation.tables import RollupOptions, rollup_table
from qmf.pipeline.cli import main

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")
pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.aggregation import day, job, stored_partials
from qmf.pipeline.aggregation.job import roll_up_lake

pytestmark = pytest.mark.slow

DAY = 86_400

Row = dict[str, Any]


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


@pytest.fixture
def options(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> RollupOptions:
    monkeypatch.setattr(stored_partials, "LEAST_VALUES", 1)
    monkeypatch.setattr(job, "MAX_VALUES", 0)
    return RollupOptions(lake=shop.root, out=f"{shop.root}/_tables/rollup", sizes=("1m", "1h", "1d"))


def record(shop: Shop, chance: random.Random, start: int, count: int, *, epoch: int = 1, **more: Any) -> None:
    """Samples of two objects with all members, each some seconds after the one before."""
    for name in ("one", "two"):
        at = float(start)
        for _ in range(count):
            at += chance.choice([0.25, 7, 50, 400])
            low, high = sorted((chance.randrange(50), chance.randrange(50)))
            service = {"serviceCount": chance.randrange(1, 9), "serviceMin": 2, "serviceMax": 90, "serviceAvg": 7}
            values = {"queue": chance.randrange(low, high + 1), "queueLow": low, "queueHigh": high, **service, **more}
            sales: Any = Decimal(chance.choice([3, 90, (1 << 64) - 1]))
            shop.put((at, sales), object=name, epoch=epoch, **values)


def rolled_up(options: RollupOptions) -> list[Row]:
    roll_up_lake(options, lambda _text: None)
    rows: list[Row] = rollup_table(options, "batch").delta().to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: (row["size"], row["window_start"], row["object"], row["member"]))


def assert_rows_of_the_samples(options: RollupOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = rolled_up(options)
    with monkeypatch.context() as without:
        without.setattr(day, "stored", lambda _source, _date, _seconds: None)
        theirs = rolled_up(attrs.evolve(options, out=f"{options.out}-samples"))
    assert len(ours) == len(theirs) > 0
    for one, two in zip(ours, theirs, strict=True):
        for name, value in two.items():
            assert one[name] == (pytest.approx(value) if isinstance(value, float) else value), (name, one, two)


def partials(shop: Shop) -> set[str]:
    return {path.name for path in Path(shop.root, "_partials").rglob("*.parquet")}


def forbid_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a roll-up fail that reads samples."""

    def fail(*_arguments: object, **_options: object) -> None:
        raise AssertionError("samples are read")

    monkeypatch.setattr(day, "rolled_up", fail)


@pytest.mark.parametrize("continued", [False, True])
def test_they_give_the_rows_of_the_samples(
    shop: Shop, options: RollupOptions, monkeypatch: pytest.MonkeyPatch, continued: bool
) -> None:
    chance = random.Random(random.randrange(10**6))  # pytest-randomly prints the seed
    options = attrs.evolve(options, continued=continued)
    record(shop, chance, 500, 30)
    record(shop, chance, DAY - 1000, 10)
    record(shop, chance, DAY + 5000, 10)
    assert main(["optimize", "--lake", shop.root]) == 0
    assert len(partials(shop)) == 2
    assert_rows_of_the_samples(options, monkeypatch)
    forbid_samples(monkeypatch)
    assert rolled_up(options)


def test_other_sizes_are_made_from_samples(shop: Shop, options: RollupOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    record(shop, random.Random(1), 500, 10)
    assert main(["optimize", "--lake", shop.root]) == 0
    assert_rows_of_the_samples(attrs.evolve(options, sizes=("10s", "1m")), monkeypatch)


def test_they_belong_to_their_file(shop: Shop, options: RollupOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(2)
    record(shop, chance, 500, 10)
    assert main(["optimize", "--lake", shop.root]) == 0
    first = partials(shop)
    record(shop, chance, 10_000, 5)  # the day has a file without partials
    assert_rows_of_the_samples(options, monkeypatch)
    assert main(["optimize", "--lake", shop.root]) == 0
    assert len(partials(shop) - first) == 1
    assert_rows_of_the_samples(options, monkeypatch)
    assert main(["vacuum", "--lake", shop.root, "--grace-days", "0"]) == 0
    assert main(["optimize", "--lake", shop.root]) == 0
    assert len(partials(shop)) == 1
    assert not partials(shop) & first


def test_files_with_late_samples_have_none(shop: Shop, options: RollupOptions, monkeypatch: pytest.MonkeyPatch) -> None:
    for start in (500, 600, 550):
        record(shop, random.Random(1), start, 5)
    assert main(["optimize", "--lake", shop.root]) == 0
    assert not partials(shop)
    assert_rows_of_the_samples(attrs.evolve(options, sizes=("1h",)), monkeypatch)


@pytest.mark.parametrize("more", [{"epoch": 2}, {"queue": None}, {"delete": 9}])
def test_files_that_depend_on_options_have_none(
    shop: Shop, options: RollupOptions, monkeypatch: pytest.MonkeyPatch, more: Row
) -> None:
    chance = random.Random(3)
    record(shop, chance, 500, 5)
    record(shop, chance, 4000, 2, **more)
    for _ in range(2):
        assert main(["optimize", "--lake", shop.root]) == 0
        assert not partials(shop)
    assert_rows_of_the_samples(options, monkeypatch)


def test_of_two_recorders_the_rows_of_one_count(
    shop: Shop, options: RollupOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    for recorder in (shop, Shop(shop.root, run="00000000000000000002_1")):
        record(recorder, random.Random(4), 500, 10)
        recorder.beat(*range(400, 5000, 50))
    assert main(["optimize", "--lake", shop.root]) == 0
    assert partials(shop)
    assert_rows_of_the_samples(options, monkeypatch)
