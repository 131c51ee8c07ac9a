"""The last row of each object that rules follow references to, as files, so that a stream does not read the lake again.

A stream by tasks writes them when many rows came since the last time; one task reads them, others the rows since then.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.correlate.lake_rows import Position
from qmf.pipeline.errors import lake_errors
from qmf.pipeline.lake.arrow import import_pyarrow

#: Rows that are read again rather than written.
_FEW = 50_000


@attrs.frozen(kw_only=True)
class FollowedSnapshot:
    """The objects at a position.

    Attributes:
        columns: what is kept of each class, for which it is valid.
        position: of the lake.
        files: paths, by the class as rules name it.
        rows: the number of objects.
    """

    columns: str = ""
    position: Position = attrs.field(factory=dict)
    files: Mapping[str, str] = attrs.field(factory=dict)
    rows: int = 0

    def is_outgrown(self, rows: int) -> bool:
        """Whether another one is worth it after so many rows."""
        return rows > max(_FEW, 2 * self.rows)


def columns_key(columns: Mapping[str, Sequence[str]]) -> str:
    """What `FollowedSnapshot.columns` is for some columns of classes."""
    return json.dumps({name: list(own) for name, own in sorted(columns.items())})


def write_objects(folder: Path, objects: Mapping[str, Any]) -> tuple[dict[str, str], int]:
    """Write objects as files, and return these, and the number of objects.

    Args:
        folder: for the files.
        objects: Arrow tables, by class.

    Raises:
        LakeError: the file system failed.
    """
    found = {}
    with lake_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        for name, table in objects.items():
            path = folder / f"{uuid.uuid4()}.parquet"
            import_pyarrow().parquet.write_table(table, path)
            found[name] = str(path)
    return found, sum(table.num_rows for table in objects.values())


def read_objects(path: str) -> Any:
    """The objects of a file, as an Arrow table.

    Raises:
        LakeError: the file is not on this machine, or cannot be read.
    """
    with lake_errors(Path(path)):
        return import_pyarrow().parquet.read_table(path)


def remove_others(folder: Path, kept: FollowedSnapshot) -> None:
    """Remove the files that are not those of a snapshot."""
    with lake_errors(folder):
        for path in folder.glob("*.parquet") if folder.is_dir() else ():
            if str(path) not in kept.files.values():
                path.unlink(missing_ok=True)
