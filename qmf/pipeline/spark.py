"""Spark: the session, the schemas of a lake's tables, and reading them as a batch.

The only module that makes sessions. Importing it needs pyspark, which its importers load lazily; a session needs Java
17 or newer. With a session active, importing it registers the data source `qmf`; `session` does so for new ones.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from qmf.pipeline.arrow import columns_of
from qmf.pipeline.errors import LakeError, PipelineError
from qmf.pipeline.kinds import PARTITIONS, Columns, RowKind
from qmf.pipeline.lake import Lake
from qmf.pipeline.layout import Place
from qmf.pipeline.members import Cell, Column, Table, table_from_json

#: The oldest Java that Spark 4 runs on.
OLDEST_JAVA = 17

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


def check_java() -> None:
    """Find a Java that is new enough.

    Raises:
        PipelineError: there is none, or it is too old; says how to get one.
    """
    home = os.environ.get("JAVA_HOME")
    program = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    hint = (
        f"Spark needs Java {OLDEST_JAVA} or newer: apt-get install openjdk-17-jre-headless, "
        "or set JAVA_HOME to where it is"
    )
    if not program or not Path(program).exists():
        raise PipelineError(f"no Java was found. {hint}")
    said = subprocess.run([program, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    if found and int(found[1]) < OLDEST_JAVA:
        raise PipelineError(f"{program} is Java {found[1]}. {hint}")


def session(
    master: str = "local[*]", *, name: str = "qmf-pipeline", progress: bool = False, partitions: int | None = None
) -> SparkSession:
    """A Spark session set up for the pipeline, with the data source `qmf`.

    Args:
        master: which Spark; ``local[*]`` is this machine.
        name: of the application.
        progress: show a line for each stage that takes long.
        partitions: of a shuffle; None for one per processor on this machine, and Spark's default elsewhere.

    Raises:
        PipelineError: no Java.
    """
    check_java()
    # Spark's Python workers must be this Python, not the first of that name in the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder: SparkSession.Builder = SparkSession.builder
    if master.startswith("local"):
        # Spark takes the address of the network else, where it would listen for anybody.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        builder = builder.config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        partitions = partitions or os.cpu_count() or 1
    if partitions is not None:
        builder = builder.config("spark.sql.shuffle.partitions", str(partitions))
    spark = (
        builder.master(master)
        .appName(name)
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", str(progress).lower())
        # Schemas may have members that differ in case only; times are UTC whatever the machine thinks.
        .config("spark.sql.caseSensitive", "true")
        .config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.sources.partitionOverwriteMode", "dynamic")
        .getOrCreate()
    )
    register(spark)
    return spark


def register(spark: SparkSession) -> None:
    """Make ``spark.read.format("qmf")`` known to a session."""
    from qmf.pipeline.source import QmfDataSource

    spark.dataSource.register(QmfDataSource)


def struct(columns: Columns) -> T.StructType:
    """The Spark schema of a file's columns."""
    return T.StructType([T.StructField(name, _TYPES[cell]) for name, cell in columns])


def schema_of(kind: RowKind, tables: Sequence[Table] = ()) -> T.StructType:
    """The Spark schema of a kind, or of the versions of a class together.

    Raises:
        LakeError: two versions give one column different types; one of them can be chosen by its hash.
    """
    columns: dict[str, Cell] = dict(columns_of(kind, None))
    for table in tables:
        for column in table.columns:
            if columns.setdefault(column.name, column.cell) is not column.cell:
                raise LakeError(
                    f"{table.package}:{table.name}: versions disagree about {column.name}; choose one by its hash: "
                    + ", ".join(sorted(item.hash for item in tables))
                )
    return struct(tuple(columns.items()))


def tables(lake: str, spark: SparkSession | None = None) -> list[Table]:
    """The class versions that a lake knows, sorted.

    Args:
        lake: path, or any URL that Spark reads; URLs need `spark`.
        spark: to read with.

    Raises:
        LakeError: there is no lake, or it knows no class yet.
    """
    columns = ["package", "class", "hash", "event", "columns"]
    if spark is None or is_local(lake):
        from qmf.pipeline.arrow import library

        root = Lake(local(lake))
        rows = [
            tuple(row[name] for name in columns)
            for path in root.files()
            if path.startswith(f"{RowKind.SCHEMAS.value}/")
            for row in library().parquet.ParquetFile(root.find(path)).read(columns).to_pylist()
        ]
    else:
        rows = [tuple(row) for row in read(spark, lake, RowKind.SCHEMAS).select(*columns).collect()]
    found = {table_from_json(*row) for row in rows}
    if not found:
        raise LakeError(f"{lake}: no lake, or nothing in it yet")
    return sorted(found, key=lambda table: (table.package, table.name, table.hash))


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


def read(spark: SparkSession, lake: str, kind: RowKind, of: Sequence[Table] = ()) -> DataFrame:
    """One table of a lake: a kind without classes, or the versions of one class together.

    Columns that a version lacks are null. Besides those of the files there are those of the folders, `qmf_date` among
    them; comparing that one to a text reads those days only.

    Raises:
        LakeError: there is no lake; versions disagree about a type.
    """
    schema = schema_of(kind, of)
    folders = [Place(kind, item.package, item.name, item.hash, "").folder for item in of] or [kind.value]
    extra = PARTITIONS if of else PARTITIONS[-1:]
    full = T.StructType([*schema.fields, *(T.StructField(name, T.StringType()) for name in extra)])
    if is_local(lake):
        root = Lake(local(lake))
        paths = [
            str(root.find(path)) for path in root.files() if any(path.startswith(f"{folder}/") for folder in folders)
        ]
    else:
        paths = [f"{lake.rstrip('/')}/{folder}" for folder in folders]
    if not paths:
        return spark.createDataFrame([], full)
    return spark.read.schema(full).option("basePath", f"{_url(lake)}/{kind.value}").parquet(*paths)


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
        raise PipelineError(f"{lake}: only a folder of this machine, or one mounted on it, can be followed")
    return Path(lake.removeprefix("file://")).absolute()


def _url(lake: str) -> str:
    return str(local(lake)) if is_local(lake) else lake.rstrip("/")


def since(frame: DataFrame, first: str | None, last: str | None) -> DataFrame:
    """Only the days from `first` to `last`, ``2030-01-31``, both included; None for no bound."""
    if first:
        frame = frame.where(F.col("qmf_date") >= first)
    return frame.where(F.col("qmf_date") <= last) if last else frame


_spark = SparkSession.getActiveSession()
if _spark is not None:
    register(_spark)
