"""The state of notifications in an SQLite file, which one job writes and commands read.

Marks of what is owed are written before a notification is sent, marks of what was told after it was delivered: so a
kill in between repeats a notification, and never loses one.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

import attrs

from qmf.pipeline.errors import LakeError
from qmf.pipeline.notifying.active_alert import ActiveAlert
from qmf.pipeline.notifying.state import IntegrationCounts, NotificationState, SentState, TrackedDict
from qmf.pipeline.state_database import StateDatabase, stored_state

#: Its name in the folder of the notifications' state.
STATE = "notifications.db"

_TABLES = """
CREATE TABLE IF NOT EXISTS texts (name TEXT PRIMARY KEY, content TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS alerts (id TEXT PRIMARY KEY, content TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS held (id TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS told (alert TEXT NOT NULL, integration TEXT NOT NULL, told TEXT NOT NULL,
                                 PRIMARY KEY (alert, integration));
CREATE TABLE IF NOT EXISTS sent (integration TEXT NOT NULL, group_key TEXT NOT NULL, at INTEGER NOT NULL,
                                 PRIMARY KEY (integration, group_key));
CREATE TABLE IF NOT EXISTS counts (integration TEXT PRIMARY KEY, content TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS finished (id TEXT PRIMARY KEY, at INTEGER NOT NULL);
"""


class StateFile:
    """Reads and writes the state. Not for several threads at once."""

    def __init__(self, folder: Path) -> None:
        """Open the file, or create it.

        Raises:
            LakeError: another process has it open, or the file system failed, or it is no such file.
        """
        self._database = StateDatabase(folder / STATE, _TABLES, f"{folder}: another process notifies from this folder")

    def load(self) -> NotificationState:
        """The stored state.

        Raises:
            LakeError: the file is damaged.
        """
        with self._database.reading() as connection:
            return _load(connection)

    def text(self, name: str) -> str:
        """A text that was stored with `save`; empty where there is none."""
        with self._database.reading() as connection:
            return _text(connection, name)

    def finished_incidents(self, ids: Sequence[str]) -> set[str]:
        """Which of some incidents have ended."""
        with self._database.reading() as connection:
            return {
                id
                for id in ids
                if connection.execute("SELECT 1 FROM finished WHERE id = ?", (id,)).fetchone() is not None
            }

    def save(self, state: NotificationState, finished: Sequence[str] = (), **texts: str) -> None:
        """Write what changed, in one transaction.

        Args:
            state: its changes are cleared when they are on the disk.
            finished: incidents that have ended.
            texts: to store with it, by name.

        Raises:
            LakeError: the file system failed; nothing was written.
        """
        tracked = (state.alerts, state.held, state.told, state.sent, state.counts)
        if not texts and not finished and not any(item.changes for item in tracked):
            return
        with self._database.transaction() as run:
            run.executemany("INSERT OR REPLACE INTO texts VALUES (?, ?)", texts.items())
            run.executemany("INSERT OR REPLACE INTO finished VALUES (?, unixepoch())", [(id,) for id in finished])
            _replace_told(run, state.told.changes)
            _replace(run, "held", ("id",), {(id,): () if held else None for id, held in state.held.changes.items()})
            sent: _Rows = {group: None if at is None else (at,) for group, at in state.sent.changes.items()}
            _replace(run, "sent", ("integration", "group_key"), sent)
            _replace(run, "alerts", ("id",), {(id,): _content(item) for id, item in state.alerts.changes.items()})
            _replace(
                run, "counts", ("integration",), {(key,): _content(item) for key, item in state.counts.changes.items()}
            )
        for item in tracked:
            item.changes.clear()

    def forget_finished(self, before: int) -> None:
        """Forget incidents that ended before a time, in s since 1970."""
        with self._database.transaction() as run:
            run.execute("DELETE FROM finished WHERE at < ?", (before,))

    def close(self) -> None:
        """Close the file, for other processes."""
        self._database.close()


def read_state(folder: Path, *texts: str) -> tuple[NotificationState, dict[str, str]]:
    """The state and some texts, of a job that runs or has ended.

    Raises:
        LakeError: there is none, or it can't be read.
    """
    path = folder / STATE
    if not path.exists():
        raise LakeError(f"{path}: no such file; `qmf-pipeline correlate` with notifications makes it")
    with stored_state(path) as connection:
        return _load(connection), {name: _text(connection, name) for name in texts}


def _text(connection: sqlite3.Connection, name: str) -> str:
    row = connection.execute("SELECT content FROM texts WHERE name = ?", (name,)).fetchone()
    return str(row[0]) if row else ""


def _load(connection: sqlite3.Connection) -> NotificationState:
    state = NotificationState()
    alerts = connection.execute("SELECT id, content FROM alerts ORDER BY rowid").fetchall()
    held = connection.execute("SELECT id FROM held").fetchall()
    told: dict[str, dict[str, SentState]] = {}
    for id, key, text in connection.execute("SELECT alert, integration, told FROM told"):
        told.setdefault(id, {})[key] = SentState(text)
    sent = connection.execute("SELECT integration, group_key, at FROM sent").fetchall()
    counts = connection.execute("SELECT integration, content FROM counts").fetchall()
    state.alerts = TrackedDict({id: ActiveAlert.from_json(json.loads(content)) for id, content in alerts})
    state.held = TrackedDict({id: True for (id,) in held})
    state.told = TrackedDict(told)
    state.sent = TrackedDict({(key, group): at for key, group, at in sent})
    state.counts = TrackedDict({key: IntegrationCounts(**json.loads(content)) for key, content in counts})
    return state


def _replace_told(run: sqlite3.Connection, changes: Mapping[str, Mapping[str, SentState] | None]) -> None:
    """Write what integrations were told of alerts."""
    for id, entries in changes.items():
        run.execute("DELETE FROM told WHERE alert = ?", (id,))
        rows = [(id, key, told.value) for key, told in (entries or {}).items()]
        run.executemany("INSERT INTO told VALUES (?, ?, ?)", rows)


#: Rows by their keys, without these; None for one that is gone.
_Rows = Mapping[tuple[str, ...], tuple[object, ...] | None]


def _content(item: ActiveAlert | IntegrationCounts | None) -> tuple[str] | None:
    """What is stored of an alert, or of the counts of an integration; None for one that is gone."""
    if item is None:
        return None
    return (json.dumps(item.to_json() if isinstance(item, ActiveAlert) else attrs.asdict(item), ensure_ascii=False),)


def _replace(
    run: sqlite3.Connection,
    table: str,
    keys: Sequence[str],
    rows: _Rows,
) -> None:
    """Write rows of a table, or delete them.

    Args:
        run: a transaction.
        table: name of the table.
        keys: its first columns, which identify a row.
        rows: of the table.
    """
    for key, values in rows.items():
        if values is None:
            run.execute(f"DELETE FROM {table} WHERE {' AND '.join(f'{name} = ?' for name in keys)}", key)
        else:
            row = (*key, *values)
            run.execute(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)
