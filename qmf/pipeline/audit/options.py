"""Options of an audit, and its tables."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import absolute


@attrs.frozen
class AuditOptions:
    """Options of an audit.

    Attributes:
        lake: path or URL.
        out: folder of the tables.
        storage: options of the object stores of both.
    """

    lake: str
    out: str
    storage: Mapping[str, str] = attrs.field(factory=dict)

    def table(self, name: str) -> LakeTable:
        """One of the tables."""
        return LakeTable(f"{absolute(self.out)}/{name}", self.storage)
