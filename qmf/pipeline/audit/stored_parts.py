"""The table of parts: what an audit keeps of the rows of a lake, and how far it has read the lake's tables.

The position is committed with the parts, after the tables that are made of them: these have all that it says.
"""

from __future__ import annotations

from collections.abc import Mapping

from qmf.pipeline.audit.options import AuditOptions
from qmf.pipeline.audit.schemas import PARTS, arrow_schema
from qmf.pipeline.audit.state import OBJECT_PARTS, PART, columns_together, select_part
from qmf.pipeline.audit.tables import conformed_parts, with_bucket
from qmf.pipeline.duckdb_queries import text
from qmf.pipeline.runners.runner import STORED, Rows, Runner, stored_rows

#: The writer of the tables of audits, and the beginning of the names of the position's numbers, in their logs.
WRITER, _READ = "audit", "audit read "


class StoredParts:
    """The parts of one audit, whether they exist yet or not. Methods raise `LakeError` where a table cannot be read."""

    def __init__(self, options: AuditOptions) -> None:
        self.table = options.table("parts")

    def read(self, path: str) -> int | None:
        """The version up to which the rows of a table of the lake are in the parts; None for none."""
        return self.table.last_batch(f"{_READ}{path}")

    def rows(self, runner: Runner, conditions: Mapping[str, str] | None = None) -> Rows:
        """The parts, as of `made_parts`.

        Args:
            runner: where to read.
            conditions: in SQL, for the rows of each part that is wanted; None for all rows.
        """
        wanted = dict.fromkeys(PARTS, "true") if conditions is None else conditions
        queries = {
            name: f"select {text(name)} as {PART}, * from "
            + (with_bucket(f"({own})") if name in OBJECT_PARTS else f"({own})")
            for name, own in (
                (name, f"{select_part(STORED, name, PARTS[name])} and ({where})") for name, where in wanted.items()
            )
        }
        query, schema = conformed_parts(queries)
        return stored_rows(runner, self.table, schema, query)

    def store(self, parts: Rows, read: Mapping[str, int]) -> None:
        """Replace the parts.

        Args:
            parts: to store; rows that are none are left out.
            read: versions by the path of tables of the lake: their rows are in the parts.
        """
        columns = columns_together(PARTS)
        written = parts.where(PART, list(PARTS)).select(list(columns)).write(self.table)
        self.table.commit_files(
            written.files,
            arrow_schema(columns),
            writer=WRITER,
            replace=True,
            numbers={f"{_READ}{path}": version for path, version in read.items()},
        )
