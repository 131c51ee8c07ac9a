"""The newest commits of a Delta table in a folder, read from its log: what a reader needs that follows many tables.

The library keeps what it knows of a table, and makes a list of all files after each commit; a follower of dozens of
tables would pay for that with each look. Commits that only add files, which are those of recorders, are read here;
for all others the library is asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from qmf.pipeline.lake.location import is_local
from qmf.pipeline.lake.row_columns import DATE, HASH
from qmf.pipeline.lake.table_files import TableFile
from qmf.pipeline.lake.table_log import LOG

#: What a commit may hold that only adds files.
_ADDING = frozenset({"commitInfo", "txn", "add"})


def files_added_since(url: str, version: int, until: int | None = None) -> tuple[int, list[TableFile]] | None:
    """The files that commits after a version added, and the number of the last commit.

    Args:
        url: of the table.
        version: that was read before.
        until: a later version at which to end; None for the last one.

    Returns:
        None where the library must be asked: commits changed something else or are damaged, entries of the log were
        removed, or the table isn't in a folder.
    """
    if not is_local(url):
        return None
    log = Path(url, LOG)
    found: list[TableFile] = []
    try:
        while version != until and (entry := log / f"{version + 1:020}.json").exists():
            for line in entry.read_text().splitlines():
                action = json.loads(line)
                if not _ADDING.issuperset(action) or not action.get("add", {}).get("dataChange", True):
                    return None
                if "add" in action:
                    found.append(_file(url, action["add"]))
            version += 1
        checkpoint = log / "_last_checkpoint"
        if until is not None and version < until:
            return None
        if until is None and checkpoint.exists() and json.loads(checkpoint.read_text())["version"] > version:
            return None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return version, found


def _file(url: str, add: Mapping[str, Any]) -> TableFile:
    stats = json.loads(add["stats"])
    low, high = stats.get("minValues", {}), stats.get("maxValues", {})
    path = unquote(add["path"])
    run = low.get("_run")
    return TableFile(
        path=path,
        url=f"{url}/{path}",
        date=add["partitionValues"].get(DATE),
        rows=stats["numRecords"],
        size=add["size"],
        run=run if run == high.get("_run") else None,
        first_ns=low.get("_ts_ns"),
        last_ns=high.get("_ts_ns"),
        first_received_ns=low.get("_received_ns"),
        last_received_ns=high.get("_received_ns"),
        first_hash=low.get(HASH),
        last_hash=high.get(HASH),
        first_agent=low.get("_agent"),
        last_agent=high.get("_agent"),
        first_object=low.get("_object"),
        last_object=high.get("_object"),
    )
