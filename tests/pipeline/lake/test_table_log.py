"""The newest commits of a table, read from its log: what the library says of the same files."""

from __future__ import annotations

from pathlib import Path

import pytest
from pipeline.lakes import HERE, Shop
from pipeline.shop import TILL

from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.maintenance.optimizing import optimize_lake

pytest.importorskip("deltalake", reason="deltalake is not installed: pip install 'qmf[pipeline]'")

from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.maintenance import retain, vacuum
from qmf.pipeline.lake.table_log import files_added_since


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    made = Shop(tmp_path / "ein See")
    made.put((1, 1), (86_401, 2))
    return made


def table(shop: Shop) -> LakeTable:
    (path,) = shop.lake.tables_of([ClassVersion.from_schema(TILL)])
    return LakeTable(f"{shop.root}/{path}")


def test_files_are_those_of_the_library(shop: Shop) -> None:
    url, before = table(shop).url, table(shop).snapshot()
    assert files_added_since(url, before.version) == (before.version, [])
    shop.put((2, 3), (86_402, 4), object="two")
    shop.put((3, 5))
    found = files_added_since(url, before.version)
    assert found is not None
    after = table(shop).snapshot()
    assert found[0] == after.version == before.version + 2
    assert sorted(found[1], key=lambda file: file.path) == sorted(
        set(after.files) - set(before.files), key=lambda file: file.path
    )
    assert len(found[1]) == 3


def test_other_changes_are_left_to_the_library(shop: Shop) -> None:
    url, version = table(shop).url, table(shop).snapshot().version
    shop.put((2, 3))
    optimize_lake(HERE, shop.lake)
    assert files_added_since(url, version) is None
    version = table(shop).snapshot().version
    assert files_added_since(url, version) == (version, [])
    retain(shop.lake, 0)
    assert files_added_since(url, version) is None


def test_removed_entries_are_noticed(shop: Shop) -> None:
    url, version = table(shop).url, table(shop).snapshot().version
    shop.put((2, 3))
    vacuum(shop.lake)  # makes a checkpoint
    for entry in Path(url, "_delta_log").glob("*.json"):
        entry.unlink()
    assert files_added_since(url, version) is None


def test_damage_and_urls_are_left_to_the_library(shop: Shop) -> None:
    assert files_added_since("s3://bucket/lake/objects/a/b", 3) is None
    url, version = table(shop).url, table(shop).snapshot().version
    Path(url, "_delta_log", f"{version + 1:020}.json").write_text('{"add": ')
    assert files_added_since(url, version) is None
