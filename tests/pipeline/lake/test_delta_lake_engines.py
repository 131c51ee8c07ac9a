"""Other engines read the tables of a lake, now and as they were."""

from __future__ import annotations

import datetime
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import duckdb
import polars
import pytest
from pipeline.lakes import Shop, recorded
from pipeline.unusual import BY_TOTAL, BY_VALUE, fill, raise_alerts
from support.processes import run

from qmf.pipeline.cli import main

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


#: Prints the rows of a statement as JSON; the folder has a DuckDB with its extension, of the same version.
_DUCKDB = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import duckdb
(extension,) = Path(sys.argv[1]).glob(f"duckdb_extension_delta/extensions/v{duckdb.__version__}/delta.duckdb_extension")
connection = duckdb.connect()
connection.execute("SET enable_progress_bar = false")
connection.execute(f"LOAD '{extension}'")
print(json.dumps(connection.execute(sys.argv[2]).fetchall(), default=str))
"""


def asked(statement: str) -> list[list[Any]]:
    """What DuckDB answers, by its own extension for Delta tables: the installed one, or that of `make foreign`."""
    folder = os.environ.get("QMF_TEST_DUCKDB_DELTA")
    if folder:
        done = run([sys.executable, "-I", "-c", _DUCKDB, folder, statement])
        assert done.returncode == 0, done.stderr
        found: list[list[Any]] = json.loads(done.stdout)
        return found
    with duckdb.connect(config={"autoinstall_known_extensions": "false"}) as connection:
        try:
            connection.execute("LOAD delta")
        except duckdb.Error:
            pytest.skip(
                os.environ.get("QMF_TEST_DUCKDB_DELTA_MISSING")
                or "DuckDB's extension for Delta tables is not installed, and QMF_TEST_DUCKDB_DELTA names none"
            )
        return [list(row) for row in connection.execute(statement).fetchall()]


def test_duckdb(shop: Shop) -> None:
    url = shop.lake.table(TABLE).url
    numbers = [[row["_seq"], row["name"], int(row["sales"])] for row in recorded(shop.lake, TABLE)]
    assert asked(f"SELECT _seq, name, sales::BIGINT FROM delta_scan('{url}') ORDER BY _seq") == numbers
    assert main(["optimize", "--lake", shop.root]) == 0
    assert asked(f"SELECT count(*), sum(sales)::BIGINT FROM delta_scan('{url}')") == [[3, 60]]


@pytest.mark.slow
def test_duckdb_says_of_a_roll_up_what_the_command_says(shop: Shop, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rollup", "--lake", shop.root, "--size", "1m"]) == 0
    written = int(capsys.readouterr().out.splitlines()[-1].split()[1])
    table = f"{shop.root}/_tables/rollup/batch"
    assert asked(f"SELECT count(*) FROM delta_scan('{table}')") == [[written]]
    (row,) = asked(f"SELECT sum(samples)::BIGINT, max(last) FROM delta_scan('{table}') WHERE member = 'sales'")
    expected = [int(item["sales"]) for item in recorded(shop.lake, TABLE)]
    assert row == [len(expected), max(expected)]


def test_a_table_as_it_was_at_a_version_and_at_a_time(shop: Shop) -> None:
    table = shop.lake.table(TABLE)
    for version in (0, 1):
        os.utime(Path(table.url) / "_delta_log" / f"{version:020d}.json", (1000 + version * 100,) * 2)
    assert [table.snapshot(version).rows for version in (0, 1)] == [2, 3]
    for second, rows in ((1050, 2), (1150, 3)):
        assert table.snapshot(datetime.datetime.fromtimestamp(second, datetime.UTC)).rows == rows


def found_by_datafusion(url: str, where: str) -> int:
    builder = deltalake.QueryBuilder().register("t", deltalake.DeltaTable(url))
    return sum(batch.num_rows for batch in builder.execute(f"SELECT * FROM t WHERE {where}"))


def found_by_arrow(url: str, where: str) -> int:
    # DuckDB gives the condition to pyarrow's dataset, which chooses the files by the statistics of the log.
    rows = deltalake.DeltaTable(url).to_pyarrow_dataset()
    with duckdb.connect() as connection:
        return len(connection.register("t", rows).execute(f"SELECT * FROM t WHERE {where}").fetchall())


def found_by_polars(url: str, where: str) -> int:
    nan = polars.col("value").is_nan()  # for which its SQL has no function
    others = {"isnan(value)": nan, "NOT isnan(value)": ~nan}
    conditions = [others[part] if part in others else polars.sql_expr(part) for part in where.split(" AND ")]
    return int(polars.scan_delta(url).filter(*conditions).collect().height)


def found_by_duckdb(url: str, where: str) -> int:
    return int(asked(f"SELECT count(*) FROM delta_scan('{url}') WHERE {where}")[0][0])


@pytest.mark.slow
@pytest.mark.parametrize("reader", [found_by_datafusion, found_by_arrow, found_by_polars, found_by_duckdb])
def test_values_that_statistics_would_hide_are_found(tmp_path: Path, reader: Callable[[str, str], int]) -> None:
    shop = Shop(tmp_path / "lake")
    gauges, alerts = fill(shop), raise_alerts(f"{shop.root}/_tables/correlate")
    for _ in range(2):
        found = [{where: reader(gauges, where) for where in {**BY_VALUE, **BY_TOTAL}}]
        found += [{where: reader(alerts, where) for where in BY_VALUE}]
        assert found == [{**BY_VALUE, **BY_TOTAL}, BY_VALUE]
        assert main(["optimize", "--lake", shop.root]) == 0
