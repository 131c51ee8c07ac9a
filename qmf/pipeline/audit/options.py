"""Options of an audit, and its tables."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import absolute
from qmf.pipeline.lake.table_paths import kind_path


@attrs.frozen
class AuditOptions:
    """Options of an audit.

    Attributes:
        lake: path or URL.
        out: folder of the tables.
        storage: options of the object stores of both.
        events: make the tables of events and calls as well; without them, their rows are not read.
    """

    lake: str
    out: str
    storage: Mapping[str, str] = attrs.field(factory=dict)
    events: bool = True

    def table(self, name: str) -> LakeTable:
        """One of the tables."""
        return LakeTable(f"{absolute(self.out)}/{name}", self.storage)

    def paths(self, lake: DeltaLake) -> list[str]:
        """The paths of the tables of a lake that are read, in order."""
        left_out = {kind_path(RowKind.SCHEMAS)}
        if not self.events:
            left_out |= {kind_path(RowKind.UNTYPED), *(item.table for item in lake.classes() if item.version.event)}
        return [path for path in lake.paths() if path not in left_out]
