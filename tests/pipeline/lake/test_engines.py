"""Other engines read the tables of a lake, now and as they were."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

import deltalake
import duckdb
import polars
import pytest
from pipeline.lakes import Shop, recorded

TABLE = "objects/org.example.shop/till"


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path / "lake")
    shop.put((1, 10), (2, 20))
    shop.put((3, 30))
    return shop


def test_polars(shop: Shop) -> None:
    table = polars.scan_delta(shop.lake.table(TABLE).url)
    assert table.select(polars.col("sales").sum()).collect().item() == 60
    before = polars.read_delta(shop.lake.table(TABLE).url, version=0)
    assert sorted(before["_seq"].to_list()) == [2, 3]


def test_pandas(shop: Shop) -> None:
    frame = deltalake.DeltaTable(shop.lake.table(TABLE).url).to_pandas()
    assert sorted(frame["_seq"]) == [row["_seq"] for row in recorded(shop.lake, TABLE)]
    assert sum(frame["sales"]) == 60


def test_duckdb(shop: Shop) -> None:
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        try:
            connection.execute("LOAD delta")
        except duckdb.Error:
            pytest.skip("DuckDB's extension for Delta tables is not installed")
        url = shop.lake.table(TABLE).url
        assert connection.execute(f"SELECT sum(sales) FROM delta_scan('{url}')").fetchone() == (60,)


def test_a_table_as_it_was_at_a_version_and_at_a_time(shop: Shop) -> None:
    table = shop.lake.table(TABLE)
    for version in (0, 1):
        os.utime(Path(table.url) / "_delta_log" / f"{version:020d}.json", (1000 + version * 100,) * 2)
    assert [table.snapshot(version).rows for version in (0, 1)] == [2, 3]
    for second, rows in ((1050, 2), (1150, 3)):
        assert table.snapshot(datetime.datetime.fromtimestamp(second, datetime.UTC)).rows == rows
