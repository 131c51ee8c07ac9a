"""The log of a Delta table: what its entries say, and file by file which of them are damaged."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import attrs

from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_errors import delta_errors, import_deltalake
from qmf.pipeline.lake.table_files import file_system

LOG = "_delta_log"

_ENTRY = re.compile(r"(\d{20})\.json")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\b.*\.parquet")


@attrs.frozen
class DamagedLogFile:
    """A file of a log that cannot be read.

    Attributes:
        path: inside the table.
        version: of the table that it belongs to.
        is_checkpoint: it repeats what entries say.
        reason: in a few words.
    """

    path: str
    version: int
    is_checkpoint: bool
    reason: str


def damaged_log_files(url: str, options: Mapping[str, str]) -> list[DamagedLogFile]:
    """The files of a table's log that cannot be read, in order.

    Raises:
        LakeError: the log itself cannot be read.
    """
    pa = import_pyarrow()
    from pyarrow import fs

    store = file_system(url, options)
    found = []
    with delta_errors(f"{url}/{LOG}"):
        entries = store.get_file_info(fs.FileSelector(LOG))
    for entry in sorted(entries, key=lambda entry: str(entry.base_name)):
        name = entry.base_name
        reason = None
        if match := _ENTRY.fullmatch(name):
            with delta_errors(f"{url}/{LOG}/{name}"), store.open_input_stream(f"{LOG}/{name}") as stream:
                reason = _entry_damage(stream.read())
        elif match := _CHECKPOINT.fullmatch(name):
            try:
                pa.parquet.read_metadata(store.open_input_file(f"{LOG}/{name}"))
            except (OSError, ValueError) as error:
                reason = str(error).splitlines()[0]
        if match and reason is not None:
            found.append(DamagedLogFile(f"{LOG}/{name}", int(match[1]), not name.endswith(".json"), reason))
    return found


def oldest_version(url: str, options: Mapping[str, str]) -> int:
    """The oldest version of a table that can be read; 0 for a log without any.

    Raises:
        LakeError: the log cannot be read.
    """
    files = _log_files(url, options)
    # Without the first entry, reading begins with a checkpoint.
    whole = any(version == 0 and not is_checkpoint for version, _time, is_checkpoint, _path in files)
    checkpoints = (version for version, _time, is_checkpoint, _path in files if is_checkpoint)
    return 0 if whole else min(checkpoints, default=0)


def entry_time(url: str, options: Mapping[str, str], version: int) -> float | None:
    """When the entry of a version was written, in seconds since 1970; None where it is gone.

    Raises:
        LakeError: the log cannot be read.
    """
    files = _log_files(url, options)
    return next(
        (time for number, time, is_checkpoint, _path in files if (number, is_checkpoint) == (version, False)), None
    )


def remove_entries(url: str, options: Mapping[str, str], before: float) -> None:
    """Delete the entries and checkpoints of a log that a newer checkpoint replaces.

    Args:
        url: of the table.
        options: of the object store.
        before: only what the last checkpoint before this time replaces, in seconds since 1970.

    Raises:
        LakeError: the file system failed.
    """
    files = _log_files(url, options)
    checkpoints = (version for version, time, is_checkpoint, _path in files if is_checkpoint and time <= before)
    replaced = max(checkpoints, default=0)
    store = file_system(url, options)
    # The oldest first: what is left is read from a checkpoint on, whenever this is interrupted.
    for version, _time, _is_checkpoint, path in sorted(files):
        if version < replaced:
            with delta_errors(f"{url}/{path}"):
                store.delete_file(path)


def commit_properties(writer: str | None, batch: int, numbers: Mapping[str, int] | None) -> Any:
    """What the entry of a commit says about its writer: the number of its batch, and others by name."""
    delta = import_deltalake()
    named = {**(numbers or {}), **({} if writer is None else {writer: batch})}
    return delta.CommitProperties(app_transactions=[delta.Transaction(name, number) for name, number in named.items()])


def _log_files(url: str, options: Mapping[str, str]) -> list[tuple[int, float, bool, str]]:
    """The entries and checkpoints of a log: version, time of writing, whether it is a checkpoint, and path."""
    import_pyarrow()
    from pyarrow import fs

    with delta_errors(f"{url}/{LOG}"):
        found = file_system(url, options).get_file_info(fs.FileSelector(LOG))
    return [
        (int(match[1]), info.mtime_ns / 1e9, not info.base_name.endswith(".json"), f"{LOG}/{info.base_name}")
        for info in found
        if (match := _ENTRY.fullmatch(info.base_name) or _CHECKPOINT.fullmatch(info.base_name))
    ]


def named_failure(url: str, options: Mapping[str, str], error: LakeError) -> LakeError:
    """A failure to read a table, with the name of the damaged file of its log where there is one."""
    try:
        damaged = damaged_log_files(url, options)
    except LakeError:
        return error
    if not damaged:
        return error
    return LakeError(f"{url}/{damaged[0].path}: damaged: {damaged[0].reason}; see qmf-pipeline check")


def _entry_damage(content: bytes) -> str | None:
    lines = content.splitlines()
    if not lines:
        return "it is empty"
    try:
        actions: list[Any] = [json.loads(line) for line in lines if line.strip()]
    except ValueError:
        return "it is cut off, or not JSON"
    return None if actions and all(isinstance(action, dict) for action in actions) else "it has no actions"
