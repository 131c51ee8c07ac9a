"""Queries on Parquet files in this process."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pytest
from pipeline.lakes import Shop

from qmf.pipeline import LakeError
from qmf.pipeline.history.database import Database
from qmf.pipeline.history.files import LakeFiles
from qmf.pipeline.lake.columns import ColumnType
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.row_source import RowSource

COLUMNS = (("n", ColumnType.INT64),)


@pytest.fixture
def source(tmp_path: Path) -> RowSource:
    table = LakeTable(str(tmp_path / "one's"))
    table.append(pyarrow.table({"n": [1, 2, 3]}), writer="test", batch=1, partition_by=())
    return RowSource(table, table.snapshot().files, COLUMNS)


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(LakeFiles(Shop(tmp_path / "lake").root))


def test_rows_at_once_and_one_by_one(database: Database, source: RowSource) -> None:
    nothing = RowSource(source.table, (), COLUMNS)
    sql = "select n from {files} where n > ? order by n"
    assert database.query(sql, source, [1]) == [(2,), (3,)]
    assert list(database.each(sql, source, [1])) == [(2,), (3,)]
    assert database.query(sql, nothing) == list(database.each(sql, nothing)) == []
    database.close()
    assert database.query(sql, source, [2]) == [(3,)]
    database.close()


def test_errors_name_the_lake(database: Database, source: RowSource) -> None:
    with pytest.raises(LakeError, match="lake: "):
        database.query("select nothing from {files}", source)
    with pytest.raises(LakeError, match="lake: "):
        list(database.each("select nothing from {files}", source))
    database.close()
