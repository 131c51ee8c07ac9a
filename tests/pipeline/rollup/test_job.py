"""The job `rollup` in this process: its tables, and what it refuses."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import attrs
import pytest
from pipeline.lakes import HERE, Shop
from pipeline.shop import TILL

from qmf.pipeline import LakeError, PipelineError
from qmf.pipeline.cli import main
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.maintenance.optimizing import optimize_lake
from qmf.pipeline.rollup.tables import RollupOptions, rollup_table
from qmf.schema import TYPES, ClassSchema, Property, Statistic

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'qmf[pipeline]'")

import pyarrow.parquet

from qmf.pipeline.rollup.job import roll_up_lake

pytestmark = pytest.mark.slow

DAY = 86_400


@pytest.fixture(params=[0, 300_000], ids=["each class", "together"], autouse=True)
def values_together(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Classes are rolled up one by one, or together as those of small lakes are."""
    monkeypatch.setattr("qmf.pipeline.rollup.job.MAX_VALUES", request.param)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


@pytest.fixture
def options(shop: Shop) -> RollupOptions:
    return RollupOptions(lake=shop.root, out=f"{shop.root}/_tables", sizes=("1m",))


def ignore(_text: str) -> None:
    """Ignore a line of output."""


def rows(options: RollupOptions, *names: str) -> list[tuple[Any, ...]]:
    """Start of the window in seconds, object, and some columns, of the member `sales`."""
    table = rollup_table(options, "batch")
    found = [row for row in table.delta().to_pyarrow_table().to_pylist() if row["member"] == "sales"]
    return sorted(
        (int(row["window_start"].timestamp()), row["object"], *(row[name] for name in names)) for row in found
    )


def files(options: RollupOptions) -> list[tuple[str, str]]:
    """Size and day of each file of the table."""
    table = rollup_table(options, "batch")
    return sorted((file.path.split("/")[0].partition("=")[2], file.date or "") for file in table.snapshot().files)


def test_names_have_a_dictionary_in_files_and_numbers_have_none(shop: Shop, options: RollupOptions) -> None:
    shop.put(*((at, at) for at in range(0, 6000, 60)))
    roll_up_lake(HERE, options, ignore)
    (file,) = rollup_table(options, "batch").snapshot().files
    group = pyarrow.parquet.read_metadata(file.url).row_group(0)
    columns = (group.column(number) for number in range(group.num_columns))
    has_dictionary = {column.path_in_schema: column.has_dictionary_page for column in columns}
    assert has_dictionary["member"]
    assert not has_dictionary["first_ns"]
    assert not has_dictionary["last_exact"]


def test_what_two_recorders_recorded_counts_once(tmp_path: Path, options: RollupOptions) -> None:
    for name, times in (("one", range(0, 100, 10)), ("two", range(0, 180, 10))):
        shop = Shop(tmp_path / "lake", run=f"run_{name}", name=name)
        shop.beat(*times)
        shop.put(*((at + 1, at * at) for at in times))
    roll_up_lake(HERE, options, ignore)
    assert rows(options, "samples", "delta", "resets") == [
        (0, "one", 6, 2500.0, 0),
        (60, "one", 6, 110.0**2 - 2500, 0),
        (120, "one", 6, 170.0**2 - 110.0**2, 0),
    ]


def test_a_repeated_batch_is_the_same_and_late_data_changes_its_day_only(shop: Shop, options: RollupOptions) -> None:
    shop.put((1, 10), (61, 20), (90, 25), (DAY + 1, 30))
    lines: list[str] = []
    assert roll_up_lake(HERE, options, lines.append) == 3
    assert lines[0] == "org.example.shop:till by 1m: 4 samples became 3 rows"
    assert rows(options, "delta", "samples") == [(0, "one", 0, 1), (60, "one", 15, 2), (DAY, "one", 5, 1)]
    assert roll_up_lake(HERE, options, ignore) == 3
    assert rows(options, "delta", "samples") == [(0, "one", 0, 1), (60, "one", 15, 2), (DAY, "one", 5, 1)]
    shop.put((30, 14))
    assert roll_up_lake(HERE, options, ignore) == 3
    assert rows(options, "delta", "rate") == [
        (0, "one", 4, 4 / 29),
        (60, "one", 11, 11 / 60),
        (DAY, "one", 5, 5 / (DAY + 1 - 90)),
    ]


def test_sizes_and_days(shop: Shop, options: RollupOptions) -> None:
    shop.put((1, 10), (61, 20), (DAY + 1, 30), (2 * DAY + 1, 40))
    chosen = RollupOptions(
        lake=options.lake, out=options.out, sizes=("1m", "1h"), first="1970-01-01", last="1970-01-02"
    )
    assert roll_up_lake(HERE, chosen, ignore) == 3 + 2
    days = ["1970-01-01", "1970-01-02"]
    assert files(options) == [(size, day) for size in ("1h", "1m") for day in days]


def test_a_batch_of_one_day_begins_with_the_samples_before(shop: Shop, options: RollupOptions) -> None:
    shop.put((1, 10), object="idle")
    shop.put((DAY + 1, 7), object="noon")
    shop.put((2 * DAY - 10, 100), (2 * DAY + 10, 120), (2 * DAY + 70, 150))
    shop.put((2 * DAY + 5, 12), object="idle")
    shop.put((2 * DAY + 6, 9), object="noon")
    shop.put((2 * DAY + 7, 3), object="new")
    roll_up_lake(HERE, options, ignore)
    whole = [row for row in rows(options, "delta", "rate", "before_ns") if row[0] >= 2 * DAY]
    assert [(row[1], row[2]) for row in whole] == [("idle", 2), ("new", 0), ("noon", 2), ("one", 20), ("one", 30)]
    shutil.rmtree(options.out)
    day = "1970-01-03"
    chosen = RollupOptions(lake=options.lake, out=options.out, sizes=("1h", "1m"), first=day, last=day)
    roll_up_lake(HERE, chosen, ignore)
    found = rows(options, "delta", "rate", "before_ns")
    hours = {row for row in found if row not in whole}
    assert [row for row in found if row in whole] == sorted([*whole, *whole[:3]])  # hours of the others are the same
    assert {row[:3] for row in hours} == {(2 * DAY, "one", 50)}


def test_a_batch_replaces_its_days_sizes_and_classes_only(shop: Shop, options: RollupOptions) -> None:
    other = attrs.evolve(ClassVersion.from_schema(TILL), name="other")
    shop.put((1, 10), (DAY + 1, 20))
    shop.put((1, 10), (DAY + 1, 20), table=other)
    roll_up_lake(HERE, attrs.evolve(options, sizes=("1m", "1h")), ignore)
    shop.put((2, 13), (DAY + 2, 40))
    shop.put((2, 13), (DAY + 2, 40), table=other)
    chosen = attrs.evolve(options, sizes=("1h",), classes=("till",), first="1970-01-02", last="1970-01-02")
    assert roll_up_lake(HERE, chosen, ignore) == 1
    table = rollup_table(options, "batch")
    found = table.delta().to_pyarrow_table().to_pylist()
    changed = {(row["class"], row["size"], row["_date"]) for row in found if row["samples"] == 2}
    assert changed == {("till", "1h", "1970-01-02")}
    assert len(found) == 8


def test_files_that_were_combined(shop: Shop, options: RollupOptions) -> None:
    shop.put((1, 10))
    shop.put((2, 11))
    assert optimize_lake(HERE, shop.lake).combined == 2
    roll_up_lake(HERE, options, ignore)
    assert rows(options, "delta", "samples") == [(0, "one", 1, 2)]


def test_versions_of_a_class(shop: Shop, options: RollupOptions) -> None:
    old = ClassSchema(
        package=TILL.package,
        name=TILL.name,
        properties=(Property(name="name", type=TYPES["sstr"], index=True),),
        statistics=(Statistic(name="sales", type=TYPES["count64"]), Statistic(name="Extra", type=TYPES["uint8"])),
    )
    shop.put((1, 10), table=ClassVersion.from_schema(old))
    shop.put((2, 12), (DAY + 3, 5))
    roll_up_lake(HERE, options, ignore)
    assert rows(options, "delta", "samples") == [(0, "one", 2, 2), (DAY, "one", 5, 1)]


def test_versions_that_disagree(shop: Shop, options: RollupOptions) -> None:
    other = ClassSchema(
        package=TILL.package, name=TILL.name, statistics=(Statistic(name="sales", type=TYPES["float"]),)
    )
    shop.put((1, 10.5), table=ClassVersion.from_schema(other))
    shop.put((2, 12))
    with pytest.raises(LakeError, match="versions disagree about sales"):
        roll_up_lake(HERE, options, ignore)


def test_a_class_without_numbers(shop: Shop, options: RollupOptions) -> None:
    named = ClassSchema(package=TILL.package, name="sign", statistics=(Statistic(name="text", type=TYPES["sstr"]),))
    shop.put((1, 10), table=ClassVersion.from_schema(named))
    assert roll_up_lake(HERE, options, ignore) == 0


def test_what_is_refused(shop: Shop, options: RollupOptions) -> None:
    with pytest.raises(PipelineError, match="no lake, or nothing in it yet"):
        roll_up_lake(HERE, options, ignore)
    shop.put((1, 10))
    with pytest.raises(PipelineError, match="no class 'nothing'"):
        roll_up_lake(HERE, RollupOptions(lake=options.lake, out=options.out, classes=("nothing",)), ignore)
    with pytest.raises(PipelineError, match="part of a day"):
        roll_up_lake(HERE, RollupOptions(lake=options.lake, out=options.out, sizes=("7m",)), ignore)


def test_an_unknown_time_zone_is_refused(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.put((1, 10))
    for name in ("Europe", "Nowhere/Town", "../x", ""):
        assert main(["rollup", "--lake", shop.root, "--timezone", name]) == 2
        assert capsys.readouterr().err == f"qmf-pipeline: {name}: not a time zone such as Europe/Berlin or UTC\n"
    assert main(["rollup", "--lake", shop.root, "--timezone", "Europe/Berlin", "--size", "1d"]) == 0
    assert (Path(shop.root) / "_tables" / "rollup" / "Europe" / "Berlin" / "batch" / "_delta_log").is_dir()


def test_a_damaged_file_is_named_in_one_line(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    shop.put((1, 10))
    (file,) = (Path(shop.root) / "objects").rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-20])
    assert main(["rollup", "--lake", shop.root]) == 2
    place, error = capsys.readouterr().err.splitlines()
    assert place == "qmf-pipeline: rollup runs in this process"
    assert error.startswith(f"qmf-pipeline: {shop.root}")
    assert file.name in error


def test_the_command_needs_no_spark(
    shop: Shop, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyspark", None)
    shop.put((1, 10))
    assert main(["rollup", "--lake", shop.root]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == f"Wrote 1 rows to {shop.root}/_tables/rollup"
