"""Checking a store, and saving from a damaged one what can be read."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import attrs

from qmf.broker.store.database import (
    APPLICATION_ID,
    VERSION,
    as_store_error,
    open_database,
    transaction,
)
from qmf.broker.store.errors import StoreDamaged, StoreError, StoreVersionError
from qmf.broker.store.folder import DATABASE, DataFolder
from qmf.broker.store.reading import salvage_definitions, salvage_messages
from qmf.broker.store.unit import Kind, StoredMessage, Unit
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
    with _reading(path) as (connection, file):
        faults: list[str] = []
        try:
            for (line,) in connection.execute(f"PRAGMA integrity_check({_SHOWN})"):
                if line != "ok":
                    faults.append(line)
        except sqlite3.Error as error:
            faults.append(str(error))
        return _read(connection, file, faults, None)


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
    with _reading(path) as (connection, file), DataFolder(into) as folder:
        target = open_database(folder.database)
        try:
            report = _read(connection, file, [], target)
        except sqlite3.Error as error:
            raise as_store_error(folder.database, error) from error
        finally:
            target.close()
        return report


@contextlib.contextmanager
def _reading(path: Path) -> Iterator[tuple[sqlite3.Connection, Path]]:
    file = path / DATABASE
    if not file.is_file():
        raise StoreError(path, "has no store of a broker")
    with DataFolder(path) as folder:
        connection = sqlite3.connect(f"{folder.database.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
        try:
            try:
                (application,) = connection.execute("PRAGMA application_id").fetchone()
                (version,) = connection.execute("PRAGMA user_version").fetchone()
            except sqlite3.Error as error:
                raise as_store_error(file, error) from error
            if application != APPLICATION_ID:
                raise StoreDamaged(file, "is a database, but not a store of this broker")
            if version > VERSION:
                raise StoreVersionError(file, f"has version {version}; this broker knows versions up to {VERSION}")
            yield connection, file
        finally:
            connection.close()


def _read(
    connection: sqlite3.Connection, file: Path, faults: list[str], target: sqlite3.Connection | None
) -> StoreReport:
    definitions = list(salvage_definitions(connection, file, faults))
    names = {each.id: each.name for each in definitions if each.kind is Kind.QUEUE}
    if target is not None:
        with transaction(target):
            write_units(target, [Unit(defined=definitions)])
    counts = dict.fromkeys(names.values(), (0, 0))
    homeless = 0
    batch: list[StoredMessage] = []
    for message in salvage_messages(connection, file, faults):
        name = names.get(message.queue)
        if name is None:
            homeless += 1
            continue
        count, size = counts[name]
        counts[name] = count + 1, size + len(message.data)
        batch.append(message)
        if len(batch) == _BATCH:
            _copy(target, batch)
            batch = []
    _copy(target, batch)
    if homeless:
        faults.append(f"{homeless:,} messages of queues that are not defined")
    return StoreReport(file, len(definitions), counts, tuple(faults))


def _copy(target: sqlite3.Connection | None, batch: list[StoredMessage]) -> None:
    if target is not None and batch:
        with transaction(target):
            write_units(target, [Unit(messages=batch)])
