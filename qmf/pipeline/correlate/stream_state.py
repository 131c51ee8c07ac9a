"""The state of a stream between its steps, in one SQLite file: a step is committed whole or not at all.

The alerts of a step are kept there until they are in the Delta table, which is committed after the state: a step that
was killed in between is completed at the next start.
"""

from __future__ import annotations

import json
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
    """The state of a detector.

    Attributes:
        hash, name, kind: of its rule.
        key: of its subject.
        state: of `Detector.dump`.
    """

    hash: str
    key: str
    name: str
    kind: str
    state: str


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
        """Commit a step.

        Args:
            progress: after the step.
            changed: states that are new or different.
            removed: hash and key of states that are no more.
            alerts: of the step.
        """
        with self._database.transaction() as database:
            database.execute("DELETE FROM progress")
            database.execute("INSERT INTO progress VALUES (?)", (progress.to_json(),))
            database.executemany("DELETE FROM states WHERE hash = ? AND key = ?", removed)
            database.executemany(
                "INSERT OR REPLACE INTO states (hash, key, name, kind, state) VALUES (?, ?, ?, ?, ?)",
                (attrs.astuple(state) for state in changed),
            )
            database.executemany(
                "INSERT INTO alerts VALUES (?, ?)",
                ((progress.step, json.dumps(attrs.asdict(alert))) for alert in alerts),
            )

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


def read_failures(out: Path) -> tuple[str, ...]:
    """Which rules fail, of a stream that runs or has ended; a line for each.

    Args:
        out: folder of the tables of alerts.

    Raises:
        LakeError: the state can't be read.
    """
    path = stream_file(out)
    if not path.exists():
        return ()
    with stored_state(path) as database:
        return tuple(text for (text,) in database.execute("SELECT text FROM failures ORDER BY rowid"))
