"""Which classes a lake knows, and the Spark schema of each of its tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pyspark.errors import AnalysisException
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from qmf.pipeline.errors import LakeError, PipelineError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import columns_of, library
from qmf.pipeline.lake.columns import Cell, Column, Table, table_from_json
from qmf.pipeline.lake.lake import Lake
from qmf.pipeline.lake.layout import LOG
from qmf.pipeline.lake.row_columns import ANY, Columns
from qmf.pipeline.lake.transaction_log import replay

_TYPES: dict[Cell, T.DataType] = {
    Cell.INT8: T.ByteType(),
    Cell.INT16: T.ShortType(),
    Cell.INT32: T.IntegerType(),
    Cell.INT64: T.LongType(),
    Cell.DECIMAL: T.DecimalType(20, 0),
    Cell.FLOAT: T.FloatType(),
    Cell.DOUBLE: T.DoubleType(),
    Cell.BOOL: T.BooleanType(),
    Cell.TEXT: T.StringType(),
    Cell.TIME: T.TimestampType(),
}

#: Columns of a frame of several classes at most: each row pays for those that it doesn't have.
MOST_COLUMNS = 250

_TOLD = ("package", "class", "hash", "event", "columns")


def struct(columns: Columns) -> T.StructType:
    """The Spark schema of a file's columns."""
    return T.StructType([T.StructField(name, _TYPES[cell]) for name, cell in columns])


def columns_like(schema: T.StructType) -> Columns:
    """The way back from `struct`."""
    cells = {type: cell for cell, type in _TYPES.items()}
    return tuple((field.name, cells[field.dataType]) for field in schema)


def schema_of(kind: RowKind, of: Sequence[Table] = ()) -> T.StructType:
    """The Spark schema of a kind, or of the versions of a class together.

    Raises:
        LakeError: two versions give one column different types; one of them can be chosen by its hash.
    """
    columns: dict[str, Cell] = dict(columns_of(kind, None))
    for table in of:
        for column in table.columns:
            if columns.setdefault(column.name, column.cell) is not column.cell:
                raise LakeError(
                    f"{table.package}:{table.name}: versions disagree about {column.name}; choose one by its hash: "
                    + ", ".join(sorted(item.hash for item in of))
                )
    return struct(tuple(columns.items()))


def any_schema(kind: RowKind) -> T.StructType:
    """The Spark schema of the rows of all classes together, see `qmf.pipeline.frames.Frames.any`."""
    return struct((*columns_of(kind, None), *ANY))


def tables(lake: str, spark: SparkSession | None = None) -> list[Table]:
    """The class versions that a lake knows, sorted.

    Args:
        lake: path, or any URL that Spark reads; URLs need `spark`.
        spark: to read with.

    Raises:
        LakeError: there is no lake, or it knows no class yet.
    """
    paths = [path for path in files(lake, spark) if path.startswith(f"{RowKind.SCHEMAS.value}/")]
    if is_local(lake):
        root = Lake(local(lake))
        rows = [
            tuple(row[name] for name in _TOLD)
            for path in paths
            for row in library().parquet.ParquetFile(root.find(path)).read(list(_TOLD)).to_pylist()
        ]
    elif paths:
        assert spark is not None
        frame = spark.read.schema(schema_of(RowKind.SCHEMAS)).parquet(*(f"{lake.rstrip('/')}/{path}" for path in paths))
        rows = [tuple(row) for row in frame.select(*_TOLD).collect()]
    else:
        rows = []
    found = {table_from_json(*row) for row in rows}
    if not found:
        raise LakeError(f"{lake}: no lake, or nothing in it yet")
    return sorted(found, key=lambda table: (table.package, table.name, table.hash))


def files(lake: str, spark: SparkSession | None = None) -> dict[str, int]:
    """The files that a lake's log says are in it, by path inside the lake, with their rows.

    Raises:
        PipelineError: the lake is behind a URL, and `spark` is missing.
    """
    if is_local(lake):
        return Lake(local(lake)).files()
    if spark is None:
        raise PipelineError(f"{lake}: is read by Spark only")
    try:
        told = spark.read.text(f"{lake.rstrip('/')}/{LOG}/[0-9]*.json", wholetext=True)
        named = [(row[0], row[1]) for row in told.select("_metadata.file_name", "value").collect()]
    except AnalysisException as error:
        raise LakeError(f"{lake}: no lake, or nothing in it yet: {error.getCondition()}") from error
    return replay(named)


def versions(known: Sequence[Table], package: str | None, name: str, hash: str | None = None) -> list[Table]:
    """The versions of one class.

    Args:
        known: as `tables` gives them.
        package, hash: None for the only one, and for all.
        name: in any case.

    Raises:
        LakeError: no such class, or the name is that of classes of several packages.
    """
    found = [
        table
        for table in known
        if table.name.lower() == name.lower() and package in (None, table.package) and hash in (None, table.hash)
    ]
    if not found:
        raise LakeError(f"the lake knows no class {name!r}" + (f" of package {package!r}" if package else ""))
    if len({(table.package, table.event) for table in found}) > 1:
        raise LakeError(f"several packages have {name!r}: {', '.join(sorted({t.package for t in found}))}; choose one")
    return found


def choose(known: Sequence[Table], names: Iterable[str] = (), *, events: bool = False) -> list[list[Table]]:
    """The versions of each class that is wanted.

    Args:
        known: as `tables` gives them.
        names: of classes, with or without ``package:``; none for all.
        events: those of events instead of those of objects.

    Raises:
        LakeError: as of `versions`.
    """
    own = [table for table in known if table.event is events]
    wanted: Sequence[tuple[str | None, str]] = [
        (package or None, name) for package, _, name in (text.rpartition(":") for text in names)
    ] or sorted({(table.package, table.name) for table in own})
    return [versions(own, package, name) for package, name in wanted]


def together(of: Iterable[Table], most: int = MOST_COLUMNS) -> list[list[Table]]:
    """Tables of any classes in groups that one frame can read, and tell apart: a name has one type in each.

    Args:
        of: the tables.
        most: columns of a group, unless one table has more.
    """
    groups: list[tuple[list[Table], dict[str, tuple[str, Cell]]]] = []
    for table in of:
        # Sessions that are not ours may take names for the same that differ in case only.
        own = {column.name.lower(): (column.name, column.cell) for column in table.columns}
        for tables, columns in groups:
            joined = {**own, **columns}
            fits = len(joined) <= most and all(joined[name] == cell for name, cell in own.items())
            if fits and _is_plain(table) and _is_plain(tables[0]):
                columns.update(own)
                tables.append(table)
                break
        else:
            groups.append(([table], own))
    return [tables for tables, _columns in groups]


def _is_plain(table: Table) -> bool:
    """Spark tells its name right when it takes it from the folder's: it takes bytes of UTF-8 for letters."""
    return f"{table.package}{table.name}{table.hash}".isascii()


def columns_by_member(of: Sequence[Table]) -> dict[str, list[Column]]:
    """The columns of the versions of a class together, by member, in schema order."""
    found: dict[str, dict[str, Column]] = {}
    for table in of:
        for column in table.columns:
            found.setdefault(column.member, {}).setdefault(column.name, column)
    return {member: list(columns.values()) for member, columns in found.items()}


def is_local(lake: str) -> bool:
    """True for paths, and for URLs of files."""
    return "://" not in lake or lake.startswith("file://")


def local(lake: str) -> Path:
    """The path of a local lake.

    Raises:
        PipelineError: it isn't one.
    """
    if not is_local(lake):
        raise PipelineError(f"{lake}: only a folder of this machine, or one mounted on it, will do here")
    return Path(lake.removeprefix("file://")).absolute()
