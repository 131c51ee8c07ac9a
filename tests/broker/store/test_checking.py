"""Stores of other versions, of other programs, damaged ones; checking and saving."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from qmf.broker.store.checking import check_store, salvage_store
from qmf.broker.store.database import VERSION, open_database, transaction
from qmf.broker.store.errors import StoreDamaged, StoreError, StoreVersionError
from qmf.broker.store.folder import DATABASE, DataFolder
from qmf.broker.store.store import Store
from qmf.broker.store.unit import Definition, DefinitionKind, StoredMessage, Unit
from qmf.broker.store.writer import write_units


def make(path: Path, messages: int = 10, size: int = 100) -> Path:
    """A data folder with a queue and messages in it; returns its file."""
    with DataFolder(path) as folder:
        connection = open_database(folder.database)
        with transaction(connection):
            write_units(
                connection,
                [
                    Unit(
                        defined=[
                            Definition(1, DefinitionKind.QUEUE, "orders", {"durable": True}),
                            Definition(2, DefinitionKind.EXCHANGE, "news", {"type": "topic"}),
                        ],
                        messages=[
                            StoredMessage(number, 1, number, None, bytes([number % 256]) * size)
                            for number in range(1, messages + 1)
                        ],
                    )
                ],
            )
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.close()
        return folder.database


@pytest.mark.parametrize("version", [VERSION - 1, VERSION + 1])
def test_a_store_of_another_version_is_refused(tmp_path: Path, version: int) -> None:
    file = make(tmp_path)
    connection = open_database(file)
    connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    words = f"has version {version}; this broker reads and writes version {VERSION}"
    with pytest.raises(StoreVersionError, match=words):
        open_database(file)
    with pytest.raises(StoreVersionError, match=words):
        check_store(tmp_path)


def test_a_file_of_another_program_is_refused(tmp_path: Path) -> None:
    other = sqlite3.connect(tmp_path / DATABASE)
    other.execute("CREATE TABLE notes (text)")
    other.close()
    with pytest.raises(StoreDamaged, match="not a store of this broker"):
        open_database(tmp_path / DATABASE)
    with pytest.raises(StoreDamaged, match="not a store of this broker"):
        check_store(tmp_path)
    (tmp_path / DATABASE).write_bytes(b"no database at all, but text of some length" * 100)
    with pytest.raises(StoreDamaged, match="is damaged"):
        open_database(tmp_path / DATABASE)


def test_a_store_in_order(tmp_path: Path) -> None:
    make(tmp_path)
    report = check_store(tmp_path)
    assert report.lines() == [
        f"{tmp_path / DATABASE}: in order",
        "  2 definitions",
        "  queue orders: 10 messages, 1,000 bytes",
    ]


def test_a_message_with_a_wrong_checksum_is_named_and_the_others_are_saved(tmp_path: Path) -> None:
    file = make(tmp_path / "old")
    connection = open_database(file)
    connection.execute("UPDATE message SET data = ? WHERE id = 4", (b"x" * 100,))
    connection.close()
    report = check_store(tmp_path / "old")
    assert report.faults == ("message 4 of queue 1 is damaged: its checksum is wrong",)
    with DataFolder(tmp_path / "old") as folder:
        store = Store(folder)
        with pytest.raises(StoreDamaged, match="message 4 of queue 1"):
            store.recover()
        store.discard()
    saved = salvage_store(tmp_path / "old", tmp_path / "new")
    assert saved.messages == {"orders": (9, 900)}
    assert check_store(tmp_path / "new").faults == ()
    with pytest.raises(StoreError, match="is not an empty folder"):
        salvage_store(tmp_path / "old", tmp_path / "new")


def test_a_damaged_page_hides_its_own_messages_only(tmp_path: Path) -> None:
    file = make(tmp_path / "old", messages=2_000)
    with file.open("r+b") as opened:
        opened.seek(4096 * 30)
        opened.write(b"\xff" * 4096)
    report = check_store(tmp_path / "old")
    assert report.faults
    count, _ = report.messages["orders"]
    assert 1_900 < count < 2_000
    assert salvage_store(tmp_path / "old", tmp_path / "new").messages == report.messages
    assert check_store(tmp_path / "new").messages == report.messages


def test_a_folder_without_a_store_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="has no store of a broker"):
        check_store(tmp_path)
    assert list(tmp_path.iterdir()) == []
