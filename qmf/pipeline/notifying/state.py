"""What notifications must not forget over a restart: active alerts, and who was told what.

It is in an SQLite file, which one job writes and commands read. Marks of what is owed are written before a notification
is sent, marks of what was told after it was delivered: a kill in between repeats a notification, and never loses one.
"""

from __future__ import annotations

import enum
import json
import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import attrs

from qmf.pipeline.correlate.alerts import Alert
from qmf.pipeline.errors import LakeError
from qmf.pipeline.state_database import StateDatabase, stored_state

#: Its name in the folder of the notifications' state.
STATE = "notifications.db"

#: Names of texts in it.
STEP_TEXT, INHIBIT_TEXT, PENDING_TEXT, ENDED_TEXT = "step", "inhibit", "pending", "ended"

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

K = TypeVar("K")
V = TypeVar("V")


class TrackedDict(dict[K, V]):
    """A dictionary that remembers what changed since `changes.clear()`; changed by `put` and `discard` only."""

    def __init__(self, content: Mapping[K, V] | None = None) -> None:
        super().__init__(content or {})
        self.changes: dict[K, V | None] = {}

    def put(self, key: K, value: V) -> None:
        """Set a value."""
        if self.get(key) != value:
            self[key] = value
            self.changes[key] = value

    def discard(self, key: K) -> V | None:
        """Remove a value, if there is one."""
        if key not in self:
            return None
        self.changes[key] = None
        return self.pop(key)


class SentState(enum.Enum):
    """What an integration was told of an alert.

    OWED: nothing yet, but it must be told even if the alert ends before that, unless it is muted by then; SENT: perhaps
    that it fires, since that was sent and not confirmed; FIRING: that it fires.
    """

    OWED = "owed"
    SENT = "sent"
    FIRING = "firing"


@attrs.frozen
class IntegrationCounts:
    """Attempts to notify an integration, the alerts in them, and error (empty after success) and time of the last."""

    delivered: int = 0
    failed: int = 0
    alerts: int = 0
    last_error: str = ""
    last_at: int = 0


class NotificationState:
    """All state of the dispatcher."""

    def __init__(self) -> None:
        #: Those that are active, or whose end somebody must be told of, by id.
        self.alerts: TrackedDict[str, Alert] = TrackedDict()
        #: Alerts of the past that are not notified before the job has reached the present.
        self.held: TrackedDict[str, bool] = TrackedDict()
        #: What each integration was told of an alert, by its id.
        self.told: TrackedDict[str, Mapping[str, SentState]] = TrackedDict()
        #: When an integration was last notified of a group, by both keys; ns since 1970.
        self.sent: TrackedDict[tuple[str, str], int] = TrackedDict()
        self.counts: TrackedDict[str, IntegrationCounts] = TrackedDict()

    def sent_state(self, alert_id: str, integration: str) -> SentState | None:
        """What an integration was told of an alert."""
        return self.told.get(alert_id, {}).get(integration)

    def tell(self, alert_id: str, integration: str, told: SentState | None) -> None:
        """Record what an integration was told; None to forget it."""
        entries = {key: value for key, value in self.told.get(alert_id, {}).items() if key != integration}
        if told is not None:
            entries[integration] = told
        if entries:
            self.told.put(alert_id, entries)
        else:
            self.told.discard(alert_id)

    def keep_integrations(self, keys: set[str]) -> None:
        """Forget what was told to integrations that don't exist any more."""
        for alert_id, entries in list(self.told.items()):
            for key in entries.keys() - keys:
                self.tell(alert_id, key, None)
        for pair in [pair for pair in self.sent if pair[0] not in keys]:
            self.sent.discard(pair)
        for key in self.counts.keys() - keys:
            self.counts.discard(key)

    def last_sent(self) -> dict[str, int]:
        """When each group was notified last, ns since 1970."""
        found: dict[str, int] = {}
        for (_, group), at in self.sent.items():
            found[group] = max(at, found.get(group, at))
        return found

    def forget_group(self, key: str) -> None:
        """Forget when a group was notified."""
        for pair in [pair for pair in self.sent if pair[1] == key]:
            self.sent.discard(pair)


class StateFile:
    """Reads and writes the state. Not for several threads at once.

    Methods raise `LakeError` where another process has the file open, it is damaged, or the file system failed.
    """

    def __init__(self, folder: Path) -> None:
        """Open the file, or create it."""
        self._database = StateDatabase(folder / STATE, _TABLES, f"{folder}: another process notifies from this folder")

    def load(self) -> NotificationState:
        """The stored state."""
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
        """Write what changed in one transaction, with incidents that are finished, and texts by their names.

        The changes of the state are cleared when they are on the disk; after an error nothing was written.
        """
        tracked = (state.alerts, state.held, state.told, state.sent, state.counts)
        if not texts and not finished and not any(item.changes for item in tracked):
            return
        with self._database.transaction() as run:
            run.executemany("INSERT OR REPLACE INTO texts VALUES (?, ?)", texts.items())
            run.executemany("INSERT OR REPLACE INTO finished VALUES (?, unixepoch())", [(id,) for id in finished])
            _replace_told(run, state.told.changes)
            _replace(run, "held", ("id",), {(id,): () if held else None for id, held in state.held.changes.items()})
            sent = {key: None if at is None else (at,) for key, at in state.sent.changes.items()}
            _replace(run, "sent", ("integration", "group_key"), sent)
            _replace(run, "alerts", ("id",), {(id,): _content(item) for id, item in state.alerts.changes.items()})
            counts = {(key,): _content(item) for key, item in state.counts.changes.items()}
            _replace(run, "counts", ("integration",), counts)
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
    """The state and some texts, of a job that runs or has ended; `LakeError` if there is none, or it can't be read."""
    path = folder / STATE
    if not path.exists():
        raise LakeError(f"{path}: no such file; `qmf-pipeline correlate` with notifications makes it")
    with stored_state(path) as connection:
        return _load(connection), {name: _text(connection, name) for name in texts}


def read_ended(text: str) -> list[tuple[Alert, int]]:
    """The alerts of `ENDED_TEXT` with the times of their ends, ns since 1970."""
    return [(Alert(**content), int(at)) for content, at in json.loads(text or "[]")]


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
    state.alerts = TrackedDict({id: Alert(**json.loads(content)) for id, content in alerts})
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


def _content(item: Alert | IntegrationCounts | None) -> tuple[str] | None:
    """What is stored of an alert, or of the counts of an integration; None for one that is gone."""
    return None if item is None else (json.dumps(attrs.asdict(item), ensure_ascii=False),)


def _replace(
    run: sqlite3.Connection, table: str, keys: Sequence[str], rows: Mapping[Any, tuple[object, ...] | None]
) -> None:
    """Write rows of a table by their `keys`, its first columns; None deletes one."""
    for key, values in rows.items():
        if values is None:
            run.execute(f"DELETE FROM {table} WHERE {' AND '.join(f'{name} = ?' for name in keys)}", key)
        else:
            row = (*key, *values)
            run.execute(f"INSERT OR REPLACE INTO {table} VALUES ({', '.join('?' * len(row))})", row)
