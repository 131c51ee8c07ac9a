"""The state of a job: whole transactions, one writer, readers beside it."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from qmf.pipeline.errors import LakeError
from qmf.pipeline.state_database import StateDatabase, lock_file, stored_state

TABLES = "CREATE TABLE IF NOT EXISTS fruits (name TEXT PRIMARY KEY);"


def opened(path: Path) -> StateDatabase:
    return StateDatabase(path, TABLES, "somebody else is here")


def insert(database: StateDatabase, *names: str, interrupt: bool = False) -> None:
    with database.transaction() as run:
        run.executemany("INSERT INTO fruits VALUES (?)", ((name,) for name in names))
        if interrupt:
            raise KeyboardInterrupt


def fruits(path: Path) -> list[str]:
    with stored_state(path) as connection:
        return [name for (name,) in connection.execute("SELECT name FROM fruits ORDER BY name")]


def test_a_transaction_is_whole_or_nothing(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "er" / "state.db"
    database = opened(path)
    insert(database, "kiwi")
    with pytest.raises(LakeError, match=r"state\.db: UNIQUE"):
        insert(database, "fig", "kiwi")
    with pytest.raises(KeyboardInterrupt):
        insert(database, "plum", interrupt=True)
    assert fruits(path) == ["kiwi"]
    database.close()
    assert fruits(path) == ["kiwi"]


def test_readers_see_one_moment_and_hold_nobody_up(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    database = opened(path)
    with stored_state(path) as before:
        assert before.execute("SELECT count(*) FROM fruits").fetchone() == (0,)
        insert(database, "kiwi")
        assert before.execute("SELECT count(*) FROM fruits").fetchone() == (0,)
    assert fruits(path) == ["kiwi"]
    database.close()


def test_one_process_holds_the_folder(tmp_path: Path) -> None:
    database = opened(tmp_path / "state.db")
    with pytest.raises(LakeError, match="somebody else is here"):
        opened(tmp_path / "other.db")
    database.close()
    opened(tmp_path / "other.db").close()


def test_what_is_no_state_is_refused_and_the_folder_is_free_again(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    path.write_text("a list of fruits " * 100)
    with pytest.raises(LakeError, match=r"state\.db: file is not a database"):
        opened(path)
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 2")
    other.close()
    with pytest.raises(LakeError, match=r"state\.db: written by another version of this program"):
        opened(path)
    path.unlink()
    opened(path).close()


def test_contents_that_were_not_stored_name_the_file(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    database = opened(path)
    with pytest.raises(LakeError, match=r"state\.db: invalid literal"), database.reading():
        int("kiwi")
    database.close()
    with pytest.raises(LakeError, match=r"none\.db: unable to open"), stored_state(tmp_path / "none.db"):
        pass


def test_a_lock_lasts_until_its_file_is_closed(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with lock_file(path, "taken"), pytest.raises(LakeError, match="taken"):
        lock_file(path, "taken")
    lock_file(path, "taken").close()
    with pytest.raises(LakeError, match="missing"):
        lock_file(tmp_path / "missing" / "lock", "taken")
