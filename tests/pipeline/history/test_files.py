"""Queries on Parquet files in this process."""

from __future__ import annotations

from pathlib import Path

import pyarrow
import pytest
from pipeline.lakes import Shop

from qmf.pipeline import LakeError
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
def files(tmp_path: Path) -> LakeFiles:
    return LakeFiles(Shop(tmp_path / "lake").root)


def test_rows_at_once_and_one_by_one(files: LakeFiles, source: RowSource) -> None:
    nothing = RowSource(source.table, (), COLUMNS)
    sql = "select n from {files} where n > ? order by n"
    assert files.query(sql, source, [1]) == [(2,), (3,)]
    assert list(files.each(sql, source, [1])) == [(2,), (3,)]
    assert files.query(sql, nothing) == list(files.each(sql, nothing)) == []
    files.close()
    assert files.query(sql, source, [2]) == [(3,)]
    files.close()


def test_errors_name_the_lake(files: LakeFiles, source: RowSource) -> None:
    with pytest.raises(LakeError, match="lake: "):
        files.query("select nothing from {files}", source)
    with pytest.raises(LakeError, match="lake: "):
        list(files.each("select nothing from {files}", source))
    files.close()
