"""Rows that recorders hold back of tables with few rows, and readers that don't want them held back.

::

    LAKE/_waiting/NAME.json   the tables of which the recorder NAME has rows that are in no commit yet, with the arrival
                              of the first one, and its share of the agents; absent where it never had either
    LAKE/_readers/NAME.json   the tables that a reader follows, and until when: recorders commit these with each batch

A table is complete until the arrival of the first row that waits for it. The file is written before a batch is
committed, with what waits then or is committed with it, and after it. So a reader that looks before and after it found
the versions of tables knows of all rows that these versions lack. Both files are small and replaced as a whole, in a
folder as in an object store.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import socket
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import attrs

from qmf._atomic_files import TEMPORARY, replace_file
from qmf.pipeline.errors import LakeError, lake_errors
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_errors import delta_errors
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.location import local_path
from qmf.pipeline.lake.table_files import file_system

#: The folders in a lake.
WAITING, READERS = "_waiting", "_readers"

#: ns after which a recorder that wrote no news has ended: its rows come when it is started again.
ENDED_NS = 120 * 10**9

#: ns for which a reader names its tables, and after which it does so again.
LEASE_NS, RENEWAL_NS = 300 * 10**9, 30 * 10**9

#: Streams that read rows so long after their arrival, in ns, need not follow tables: rows wait for less.
LATE_NS = 300 * 10**9

#: Files of readers that are over for so long, in ns, are removed.
_FORGOTTEN_NS = 3600 * 10**9


log = logging.getLogger("qmf.pipeline")


class Note:
    """A small file in a lake, replaced as a whole. Belongs to one thread at a time."""

    def __init__(self, lake: DeltaLake, folder: str, name: str) -> None:
        """Name it; nothing is written yet.

        Args:
            lake: that it is in.
            folder: `WAITING` or `READERS`.
            name: unique in the folder.
        """
        self._lake = lake
        self._path = f"{folder}/{name}.json"

    def write(self, content: Mapping[str, object]) -> None:
        """Replace the content.

        Raises:
            LakeError: the file system failed.
        """
        data = json.dumps(content).encode()
        if self._lake.is_local:
            path = local_path(self._lake.url) / self._path
            with lake_errors(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(path, data)
            return
        with delta_errors(f"{self._lake.url}/{self._path}"):
            store = file_system(self._lake.url, self._lake.options)
            with store.open_output_stream(self._path) as stream:
                stream.write(data)

    def remove(self) -> None:
        """Remove it, if it is there."""
        _remove(self._lake, self._path)


class ReaderNote:
    """What a reader follows, for recorders. Belongs to one thread; close it at the end."""

    def __init__(self, lake: DeltaLake, name: str, clock: Callable[[], int]) -> None:
        """Name a reader; nothing is written yet.

        Args:
            lake: that it reads.
            name: of the job, as a part of the file's name.
            clock: nanoseconds since 1970.
        """
        own = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{name}-{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}")
        self._note = Note(lake, READERS, own)
        self._clock = clock
        self._known: frozenset[str] = frozenset()
        self._renewed: int | None = None

    def renew(self, paths: Iterable[str]) -> None:
        """Name the tables, unless the same ones were named lately.

        Where the lake cannot be written, this is logged: rows of quiet tables come later then, and none is lost.

        Args:
            paths: of the tables, in the lake.
        """
        wanted, now = frozenset(paths), self._clock()
        if wanted == self._known and self._renewed is not None and now - self._renewed < RENEWAL_NS:
            return
        self._known, self._renewed = wanted, now
        try:
            self._note.write({"tables": sorted(wanted), "until_ns": now + LEASE_NS})
        except LakeError as error:
            log.warning("recorders don't know what is read here, rows of quiet tables come later: %s", error)

    def close(self) -> None:
        """Rows of the tables may wait again."""
        if self._renewed is None:
            return
        self._renewed = None
        try:
            self._note.remove()
        except LakeError as error:
            log.warning("recorders take it that tables are still read, for some minutes: %s", error)


def followed_tables(lake: DeltaLake, now_ns: int) -> frozenset[str]:
    """The tables that readers follow now.

    Args:
        lake: that they read.
        now_ns: nanoseconds since 1970. What ended an hour before is removed.

    Raises:
        LakeError: the file system failed.
    """
    found: set[str] = set()
    for path, content in _notes(lake, READERS):
        if content["until_ns"] >= now_ns:
            found.update(content["tables"])
        elif content["until_ns"] < now_ns - _FORGOTTEN_NS:
            _remove(lake, path)
    return frozenset(found)


def waiting_since(lake: DeltaLake, now_ns: int) -> dict[str, int]:
    """The tables of which recorders have rows that are in no commit, with the arrival of the first one.

    A table is complete until then. Recorders that wrote no news for two minutes have ended, and do not count.

    Args:
        lake: to look at.
        now_ns: nanoseconds since 1970.

    Raises:
        LakeError: the file system failed.
    """
    found: dict[str, int] = {}
    for _path, content in _notes(lake, WAITING):
        if content["time_ns"] >= now_ns - ENDED_NS:
            for path, first in content["tables"].items():
                found[path] = min(first, found.get(path, first))
    return found


def _notes(lake: DeltaLake, folder: str) -> list[tuple[str, dict[str, Any]]]:
    """The files of a folder, with their content; one that is not what it should be is an error."""
    found = []
    for path, data in _contents(lake, folder):
        try:
            content = json.loads(data)
            int(content["until_ns" if folder == READERS else "time_ns"])
            list(content["tables"])
        except (ValueError, KeyError, TypeError) as error:
            raise LakeError(f"{lake.url}/{path}: damaged: {error}; remove it") from error
        found.append((path, content))
    return found


def _contents(lake: DeltaLake, folder: str) -> list[tuple[str, bytes]]:
    if lake.is_local:
        root = local_path(lake.url) / folder
        found = []
        with lake_errors(root):
            for path in sorted(root.glob("*.json")):
                try:
                    # One that is being written has a name of its own; one may go meanwhile.
                    found += [] if path.name.startswith(TEMPORARY) else [(f"{folder}/{path.name}", path.read_bytes())]
                except FileNotFoundError:
                    continue
        return found
    import_pyarrow()
    from pyarrow import fs

    store = file_system(lake.url, lake.options)
    found = []
    with delta_errors(f"{lake.url}/{folder}"):
        for entry in store.get_file_info(fs.FileSelector(folder, allow_not_found=True)):
            if entry.type is fs.FileType.File and entry.base_name.endswith(".json"):
                try:
                    with store.open_input_file(f"{folder}/{entry.base_name}") as file:
                        found.append((f"{folder}/{entry.base_name}", file.read()))
                except FileNotFoundError:
                    continue
    return found


@attrs.frozen
class RecordedShare:
    """A share of the agents that a recorder has, or had.

    Attributes:
        recorder: its name.
        number, count: of the share.
        time_ns: of its last news, by its clock.
    """

    recorder: str
    number: int
    count: int
    time_ns: int


def recorded_shares(lake: DeltaLake) -> list[RecordedShare]:
    """The shares of all recorders that divide the agents of a bus.

    Raises:
        LakeError: the file system failed.
    """
    found = []
    for path, content in _notes(lake, WAITING):
        if content.get("share"):
            number, count = content["share"]
            name = path.rpartition("/")[2].removesuffix(".json")
            found.append(RecordedShare(name, number, count, content["time_ns"]))
    return found


def complete_until(lake: DeltaLake, paths: Iterable[str], now_ns: int) -> int | None:
    """The arrival until which all of some tables are complete; None where nothing of them waits.

    Args:
        lake: to look at.
        paths: of the tables.
        now_ns: as of `waiting_since`.
    """
    waiting = waiting_since(lake, now_ns)
    return min((waiting[path] for path in paths if path in waiting), default=None)


def _remove(lake: DeltaLake, path: str) -> None:
    if lake.is_local:
        local = local_path(lake.url) / path
        with lake_errors(local):
            local.unlink(missing_ok=True)
        return
    with delta_errors(f"{lake.url}/{path}"):
        store = file_system(lake.url, lake.options)
        if store.get_file_info(path).is_file:
            store.delete_file(path)
