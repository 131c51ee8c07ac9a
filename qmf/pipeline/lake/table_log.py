"""The log of a Delta table, file by file: which of them are damaged."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import attrs

from qmf.pipeline.errors import LakeError
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_errors import delta_errors
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
