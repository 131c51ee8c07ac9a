"""A lake: a folder or a URL with one Delta table for each class, and one for each other kind of rows.

What a recorder committed survives its kill: each table's commit is whole or absent, see `lake_table`. The table of
schemas is written before the rows of a new class, so that whoever finds rows finds their class.

Any tool that reads Delta tables reads a lake: Spark with Delta, DuckDB's ``delta_scan``, Polars, pandas.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.errors import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema, columns_of
from qmf.pipeline.lake.columns import CLASS_KINDS, DATE, ClassVersion, Columns, ColumnType
from qmf.pipeline.lake.delta_errors import delta_errors
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import JOB_TABLES, absolute, class_path, is_local, kind_path
from qmf.pipeline.lake.table_files import list_folder
from qmf.pipeline.lake.table_log import LOG, RECORDED_STATISTICS

_SCHEMA_COLUMNS = ("package", "class", "hash", "event", "columns", "xml", "table")


@attrs.frozen
class RecordedClass:
    """A class version of a lake, the path of the table inside it that has its rows, and its schema as XML, or empty."""

    version: ClassVersion
    table: str
    xml: str = ""


class DeltaLake:
    """A lake by its path or URL. Belongs to one thread at a time.

    Methods raise `LakeError` for every failure of the file system or of the object store.
    """

    def __init__(self, url: str, options: Mapping[str, str] | None = None) -> None:
        """Name a lake; nothing is read yet.

        Args:
            url: a path of this machine, or a URL that the library's object stores know (``s3://bucket/lake``).
            options: of the object store, e.g. ``AWS_ENDPOINT_URL``; what is not given comes from the environment.
        """
        self.url = absolute(url)
        self.options = dict(options or {})
        self._tables: dict[str, LakeTable] = {}
        self._classes: tuple[int | None, tuple[RecordedClass, ...]] = (None, ())

    def __reduce__(self) -> tuple[type[DeltaLake], tuple[str, dict[str, str]]]:
        # Executors read the lake themselves.
        return DeltaLake, (self.url, self.options)

    @property
    def is_local(self) -> bool:
        """True for a folder of this machine."""
        return is_local(self.url)

    def create(self) -> None:
        """Make the lake, unless it is there: it has a table of schemas from then on."""
        columns = (*columns_of(RowKind.SCHEMAS, None), (DATE, ColumnType.TEXT))
        self.kind_table(RowKind.SCHEMAS).create(arrow_schema(columns), ())

    def exists(self) -> bool:
        """True if there is a lake, be it empty."""
        return self.kind_table(RowKind.SCHEMAS).version() is not None

    def table(self, path: str) -> LakeTable:
        """A table of the lake by its path inside it, whether it exists yet or not; see `location`."""
        found = self._tables.get(path)
        if found is None:
            statistics = () if path.startswith(f"{JOB_TABLES}/") else RECORDED_STATISTICS
            found = self._tables[path] = LakeTable(f"{self.url}/{path}", self.options, statistics=statistics)
        return found

    def kind_table(self, kind: RowKind) -> LakeTable:
        """The table of a kind without classes."""
        return self.table(kind_path(kind))

    def paths(self) -> list[str]:
        """The paths of the tables of recorded rows that exist, in order: those of classes, and of the other kinds."""
        kinds = [kind_path(kind) for kind in RowKind if kind not in CLASS_KINDS]
        candidates = sorted({*(item.table for item in self.classes()), *kinds})
        return [path for path in candidates if self.table(path).version() is not None]

    def job_paths(self) -> list[str]:
        """The paths of the tables that jobs have produced, in order."""
        return self.table_folders([JOB_TABLES])

    def table_folders(self, folders: Iterable[str]) -> list[str]:
        """The paths of the tables in some folders, in order, also of those that cannot be read."""
        found, below = [], list(folders)
        while below:
            folder = below.pop()
            entries = list_folder(self.url, self.options, folder)
            names = [entry.base_name for entry in entries if not entry.is_file]
            if LOG in names:
                found.append(folder)
            else:
                below += [f"{folder}/{name}" for name in names]
        return sorted(found)

    def versions(self, paths: Iterable[str] | None = None) -> dict[str, int]:
        """The numbers of the last commits of tables: a position from which a reader can follow the lake.

        Without paths those of all tables; tables that don't exist yet are left out.
        """
        found = {path: self.table(path).version() for path in (self.paths() if paths is None else paths)}
        return {path: version for path, version in found.items() if version is not None}

    # -- classes

    def classes(self) -> tuple[RecordedClass, ...]:
        """The class versions of the lake, each once, sorted by package, name and hash; none for an empty lake."""
        table = self.kind_table(RowKind.SCHEMAS)
        version = table.version()
        if version is None:
            return ()
        if version != self._classes[0]:
            self._classes = (version, self._read_classes(table))
        return self._classes[1]

    def class_versions(self) -> list[ClassVersion]:
        """The class versions of the lake, sorted; `LakeError` if there is no lake, or no class in it yet."""
        found = [item.version for item in self.classes()]
        if not found:
            raise LakeError(f"{self.url}: no lake, or nothing in it yet")
        return found

    def tables_of(self, versions: Iterable[ClassVersion]) -> list[str]:
        """The paths of the tables that hold the rows of class versions, in order."""
        wanted = set(versions)
        return sorted({item.table for item in self.classes() if item.version in wanted})

    def _read_classes(self, table: LakeTable) -> tuple[RecordedClass, ...]:
        found: dict[tuple[str, str, str, bool], RecordedClass] = {}
        rows: list[dict[str, Any]] = []
        for file in table.snapshot().files:
            with delta_errors(file.url), table.open_file(file.path) as parquet:
                rows += parquet.read(list(_SCHEMA_COLUMNS), use_threads=False).to_pylist()
        for row in rows:
            package, name, hash, event, columns, xml, path = (row[column] for column in _SCHEMA_COLUMNS)
            version = ClassVersion.from_json(package, name, hash, event, columns)
            found.setdefault((package, name, hash, event), RecordedClass(version, path, xml or ""))
        return tuple(found[key] for key in sorted(found))


def place(version: ClassVersion, known: Iterable[RecordedClass]) -> str:
    """The path of the table for a class version: not that of its class where one known there has another type."""
    kind = RowKind.EVENTS if version.event else RowKind.OBJECTS
    path = class_path(kind, version.package, version.name)
    columns = {column.name.lower(): column for column in version.columns}
    found = path
    for item in known:
        if item.version == version:
            return item.table
        for column in item.version.columns if item.table == path else ():
            own = columns.get(column.name.lower(), column)
            if (own.name, own.column_type) != (column.name, column.column_type):
                found = class_path(kind, version.package, version.name, version.hash or "none")
    return found


def versions_of(
    known: Sequence[ClassVersion], package: str | None, name: str, hash: str | None = None
) -> list[ClassVersion]:
    """The versions of one class, or the one with a hash, among those of a lake; the name in upper or lower case.

    `LakeError` where there is no such class, or several packages have one and `package` is None.
    """
    found = [
        item
        for item in known
        if item.name.lower() == name.lower() and package in (None, item.package) and hash in (None, item.hash)
    ]
    if not found:
        raise LakeError(f"the lake has no class {name!r}" + (f" of package {package!r}" if package else ""))
    if len({(item.package, item.event) for item in found}) > 1:
        packages = ", ".join(sorted({item.package for item in found}))
        raise LakeError(f"several packages have {name!r}: {packages}; choose one")
    return found


def choose_classes(known: Sequence[ClassVersion], names: Iterable[str] = ()) -> list[list[ClassVersion]]:
    """The versions of each class of objects that is named, with or without ``package:``; of all without names."""
    own = [version for version in known if not version.event]
    wanted: Sequence[tuple[str | None, str]] = [
        (package or None, name) for package, _, name in (text.rpartition(":") for text in names)
    ] or sorted({(version.package, version.name) for version in own})
    return [versions_of(own, package, name) for package, name in wanted]


def columns_of_versions(kind: RowKind, versions: Sequence[ClassVersion]) -> Columns:
    """The columns of rows of a kind, and of the versions of a class; `LakeError` if these disagree about a type."""
    columns: dict[str, ColumnType] = dict(columns_of(kind, None))
    for version in versions:
        for column in version.columns:
            if columns.setdefault(column.name, column.column_type) is not column.column_type:
                raise LakeError(
                    f"{version.package}:{version.name}: versions disagree about {column.name}; "
                    f"choose one by its hash: {', '.join(sorted(item.hash for item in versions))}"
                )
    return tuple(columns.items())
