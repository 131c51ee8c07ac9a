"""A copy of a lake on Hadoop's file systems: a valid lake at any moment, after any interruption."""

from __future__ import annotations

import shutil
from contextlib import nullcontext
from pathlib import Path

import pytest
from pipeline.lakes import Shop
from pyspark.sql import SparkSession

from qmf.pipeline import Lake, commands
from qmf.pipeline.cli import main
from qmf.pipeline.errors import LakeError
from qmf.pipeline.frames import Frames
from qmf.pipeline.lake import maintenance
from qmf.pipeline.spark.hadoop import HadoopFolder
from qmf.pipeline.spark.mirror import MirrorCounts, mirror

DAY = 86_400


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path / "lake")


@pytest.fixture
def url(spark: SparkSession, tmp_path: Path) -> str:
    """A folder under a URL that only Hadoop understands."""
    assert spark.sparkContext._jsc is not None
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set("fs.viewfs.impl.disable.cache", "true")
    (tmp_path / "far").mkdir()
    conf.set("fs.viewfs.mounttable.lakes.link./far", (tmp_path / "far").as_uri())
    return "viewfs://lakes/far/lake"


def sales(spark: SparkSession, lake: str) -> list[int]:
    return sorted(int(row["sales"]) for row in Frames(spark, lake).objects("till").collect())


def test_files_are_copied_and_removed(spark: SparkSession, shop: Shop, url: str, tmp_path: Path) -> None:
    target = HadoopFolder(spark, url)
    shop.put((1, 1))
    shop.put((2, 2))
    assert mirror(shop.lake, target) == MirrorCounts(files=3, entries=2)
    assert sales(spark, url) == [1, 2]
    assert mirror(shop.lake, target) == MirrorCounts()
    maintenance.compact(shop.lake, before="1970-01-02")
    shop.put((3, 3))
    assert mirror(shop.lake, target, now_ns=0) == MirrorCounts(files=2, entries=2, removed=2)
    assert sales(spark, url) == [1, 2, 3]
    trash = tmp_path / "far" / "lake" / "_trash"
    assert [path.name for path in trash.iterdir()] == ["1970-01-01"]
    mirror(shop.lake, target, now_ns=8 * DAY * 10**9)
    assert not any(trash.iterdir())
    assert Lake(tmp_path / "far" / "lake").files() == shop.lake.files()


def test_it_continues_after_an_interruption(spark: SparkSession, shop: Shop, url: str, tmp_path: Path) -> None:
    for number in range(1, 5):
        shop.put((number, number))
    target = HadoopFolder(spark, url)
    answers = iter([True, True])
    assert mirror(shop.lake, target, wanted=lambda: next(answers, False)).entries == 2
    assert sales(spark, url) == [1, 2]
    # A copy that was killed between a file and its entry leaves a file that no entry names, or half of one.
    inside = next(iter(Lake(shop.root).entries(2, 3))).added
    (name,) = inside
    half = tmp_path / "far" / "lake" / name
    half.parent.mkdir(parents=True, exist_ok=True)
    (half.parent / f".tmp-{half.name}").write_bytes(b"half")
    shutil.copy(shop.lake.root / name, half)
    assert mirror(shop.lake, target).entries == 2
    assert sales(spark, url) == [1, 2, 3, 4]


def test_a_new_copy_begins_with_the_checkpoint(spark: SparkSession, shop: Shop, url: str) -> None:
    for number in range(1, 4):
        shop.put((number, number))
    shop.lake.write_checkpoint(2)
    shop.lake.truncate_log(2**63)
    target = HadoopFolder(spark, url)
    assert mirror(shop.lake, target) == MirrorCounts(files=4, entries=1)
    assert sales(spark, url) == [1, 2, 3]


def test_a_copy_that_is_too_old_is_an_error(spark: SparkSession, shop: Shop, url: str) -> None:
    shop.put((1, 1))
    target = HadoopFolder(spark, url)
    mirror(shop.lake, target)
    for number in range(2, 5):
        shop.put((number, number))
    shop.lake.write_checkpoint(3)
    shop.lake.truncate_log(2**63)
    with pytest.raises(LakeError, match=r"0*2\.json"):
        mirror(shop.lake, target)
    assert sales(spark, url) == [1]


def test_errors_of_the_file_system(spark: SparkSession, shop: Shop) -> None:
    shop.put((1, 1))
    with pytest.raises(LakeError, match=r'^nosuch://host/lake/: No FileSystem for scheme "nosuch"$'):
        HadoopFolder(spark, "nosuch://host/lake")
    with pytest.raises(LakeError, match="viewfs://lakes/nowhere"):
        mirror(shop.lake, HadoopFolder(spark, "viewfs://lakes/nowhere"))


def test_the_command(
    spark: SparkSession,
    shop: Shop,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commands.mirror, "spark_session", lambda _: nullcontext(spark))
    shop.put((1, 1), (2, 2))
    copy = (tmp_path / "copy").as_uri()
    assert main(["mirror", "--lake", shop.root, "--to", copy]) == 0
    assert capsys.readouterr().out == "Copied 2 files in 1 commits; 0 files removed\n"
    assert Lake(tmp_path / "copy").files() == shop.lake.files()
    assert main(["mirror", "--lake", "hdfs://host/lake", "--to", copy]) == 2
    assert main(["mirror", "--lake", str(tmp_path / "none"), "--to", copy]) == 2
    assert capsys.readouterr().err.endswith("none: no lake, or nothing in it yet\n")
