"""A lake of Delta tables: its classes, and where the rows of a class version lie."""

from __future__ import annotations

from pathlib import Path

import attrs
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipeline.shop import TILL

from qmf.pipeline.errors import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion, ColumnType
from qmf.pipeline.lake.delta_lake import DeltaLake, RecordedClass, place
from qmf.pipeline.lake.location import class_of_path, class_path

VERSION = ClassVersion.from_schema(TILL)
PATH = class_path(RowKind.OBJECTS, VERSION.package, VERSION.name)


def with_type(version: ClassVersion, column_type: ColumnType, hash: str) -> ClassVersion:
    first, *others = version.columns
    return attrs.evolve(version, hash=hash, columns=(attrs.evolve(first, column_type=column_type), *others))


def add(lake: DeltaLake, version: ClassVersion, batch: int) -> None:
    columns = {
        "package": [version.package],
        "class": [version.name],
        "hash": [version.hash],
        "event": [version.event],
        "columns": [version.to_json()],
        "xml": [""],
        "table": [place(version, lake.classes())],
    }
    lake.kind_table(RowKind.SCHEMAS).append(pa.table(columns), writer="test", batch=batch, partition_by=())


def test_a_lake_knows_its_classes_and_their_tables(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path))
    assert not lake.exists()
    assert lake.classes() == ()
    with pytest.raises(LakeError, match="no lake"):
        lake.class_versions()
    lake.create()
    lake.create()
    assert lake.exists()
    assert lake.classes() == ()
    add(lake, VERSION, 1)
    add(lake, VERSION, 2)
    assert lake.classes() == (RecordedClass(VERSION, PATH),)
    assert lake.class_versions() == [VERSION]
    assert lake.tables_of([VERSION]) == [PATH]
    assert lake.paths() == ["schemas"]
    assert lake.versions() == {"schemas": 2}


def test_versions_of_a_class_share_a_table_unless_their_types_differ(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path))
    add(lake, VERSION, 1)
    newer = attrs.evolve(VERSION, hash="newer", columns=VERSION.columns[1:])
    other = with_type(VERSION, ColumnType.BOOL, "0badc0de-1")
    assert place(newer, lake.classes()) == PATH
    assert place(other, lake.classes()) == f"{PATH}@0badc0de"
    add(lake, other, 2)
    assert place(other, lake.classes()) == f"{PATH}@0badc0de"
    assert {item.table for item in lake.classes()} == {PATH, f"{PATH}@0badc0de"}


def test_names_that_differ_by_their_case_only_do_not_share_a_table() -> None:
    first, *others = VERSION.columns
    other = attrs.evolve(VERSION, hash="h", columns=(attrs.evolve(first, name=first.name.upper()), *others))
    assert place(other, [RecordedClass(VERSION, PATH)]) == f"{PATH}@h"


@given(package=st.text(min_size=1), name=st.text(min_size=1))
def test_paths_hold_any_name(package: str, name: str) -> None:
    path = class_path(RowKind.EVENTS, package, name)
    assert len(path.split("/")) == 3
    assert ".." not in path.split("/")
    assert class_of_path(path) == (RowKind.EVENTS, package, name)
