"""Checking a store, and saving from a damaged one what can be read."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import attrs

from qmf.broker.store.database import APPLICATION_ID, VERSION, open_database, store_errors, transaction
from qmf.broker.store.errors import StoreDamaged, StoreError, StoreVersionError
from qmf.broker.store.folder import DATABASE, DataFolder
from qmf.broker.store.page_file import PageFile
from qmf.broker.store.salvaging import Salvage
from qmf.broker.store.unit import StoredMessage, Unit
from qmf.broker.store.writer import write_units

#: Lines of SQLite's own check that are shown.
_SHOWN = 10
#: Messages that are copied at a time.
_BATCH = 1_000


@attrs.frozen
class StoreReport:
    """What a store holds.

    Attributes:
        path: of the file.
        definitions: number of those that can be read.
        messages: number and bytes of those that can be read, by the name of their queue.
        faults: what is damaged, a line each.
    """

    path: Path
    definitions: int
    messages: dict[str, tuple[int, int]]
    faults: tuple[str, ...]

    def lines(self) -> list[str]:
        """The report as text."""
        out = [f"{self.path}: {'damaged' if self.faults else 'in order'}"]
        out.append(f"  {self.definitions:,} definition{'s' * (self.definitions != 1)}")
        out += [
            f"  queue {name}: {count:,} message{'s' * (count != 1)}, {size:,} bytes"
            for name, (count, size) in sorted(self.messages.items())
        ]
        out += [f"  fault: {fault}" for fault in self.faults]
        if self.faults:
            out.append("  What is counted here can be saved: qmf-broker --data-dir DIR --salvage-store NEW-DIR")
        return out


def check_store(path: Path) -> StoreReport:
    """Read a whole store, and change nothing.

    Args:
        path: a data folder that no broker uses.

    Raises:
        StoreError: there is no store, another process uses it, or nothing of it can be read.
    """
    file = path / DATABASE
    with _reading(path) as pages:
        return _read(pages, file, _check_integrity(file), None)


def salvage_store(path: Path, into: Path) -> StoreReport:
    """Copy what can be read of a store to a new data folder.

    Args:
        path: a data folder that no broker uses; not changed.
        into: a folder that is empty or does not exist.

    Raises:
        StoreError: as of `check_store`; or the new folder is not empty, or cannot be written.
    """
    if into.exists() and (not into.is_dir() or any(into.iterdir())):
        raise StoreError(into, "is not an empty folder")
    with (
        _reading(path) as pages,
        DataFolder(into) as folder,
        store_errors(folder.database),
        contextlib.closing(open_database(folder.database)) as target,
    ):
        return _read(pages, path / DATABASE, [], target)


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[PageFile]:
    file = path / DATABASE
    if not file.is_file():
        raise StoreError(path, "has no store of a broker")
    with DataFolder(path):
        try:
            pages = PageFile(file)
        except OSError as error:
            raise StoreError(file, f"cannot be read: {error.strerror}") from error
        with pages:
            if not pages.count:
                raise StoreDamaged(file, "is empty: there is nothing to be saved")
            if pages.intact and pages.application != APPLICATION_ID:
                raise StoreDamaged(file, "is a database, but not a store of this broker")
            if pages.intact and pages.version != VERSION:
                raise StoreVersionError(
                    file, f"has version {pages.version}; this broker reads and writes version {VERSION}"
                )
            yield pages


def _check_integrity(file: Path) -> list[str]:
    """What SQLite itself finds wrong, a line each."""
    try:
        connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        with contextlib.closing(connection):
            return [line for (line,) in connection.execute(f"PRAGMA integrity_check({_SHOWN})") if line != "ok"]
    except sqlite3.Error as error:
        return [str(error)]


def _read(pages: PageFile, file: Path, faults: list[str], target: sqlite3.Connection | None) -> StoreReport:
    salvage = Salvage(pages, file)
    batch: list[StoredMessage] = []
    for message in salvage.messages():
        batch.append(message)
        if len(batch) == _BATCH:
            _copy(target, Unit(messages=batch))
            batch = []
    _copy(target, Unit(messages=batch))
    definitions = salvage.definitions()
    _copy(target, Unit(defined=definitions))
    faults += salvage.faults
    if not pages.intact:
        faults.append("its first page, which describes the file, is damaged")
        if not definitions:
            raise StoreDamaged(file, "is damaged: nothing in it can be read")
    return StoreReport(file, len(definitions), salvage.queues(), tuple(faults))


def _copy(target: sqlite3.Connection | None, unit: Unit) -> None:
    if target is not None and unit:
        with transaction(target):
            write_units(target, [unit])
