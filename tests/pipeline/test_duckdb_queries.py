"""Connections to DuckDB: what they share and what they do not."""

from __future__ import annotations

import sys
from contextlib import closing

import pytest
from support.processes import run

pytest.importorskip("duckdb", reason="duckdb is not installed: pip install 'qmf[pipeline]'")
pytest.importorskip("pyarrow", reason="pyarrow is not installed: pip install 'qmf[pipeline]'")

import duckdb
import pyarrow as pa

from qmf.pipeline.duckdb_queries import connect


def test_tables_and_the_time_zone_are_those_of_one_connection() -> None:
    with closing(connect()) as one, closing(connect()) as other:
        one.execute("create temp table made as select 1 as number")
        one.register("given", pa.table({"number": [2]}))
        one.execute("set timezone = 'Asia/Kathmandu'")
        other.execute("set timezone = 'UTC'")
        for name in ("made", "given"):
            with pytest.raises(duckdb.CatalogException, match=f"{name} does not exist"):
                other.execute(f"from {name}")
        assert one.execute("from made union all from given").fetchall() == [(1,), (2,)]
        assert one.execute("select current_setting('timezone')").fetchone() == ("Asia/Kathmandu",)


def test_a_connection_leaves_nothing() -> None:
    with closing(connect()) as one:
        one.execute("create temp table made as select 1 as number")
    with closing(connect()) as other:
        assert other.execute("select count(*) from duckdb_tables() where table_name = 'made'").fetchone() == (0,)


def test_settings_of_a_database_are_not_those_of_other_connections() -> None:
    text = "select current_setting('threads'), current_setting('parquet_metadata_cache')"
    with closing(connect(threads=1)) as one, closing(connect(parquet_metadata_cache="true")) as own:
        assert one.execute(text).fetchone() == (1, False)
        with closing(own.cursor()) as cursor:
            assert cursor.execute(text).fetchone()[1] is True
    with closing(connect()) as other:
        assert other.execute(text).fetchone()[1] is False


#: Queries in a process, and in a fork of it, whose exit code is the number of its rows. A query in parallel waits for
#: threads, which a copy of the database would lack.
FORK = """
import os, sys
from qmf.pipeline.duckdb_queries import connect
def count():
    return len(connect().execute("select count(*) from range(1000000) group by range % 7").fetchall())
assert count() == 7
process = os.fork()
if not process:
    os._exit(count())
sys.exit(os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]))
"""


@pytest.mark.slow
def test_a_process_that_is_made_by_a_fork_has_a_database_of_its_own() -> None:
    assert run([sys.executable, "-c", FORK]).returncode == 7
