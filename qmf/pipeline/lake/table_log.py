"""The log of a Delta table: what its entries say, which of its files are damaged, and the settings that it keeps.

The library keeps what it knows of a table, and makes a list of all files after each commit; a follower of dozens of
tables would pay for that with each look. So the newest commits of a table in a folder are read here where they only add
files, as those of recorders do; for all others the library is asked.

A table that gets a commit every ten seconds has 8640 entries a day in its log, which outweigh its rows unless they are
small and go away: entries have figures of few columns, checkpoints do not list files that were taken out long ago, and
what checkpoints replace is deleted after some hours. Streams whose position is older, and readers of older versions,
are told which is the oldest version.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import attrs

from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.columns import DATE, HASH
from qmf.pipeline.lake.delta_errors import delta_errors, import_deltalake
from qmf.pipeline.lake.location import is_local
from qmf.pipeline.lake.table_files import LIMITS, TableFile, file_system, list_folder

LOG = "_delta_log"

#: The names of entries, and of checkpoints.
_NAMES = re.compile(r"(\d{20})\.(?:json|(checkpoint)\b.*\.parquet)")


@attrs.frozen
class LogFile:
    """An entry of a log, or a checkpoint, by its path inside the table; times are seconds since 1970.

    The damage is why it cannot be read, if that was looked for.
    """

    path: str
    version: int
    is_checkpoint: bool
    time: float
    damage: str = ""


def _log_files(url: str, options: Mapping[str, str]) -> list[LogFile]:
    found = [
        LogFile(f"{LOG}/{info.base_name}", int(match[1]), bool(match[2]), info.mtime_ns / 1e9)
        for info in list_folder(url, options, LOG)
        if (match := _NAMES.fullmatch(info.base_name))
    ]
    return sorted(found, key=lambda file: (file.version, file.time))


def damaged_log_files(url: str, options: Mapping[str, str]) -> list[LogFile]:
    """The files of a table's log that cannot be read, in order."""
    store = file_system(url, options)
    found = []
    for file in _log_files(url, options):
        damage = None
        if file.is_checkpoint:
            try:
                import_pyarrow().parquet.read_metadata(store.open_input_file(file.path))
            except (OSError, ValueError) as error:
                damage = str(error).splitlines()[0]
        else:
            with delta_errors(f"{url}/{file.path}"), store.open_input_stream(file.path) as stream:
                damage = _entry_damage(stream.read())
        if damage is not None:
            found.append(attrs.evolve(file, damage=damage))
    return found


def oldest_version(url: str, options: Mapping[str, str]) -> int:
    """The oldest version of a table that can be read; 0 for a log without any."""
    files = _log_files(url, options)
    # Without the first entry, reading begins with a checkpoint.
    whole = any(file.version == 0 and not file.is_checkpoint for file in files)
    return 0 if whole else min((file.version for file in files if file.is_checkpoint), default=0)


def entry_time(url: str, options: Mapping[str, str], version: int) -> float | None:
    """When the entry of a version was written, in seconds since 1970; None where it is gone."""
    times = (file.time for file in _log_files(url, options) if file.version == version and not file.is_checkpoint)
    return next(times, None)


def remove_entries(url: str, options: Mapping[str, str], before: float) -> None:
    """Delete the entries and checkpoints that the last checkpoint before a time, in seconds since 1970, replaces."""
    files, store = _log_files(url, options), file_system(url, options)
    replaced = max((file.version for file in files if file.is_checkpoint and file.time <= before), default=0)
    # The oldest first: what is left is read from a checkpoint on, whenever this is interrupted.
    for file in files:
        if file.version < replaced:
            with delta_errors(f"{url}/{file.path}"):
                store.delete_file(file.path)


def commit_properties(writer: str | None, batch: int, numbers: Mapping[str, int] | None) -> Any:
    """What the entry of a commit says about its writer: the number of its batch, and others by name."""
    delta = import_deltalake()
    named = {**(numbers or {}), **({} if writer is None else {writer: batch})}
    return delta.CommitProperties(app_transactions=[delta.Transaction(name, number) for name, number in named.items()])


def named_failure(url: str, options: Mapping[str, str], error: LakeError) -> LakeError:
    """A failure to read a table, with the name of the damaged file of its log where there is one."""
    try:
        damaged = damaged_log_files(url, options)
    except LakeError:
        return error
    if not damaged:
        return error
    return LakeError(f"{url}/{damaged[0].path}: damaged: {damaged[0].damage}; see qmf-pipeline check")


def _entry_damage(content: bytes) -> str | None:
    lines = content.splitlines()
    if not lines:
        return "it is empty"
    try:
        actions: list[Any] = [json.loads(line) for line in lines if line.strip()]
    except ValueError:
        return "it is cut off, or not JSON"
    return None if actions and all(isinstance(action, dict) for action in actions) else "it has no actions"


#: What a commit may hold that only adds files.
_ADDING = frozenset({"commitInfo", "txn", "add"})


def files_added_since(url: str, version: int, until: int | None = None) -> tuple[int, list[TableFile]] | None:
    """The files that commits after a version added, up to another or the last one, and the number of the last commit.

    None where the library must be asked: for other commits, entries that are damaged or gone, or tables elsewhere.
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
    ends = stats.get("minValues", {}), stats.get("maxValues", {})
    path, (run, last_run) = unquote(add["path"]), (end.get("_run") for end in ends)
    limits = (end.get(name) for name in LIMITS for end in ends)
    facts = (add["partitionValues"].get(DATE), stats["numRecords"], add["size"], run if run == last_run else None)
    return TableFile(path, f"{url}/{path}", *facts, *limits)


#: Commits from one checkpoint of a table's log to the next: each reader reads the log since the last one.
CHECKPOINT_COMMITS = 100

#: Hours that entries of a log stay: a stream may stand still for so long, so one that is run once a day goes on. Each
#: commit takes a list of the log's folder, so more files would make all commits slower.
LOG_HOURS = 30

#: Columns of recorded rows with statistics: those that readers choose files by. Some tables lack some of them.
RECORDED_STATISTICS = ("_run", "_seq", "_ts_ns", "_received_ns", HASH)

#: Those of tables with days that are clustered: readers of one object choose files by it.
CLUSTERED_STATISTICS = (*RECORDED_STATISTICS, "_agent", "_object")

_RETENTION = "delta.logRetentionDuration"

#: The property of a table that names the columns with statistics.
_STATISTICS = "delta.dataSkippingStatsColumns"


def exact_statistics(schema: Any) -> tuple[str, ...]:
    """The columns of a schema in Arrow whose limits the library notes exactly, so that readers find rows by them.

    It takes an infinity, or what is no number, for no limit, and a decimal of more than 63 bits for the largest of 63:
    readers who choose files by such limits miss rows. Nor can the property name columns that are no identifiers.
    """
    types = import_pyarrow().types
    inexact = (types.is_floating, types.is_decimal, types.is_nested)
    return tuple(
        field.name for field in schema if field.name.isidentifier() and not any(test(field.type) for test in inexact)
    )


def table_settings(statistics: Sequence[str] = ()) -> dict[str, str]:
    """The properties of a table, in the words of the Delta protocol; no statistics are the library's choice."""
    found = {
        "delta.checkpointInterval": str(CHECKPOINT_COMMITS),
        _RETENTION: f"interval {LOG_HOURS} hours",
        # `vacuum` needs them to know when files were taken out; it finds older ones by the folder.
        "delta.deletedFileRetentionDuration": "interval 1 hours",
    }
    return {**found, _STATISTICS: ",".join(statistics)} if statistics else found


def lacking_settings(configuration: Mapping[str, str], wanted: Mapping[str, str]) -> dict[str, str]:
    """The property that names the columns with statistics, where a table lacks some; others stay as they are."""
    text = wanted.get(_STATISTICS)
    if text is None or set(text.split(",")) <= set((configuration.get(_STATISTICS) or "").split(",")):
        return {}
    return {_STATISTICS: text}
