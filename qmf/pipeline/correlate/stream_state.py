"""The state of a stream between its steps, in one SQLite file: a step is committed whole or not at all.

The alerts of a step are kept there until they are in the Delta table, which is committed after the state: a step that
was killed in between is completed at the next start.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.correlate.alert_table import AlertTable
from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.event_time import ConnectionChange
from qmf.pipeline.state_database import StateDatabase, stored_state

_TABLES = """
CREATE TABLE IF NOT EXISTS progress (content TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS states (
    hash TEXT NOT NULL, key TEXT NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL, state TEXT NOT NULL,
    PRIMARY KEY (hash, key)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS alerts (step INTEGER NOT NULL, content TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS failures (text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS waiting (at INTEGER NOT NULL, hash TEXT, key TEXT NOT NULL, content TEXT);
"""


@attrs.frozen(kw_only=True)
class StreamProgress:
    """The progress of a stream. The names of the attributes are those in the stored state.

    Attributes:
        step: number of the last step.
        begin: everything before this time was evaluated, ns.
        read: the position up to which rows were read.
        again: the position from which rows must be read again after a restart, as some of them wait for their time.
        runs: first and last arrival of each recorder's run.
        pauses: changes of the runs' connections.
    """

    step: int = 0
    begin: int = 0
    read: Mapping[str, int] = attrs.field(factory=dict)
    again: Mapping[str, int] = attrs.field(factory=dict)
    runs: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)
    pauses: tuple[ConnectionChange, ...] = ()

    def to_json(self) -> str:
        """The content of the row in the state."""
        return json.dumps(attrs.asdict(self))

    @classmethod
    def parse(cls, text: str) -> StreamProgress:
        """The reverse of `to_json`."""
        content: dict[str, Any] = json.loads(text)
        content["runs"] = {key: (value[0], value[1]) for key, value in content["runs"].items()}
        content["pauses"] = tuple(ConnectionChange(**item) for item in content["pauses"])
        return cls(**content)


@attrs.frozen
class StoredState:
    """The state of a detector, as of `Detector.dump`, with hash, name and kind of its rule, and its subject's key."""

    hash: str
    key: str
    name: str
    kind: str
    state: str


@attrs.frozen
class WaitingSignal:
    """A signal that waits for its time, with the hash of its rule and the key of its subject.

    Its content are its values from `AT` on, as JSON.
    """

    at: int
    hash: str
    key: str
    content: str


@attrs.frozen(kw_only=True)
class StreamSnapshot:
    """The state of a stream after a step, wherever its steps are made.

    Signals and goodbyes, as (time, agent), are those that were read and belong to later steps.
    """

    progress: StreamProgress
    states: Sequence[StoredState]
    waiting: Sequence[WaitingSignal]
    goodbyes: Sequence[tuple[int, str]]


class StreamState:
    """The state of one stream, for one process at a time. Methods raise `LakeError` where the file system fails."""

    def __init__(self, out: Path) -> None:
        """Open or create the state in a folder of tables, and complete the last step.

        Raises:
            LakeError: another process follows into this folder.
        """
        self.table = AlertTable(str(out), "stream")
        self._database = StateDatabase(stream_file(out), _TABLES, f"{out}: another process follows into this folder")
        try:
            self.publish()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Close the file, and release the folder for other processes."""
        self._database.close()

    def progress(self) -> StreamProgress:
        """The progress of the last committed step."""
        with self._database.reading() as database:
            row = database.execute("SELECT content FROM progress").fetchone()
            return StreamProgress() if row is None else StreamProgress.parse(row[0])

    def states(self) -> Iterator[StoredState]:
        """The states of all detectors."""
        with self._database.reading() as database:
            rows = database.execute("SELECT hash, key, name, kind, state FROM states").fetchall()
        return (StoredState(*row) for row in rows)

    def commit(
        self,
        progress: StreamProgress,
        changed: Iterable[StoredState] = (),
        removed: Iterable[tuple[str, str]] = (),
        alerts: Sequence[AlertRow] = (),
    ) -> None:
        """Commit a step with its alerts: states that are new or different, and hash and key of those that are gone."""
        with self._database.transaction() as database:
            _set_progress(database, progress)
            database.execute("DELETE FROM waiting WHERE at < ?", (progress.begin,))
            database.executemany("DELETE FROM states WHERE hash = ? AND key = ?", removed)
            _set_states(database, changed)
            database.executemany(
                "INSERT INTO alerts VALUES (?, ?)",
                ((progress.step, json.dumps(attrs.asdict(alert))) for alert in alerts),
            )

    def take_over(self, snapshot: StreamSnapshot) -> None:
        """Continue with the state of another stream, in place of the own one."""
        with self._database.transaction() as database:
            _clear(database)
            _set_progress(database, attrs.evolve(snapshot.progress, again=snapshot.progress.read))
            _set_states(database, snapshot.states)
            database.executemany(
                "INSERT INTO waiting VALUES (?, ?, ?, ?)",
                [attrs.astuple(signal) for signal in snapshot.waiting]
                + [(at, None, agent, None) for at, agent in snapshot.goodbyes],
            )

    def taken_over(self) -> tuple[list[WaitingSignal], list[tuple[int, str]]]:
        """The signals and goodbyes of `take_over` that still wait for their time."""
        with self._database.reading() as database:
            rows = database.execute("SELECT at, hash, key, content FROM waiting").fetchall()
        goodbyes = [(at, key) for at, hash, key, _content in rows if hash is None]
        return [WaitingSignal(*row) for row in rows if row[1] is not None], goodbyes

    def clear(self) -> None:
        """Forget the progress and all states: another stream continues with them."""
        with self._database.transaction() as database:
            _clear(database)

    def publish(self) -> None:
        """Commit the alerts that are only in the state to the Delta table."""
        with self._database.reading() as database:
            rows = database.execute("SELECT step, content FROM alerts ORDER BY step, rowid").fetchall()
        steps: dict[int, list[AlertRow]] = {}
        for step, content in rows:
            steps.setdefault(step, []).append(AlertRow(**json.loads(content)))
        for step, alerts in steps.items():
            self.table.append(step, alerts)
            with self._database.transaction() as database:
                database.execute("DELETE FROM alerts WHERE step = ?", (step,))

    def set_failures(self, texts: Sequence[str]) -> None:
        """Note which rules fail, for `read_failures`; a line for each."""
        with self._database.transaction() as database:
            database.execute("DELETE FROM failures")
            database.executemany("INSERT INTO failures VALUES (?)", ((text,) for text in texts))


def stream_file(out: Path) -> Path:
    """The file of a stream's state, in the folder of its tables of alerts."""
    return out / "_state" / "stream.sqlite"


def stored_step(out: Path) -> int:
    """The last step of a stream in the process that is stored in the folder of its tables; 0 for none."""
    path = stream_file(out)
    if not path.exists():
        return 0
    with stored_state(path) as database:
        row = database.execute("SELECT content FROM progress").fetchone()
    return 0 if row is None else StreamProgress.parse(row[0]).step


def read_failures(out: Path) -> tuple[str, ...]:
    """Which rules fail, of a stream into a folder that runs or has ended; a line for each.

    Raises:
        LakeError: the state can't be read.
    """
    path = stream_file(out)
    if not path.exists():
        return ()
    with stored_state(path) as database:
        return tuple(text for (text,) in database.execute("SELECT text FROM failures ORDER BY rowid"))


def _clear(database: sqlite3.Connection) -> None:
    for table in ("progress", "states", "waiting"):
        database.execute(f"DELETE FROM {table}")


def _set_progress(database: sqlite3.Connection, progress: StreamProgress) -> None:
    database.execute("DELETE FROM progress")
    database.execute("INSERT INTO progress VALUES (?)", (progress.to_json(),))


def _set_states(database: sqlite3.Connection, states: Iterable[StoredState]) -> None:
    database.executemany(
        "INSERT OR REPLACE INTO states (hash, key, name, kind, state) VALUES (?, ?, ?, ?, ?)",
        (attrs.astuple(state) for state in states),
    )
