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

import hashlib
import json
import logging
import os
import re
import secrets
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any

import attrs

from qmf._atomic_files import TEMPORARY, replace_file
from qmf.pipeline.errors import LakeError, lake_errors
from qmf.pipeline.lake.delta_errors import delta_errors
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.location import local_path
from qmf.pipeline.lake.table_files import file_system, list_folder

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

_SYNTAX = re.compile(r"([0-9]{1,4})/([0-9]{1,4})")


class Note:
    """A small file in a lake, replaced as a whole. Belongs to one thread at a time."""

    def __init__(self, lake: DeltaLake, folder: str, name: str) -> None:
        """Name a file, unique in the folder `WAITING` or `READERS`; nothing is written yet."""
        self._lake = lake
        self._path = f"{folder}/{name}.json"

    def write(self, content: Mapping[str, object]) -> None:
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
        _remove(self._lake, self._path)


class ReaderNote:
    """What a reader follows, for recorders. Belongs to one thread; close it at the end."""

    def __init__(self, lake: DeltaLake, name: str, clock: Callable[[], int]) -> None:
        """Name a reader by its job; nothing is written yet. The clock is nanoseconds since 1970."""
        own = re.sub(r"[^A-Za-z0-9_.-]", "_", f"{name}-{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(3)}")
        self._note = Note(lake, READERS, own)
        self._clock = clock
        self._known: frozenset[str] = frozenset()
        self._renewed: int | None = None

    def renew(self, paths: Iterable[str]) -> None:
        """Name the tables, unless it was done lately; in a lake that is not writable, quiet ones come later."""
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
    """The tables that readers follow at a time, in ns since 1970. Notes that ended an hour before are removed."""
    found: set[str] = set()
    for path, content in _notes(lake, READERS):
        if content["until_ns"] >= now_ns:
            found.update(content["tables"])
        elif content["until_ns"] < now_ns - _FORGOTTEN_NS:
            _remove(lake, path)
    return frozenset(found)


def waiting_since(lake: DeltaLake, now_ns: int) -> dict[str, int]:
    """The tables of which recorders have rows in no commit, with the first arrival: until then all are there.

    Recorders that wrote no news for two minutes before `now_ns` have ended, and do not count.
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


def _contents(lake: DeltaLake, folder: str) -> Iterator[tuple[str, bytes]]:
    store = file_system(lake.url, lake.options)
    for entry in list_folder(lake.url, lake.options, folder):
        path, name = f"{folder}/{entry.base_name}", entry.base_name
        # One that is being written has a name of its own; one may go meanwhile.
        if entry.is_file and name.endswith(".json") and not name.startswith(TEMPORARY):
            with delta_errors(f"{lake.url}/{path}"), suppress(FileNotFoundError), store.open_input_file(path) as file:
                yield path, file.read()


@attrs.frozen
class Share:
    """One of several shares, from 1 to `count`: several recorders divide the agents of a bus, each has those of one."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Share:
        """A share from its text, ``2/5``; `ValueError` if it is none."""
        match = _SYNTAX.fullmatch(text)
        if match is None or not 1 <= int(match[1]) <= int(match[2]):
            raise ValueError(f"a share is a number of several, such as 2/5, not {text!r}")
        return cls(int(match[1]), int(match[2]))

    def has(self, agent: str | None) -> bool:
        """True for the agents of this share, on any machine, and for what is about no agent: that is in all of them."""
        if agent is None:
            return True
        digest = hashlib.blake2b(agent.encode(), digest_size=8).digest()
        return int.from_bytes(digest, "big") % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


@attrs.frozen
class RecordedShare:
    """A share of the agents that a recorder has, or had; with the time of its last news, by its clock."""

    recorder: str
    share: Share
    time_ns: int


def recorded_shares(lake: DeltaLake) -> list[RecordedShare]:
    """The shares of all recorders that divide the agents of a bus."""
    return [
        RecordedShare(path.rpartition("/")[2].removesuffix(".json"), Share(*content["share"]), content["time_ns"])
        for path, content in _notes(lake, WAITING)
        if content.get("share")
    ]


def _remove(lake: DeltaLake, path: str) -> None:
    store = file_system(lake.url, lake.options)
    with delta_errors(f"{lake.url}/{path}"), suppress(FileNotFoundError):
        if store.get_file_info(path).is_file:
            store.delete_file(path)
