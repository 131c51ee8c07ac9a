"""Queries on Parquet files in this process."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from pipeline.lakes import Shop

from qmf.pipeline import LakeError
from qmf.pipeline.history.database import Database
from qmf.pipeline.history.files import LakeFiles


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    path = tmp_path / "one's.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"n": [1, 2, 3]}), path)
    return [str(path)]


@pytest.fixture
def database(tmp_path: Path) -> Database:
    return Database(LakeFiles(Shop(tmp_path / "lake").root))


def test_rows_at_once_and_one_by_one(database: Database, paths: list[str]) -> None:
    sql = "select n from {files} where n > ? order by n"
    assert database.query(sql, paths, [1]) == [(2,), (3,)]
    assert list(database.each(sql, paths, [1])) == [(2,), (3,)]
    assert database.query(sql, []) == list(database.each(sql, [])) == []
    database.close()
    assert database.query(sql, paths, [2]) == [(3,)]
    database.close()


def test_errors_name_the_lake(database: Database, paths: list[str]) -> None:
    with pytest.raises(LakeError, match="lake: "):
        database.query("select nothing from {files}", paths)
    with pytest.raises(LakeError, match="lake: "):
        list(database.each("select nothing from {files}", paths))
    database.close()
