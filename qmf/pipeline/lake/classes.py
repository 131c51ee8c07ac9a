"""The classes that a lake holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from qmf.pipeline.errors import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import columns_of
from qmf.pipeline.lake.columns import ClassVersion, ColumnType
from qmf.pipeline.lake.row_columns import Columns


def versions_of(
    known: Sequence[ClassVersion], package: str | None, name: str, hash: str | None = None
) -> list[ClassVersion]:
    """The versions of one class.

    Args:
        known: those of the lake, see `DeltaLake.class_versions`.
        package: None for the only package that has the class.
        name: in upper or lower case.
        hash: None for all versions.

    Raises:
        LakeError: there is no such class, or several packages have one.
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
    """The versions of each class of objects that is wanted.

    Args:
        known: those of the lake, see `DeltaLake.class_versions`.
        names: of classes, with or without ``package:``; none for all.

    Raises:
        LakeError: as of `versions_of`.
    """
    own = [version for version in known if not version.event]
    wanted: Sequence[tuple[str | None, str]] = [
        (package or None, name) for package, _, name in (text.rpartition(":") for text in names)
    ] or sorted({(version.package, version.name) for version in own})
    return [versions_of(own, package, name) for package, name in wanted]


def columns_of_versions(kind: RowKind, versions: Sequence[ClassVersion]) -> Columns:
    """The columns of rows of a kind, and of the versions of a class together.

    Raises:
        LakeError: two versions give a column different types; the user can choose one version by its hash.
    """
    columns: dict[str, ColumnType] = dict(columns_of(kind, None))
    for version in versions:
        for column in version.columns:
            if columns.setdefault(column.name, column.column_type) is not column.column_type:
                raise LakeError(
                    f"{version.package}:{version.name}: versions disagree about {column.name}; "
                    f"choose one by its hash: {', '.join(sorted(item.hash for item in versions))}"
                )
    return tuple(columns.items())
