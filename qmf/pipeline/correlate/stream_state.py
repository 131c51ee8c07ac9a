"""The states of streams between their steps: a step is committed whole or not at all.

That of a stream in the process is one SQLite file. The alerts of a step are kept there until they are in the Delta
table, which is committed after the state: a step that was killed in between is completed at the next start.

That of a stream whose steps are made by tasks is a Delta table::

    OUT/_state/detectors    in folders by bucket, a hash of rule and subject; and one with the progress of the stream

A step adds a file to each bucket of which something changed: of several rows of a subject, that of the latest step
counts. A bucket with many files is written as a whole from time to time. One commit has all files of a step, its
progress, and the names of the files with its alerts, which are committed to their own table after it.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from qmf.pipeline.correlate.alert_table import AlertTable
from qmf.pipeline.correlate.alerts import AlertRow
from qmf.pipeline.correlate.batch_input import FollowedSnapshot
from qmf.pipeline.correlate.detectors.base import NEVER
from qmf.pipeline.correlate.evaluation import StoredState
from qmf.pipeline.correlate.lake_rows import ConnectionChange
from qmf.pipeline.errors import lake_errors
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_errors import delta_errors
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import local_path
from qmf.pipeline.lake.row_files import write_rows
from qmf.pipeline.lake.table_files import TableFile, WrittenFile
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
    """The progress of a stream. The names of the attributes are those in the stored state."""

    step: int = 0  #: number of the last step
    begin: int = 0  #: everything before this time was evaluated, ns
    read: Mapping[str, int] = attrs.field(factory=dict)  #: the position up to which rows were read
    #: the position from which rows must be read again after a restart, as some of them wait for their time
    again: Mapping[str, int] = attrs.field(factory=dict)
    runs: Mapping[str, tuple[int, int]] = attrs.field(factory=dict)  #: first and last arrival of each recorder's run
    pauses: tuple[ConnectionChange, ...] = ()  #: changes of the runs' connections

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
class WaitingSignal:
    """A signal that waits for its time, with the hash of its rule and the key of its subject."""

    at: int
    hash: str
    key: str
    content: str  #: its values from `AT` on, as JSON


@attrs.frozen(kw_only=True)
class StreamSnapshot:
    """The state of a stream after a step, wherever its steps are made."""

    progress: StreamProgress
    states: Sequence[StoredState]
    waiting: Sequence[WaitingSignal]  #: and `goodbyes`, as (time, agent): were read, and belong to later steps
    goodbyes: Sequence[tuple[int, str]]


class StreamState:
    """The state of one stream, for one process at a time. Methods raise `LakeError` where the file system fails."""

    def __init__(self, out: Path) -> None:
        """Open or create the state in a folder of tables, which one process has at a time; complete the last step."""
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
            return _progress(database)

    def states(self) -> Iterator[StoredState]:
        """The states of all detectors."""
        with self._database.reading() as database:
            rows = database.execute("SELECT hash, key, name, kind, state FROM states").fetchall()
        return (StoredState(*row) for row in rows)

    def commit(
        self, progress: StreamProgress, changed: Iterable[StoredState] = (), alerts: Sequence[AlertRow] = ()
    ) -> None:
        """Commit a step with its alerts, and the states that changed."""
        with self._database.transaction() as database:
            _set_progress(database, progress)
            database.execute("DELETE FROM waiting WHERE at < ?", (progress.begin,))
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
        return _progress(database).step


def read_failures(out: Path) -> tuple[str, ...]:
    """Which rules fail, of a stream into a folder that runs or has ended; a line for each."""
    path = stream_file(out)
    if not path.exists():
        return ()
    with stored_state(path) as database:
        return tuple(text for (text,) in database.execute("SELECT text FROM failures ORDER BY rowid"))


def _progress(database: sqlite3.Connection) -> StreamProgress:
    row = database.execute("SELECT content FROM progress").fetchone()
    return StreamProgress() if row is None else StreamProgress.parse(row[0])


def _clear(database: sqlite3.Connection) -> None:
    for table in ("progress", "states", "waiting"):
        database.execute(f"DELETE FROM {table}")


def _set_progress(database: sqlite3.Connection, progress: StreamProgress) -> None:
    database.execute("DELETE FROM progress")
    database.execute("INSERT INTO progress VALUES (?)", (progress.to_json(),))


def _set_states(database: sqlite3.Connection, states: Iterable[StoredState]) -> None:
    for stored in states:
        if stored.state is None:
            database.execute("DELETE FROM states WHERE hash = ? AND key = ?", (stored.hash, stored.key))
        else:
            sql = "INSERT OR REPLACE INTO states (hash, key, name, kind, state) VALUES (?, ?, ?, ?, ?)"
            database.execute(sql, attrs.astuple(stored))


#: The column by which the table is partitioned.
BUCKET = "bucket"

#: What a row is: the state of a detector, or a signal that waits for its time.
STATE, WAITING = "state", "waiting"

#: The columns, with their types in Arrow. `content` is null where a state is no more.
COLUMNS = (
    (BUCKET, "string"),
    ("part", "string"),
    ("step", "int64"),
    ("hash", "string"),
    ("key", "string"),
    ("name", "string"),
    ("kind", "string"),
    ("due", "int64"),
    ("pending", "bool"),
    ("content", "string"),
)

#: The bucket of the progress.
_PROGRESS = "progress"

#: Files of a bucket, after which it is written as a whole.
_MAX_FILES = 8

_WRITER = "correlate"


@attrs.frozen(kw_only=True)
class TaskProgress:
    """The progress of a stream whose steps are made by tasks."""

    #: as that of a stream in the process; `again` is not used
    stream: StreamProgress = attrs.field(factory=StreamProgress)
    buckets: int  #: number of buckets
    goodbyes: Sequence[tuple[int, str]] = ()  #: those of agents that belong to later steps, as (time, agent)
    alerts: Sequence[WrittenFile] = ()  #: files with the alerts of the last step
    #: when a detector of a bucket has something to do, or a signal waits for; unknown for others
    dues: Mapping[str, int] = attrs.field(factory=dict)
    unsettled: Sequence[str] = ()  #: buckets with signals that wait, or with alerts that are pending
    followed: FollowedSnapshot = attrs.field(factory=FollowedSnapshot)  #: objects that rules follow references to

    @property
    def due(self) -> int:
        """When a step has something to do though nothing is new."""
        return min(self.dues.values(), default=NEVER)

    def is_idle(self, bucket: str, until: int) -> bool:
        """Whether a bucket has nothing to do before a time without new signals, goodbyes or rules."""
        return self.dues.get(bucket, 0) >= until and bucket not in self.unsettled

    def to_json(self) -> str:
        """The content of its row."""
        content = attrs.asdict(self, filter=lambda field, _value: field.name != "stream")
        return json.dumps({**content, "stream": self.stream.to_json()})

    @classmethod
    def parse(cls, text: str) -> TaskProgress:
        """The reverse of `to_json`."""
        content: dict[str, Any] = json.loads(text)
        content["stream"] = StreamProgress.parse(content["stream"])
        content["goodbyes"] = tuple((at, agent) for at, agent in content["goodbyes"])
        content["followed"] = FollowedSnapshot(**content["followed"])
        content["alerts"] = tuple(WrittenFile(**file) for file in content["alerts"])
        return cls(**content)


def bucket_of(hash: str, key: str, count: int) -> str:
    """The bucket of a subject, one of so many: the same in all processes and versions."""
    return f"{zlib.crc32(f'{hash} {key}'.encode()) % count:04}"


def bucket_names(count: int) -> list[str]:
    """All buckets."""
    return [f"{number:04}" for number in range(count)]


def detector_schema() -> Any:
    """The columns, as an Arrow schema."""
    pa = import_pyarrow()
    return pa.schema([pa.field(name, pa.type_for_alias(type)) for name, type in COLUMNS])


class DetectorTable:
    """The table of one stream, for the process that commits. Methods raise `LakeError` where the file system fails."""

    def __init__(self, out: str) -> None:
        """Name the table; nothing is read yet."""
        self._path = local_path(out) / "_state" / "detectors"
        #: The Delta table.
        self.table = LakeTable(str(self._path), statistics=("step", "due"))

    def progress(self) -> TaskProgress | None:
        """The progress of the last step; None where there is none."""
        paths = self.files().get(_PROGRESS, ())
        if not paths:
            return None
        rows = stored_rows(self.table, paths).to_pylist()
        return TaskProgress.parse(max(rows, key=lambda row: row["step"])["content"])

    def files(self) -> dict[str, list[str]]:
        """The paths of the files of each bucket, and of the progress, inside the table."""
        found: dict[str, list[str]] = {}
        for file in () if self.table.version() is None else self.table.snapshot().files:
            found.setdefault(file.path.partition("/")[0].removeprefix(f"{BUCKET}="), []).append(file.path)
        return found

    def commit(
        self, progress: TaskProgress, written: Sequence[WrittenFile], files: Mapping[str, Sequence[str]]
    ) -> list[str]:
        """Commit a step with its files; returns those of the step before, `files`, that are to be removed now."""
        schema, step = detector_schema(), progress.stream.step
        row = dict.fromkeys(schema.names) | {
            BUCKET: _PROGRESS, "part": _PROGRESS, "step": step, "content": progress.to_json(),
        }  # fmt: skip
        own = write_rows(
            self.table, [import_pyarrow().RecordBatch.from_pylist([row], schema=schema)], schema, by=(BUCKET,)
        )
        before = {_PROGRESS: self.files().get(_PROGRESS, []), **files}
        replaced = [_PROGRESS, *(bucket for bucket in files if is_whole(files[bucket]))]
        self.table.commit_files(
            [*written, *own.files],
            schema,
            partition_by=(BUCKET,),
            writer=_WRITER,
            replace=self.table.version() is not None,
            where={BUCKET: replaced},
        )
        return [path for bucket in replaced for path in before.get(bucket, ())]

    def snapshot(self, progress: TaskProgress) -> StreamSnapshot:
        """The state of the stream after a step, which was the last one."""
        paths = [path for bucket, own in self.files().items() if bucket != _PROGRESS for path in own]
        latest: dict[tuple[str, str], dict[str, Any]] = {}
        waiting = []
        for row in sorted(stored_rows(self.table, paths).to_pylist(), key=lambda row: row["step"]):
            if row["part"] == STATE:
                latest[row["hash"], row["key"]] = row
            elif row["step"] == progress.stream.step:
                at = json.loads(row["content"])[0]
                waiting.append(WaitingSignal(at, row["hash"], row["key"], row["content"]))
        states = [
            StoredState(*key, row["name"], row["kind"], row["content"])
            for key, row in latest.items()
            if row["content"] is not None
        ]
        return StreamSnapshot(progress=progress.stream, states=states, waiting=waiting, goodbyes=progress.goodbyes)

    def take_over(self, snapshot: StreamSnapshot, buckets: int) -> TaskProgress:
        """Continue with the state of another stream, in place of the own one."""
        self.clear()
        schema, step = detector_schema(), snapshot.progress.step
        empty = dict.fromkeys(schema.names)
        # All of them are looked at in the first step.
        rows = [
            empty | {BUCKET: bucket_of(state.hash, state.key, buckets), "step": step, "due": 0, **state_row(state)}
            for state in snapshot.states
        ] + [
            empty
            | {BUCKET: bucket_of(signal.hash, signal.key, buckets), "part": WAITING, "step": step}
            | {"hash": signal.hash, "key": signal.key, "content": signal.content}
            for signal in snapshot.waiting
        ]
        table = import_pyarrow().Table.from_pylist(rows, schema)
        written = write_rows(self.table, table.to_batches(), schema, by=(BUCKET,))
        progress = TaskProgress(stream=snapshot.progress, buckets=buckets, goodbyes=tuple(snapshot.goodbyes))
        self.commit(progress, written.files, {})
        return progress

    def clear(self) -> None:
        """Remove the table: another stream continues with its state."""
        with lake_errors(self._path):
            if self._path.exists():
                shutil.rmtree(self._path)
        self.table = LakeTable(str(self._path), statistics=self.table.statistics)

    def remove(self, paths: Sequence[str]) -> None:
        """Remove files: the stream alone reads the table, and `vacuum` would keep those of each step for days."""
        store = self.table.store()
        for path in paths:
            with delta_errors(self.table.url):
                store.delete_file(path)


def state_row(stored: StoredState) -> dict[str, Any]:
    """The columns of a row about a detector."""
    row = attrs.asdict(stored)
    return {"part": STATE, "content": row.pop("state"), **row}


def is_whole(files: Sequence[str]) -> bool:
    """Whether a bucket with some files is written as a whole by the next step."""
    return len(files) >= _MAX_FILES


def stored_rows(table: LakeTable, paths: Sequence[str]) -> Any:
    """The rows of some files, as an Arrow table without the bucket."""
    schema = detector_schema()
    schema = schema.remove(schema.get_field_index(BUCKET))
    return table.dataset([TableFile(path, f"{table.url}/{path}", None, 0, 0) for path in paths], schema).to_table()
