"""The states of detectors as a Delta table, for streams whose steps are made by tasks.

::

    OUT/_state/detectors    in folders by bucket, a hash of rule and subject; and one with the progress of the stream

A step adds a file to each bucket of which something changed: of several rows of a subject, that of the latest step
counts. A bucket with many files is written as a whole from time to time. One commit has all files of a step, its
progress, and the names of the files with its alerts, which are committed to their own table after it: a step that was
killed in between is completed at the next start.
"""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from qmf.pipeline.correlate.detectors.base import NEVER
from qmf.pipeline.correlate.followed import FollowedSnapshot
from qmf.pipeline.correlate.stream_state import StoredState, StreamProgress, StreamSnapshot, WaitingSignal
from qmf.pipeline.errors import lake_errors
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_errors import delta_errors
from qmf.pipeline.lake.lake_table import LakeTable
from qmf.pipeline.lake.location import local_path
from qmf.pipeline.lake.row_files import write_rows
from qmf.pipeline.lake.table_files import TableFile, WrittenFile

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
    """The progress of a stream whose steps are made by tasks.

    Attributes:
        stream: as that of a stream in the process; `again` is not used.
        buckets: number of buckets.
        goodbyes: those of agents that belong to later steps, as (time, agent).
        alerts: files with the alerts of the last step.
        dues: when a detector of a bucket has something to do, or a signal waits for; unknown for others.
        unsettled: buckets with signals that wait, or with alerts that are pending.
        followed: objects that rules follow references to.
    """

    stream: StreamProgress = attrs.field(factory=StreamProgress)
    buckets: int
    goodbyes: Sequence[tuple[int, str]] = ()
    alerts: Sequence[WrittenFile] = ()
    dues: Mapping[str, int] = attrs.field(factory=dict)
    unsettled: Sequence[str] = ()
    followed: FollowedSnapshot = attrs.field(factory=FollowedSnapshot)

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
        #: The Delta table.
        self._path = local_path(out) / "_state" / "detectors"
        self.table = self._open()

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
        """Commit the progress and the files of a step; returns those that are not needed any more, for `remove`.

        `files` are those of the buckets of the step before it; buckets of which `is_whole` is true are replaced.
        """
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
            StoredState(hash, key, row["name"], row["kind"], row["content"])
            for (hash, key), row in latest.items()
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
            empty
            | {BUCKET: bucket_of(state.hash, state.key, buckets), "part": STATE, "step": step, "due": 0}
            | {"hash": state.hash, "key": state.key, "name": state.name, "kind": state.kind, "content": state.state}
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
        self.table = self._open()

    def _open(self) -> LakeTable:
        return LakeTable(str(self._path), statistics=("step", "due"))

    def remove(self, paths: Sequence[str]) -> None:
        """Remove files: the stream alone reads the table, and `vacuum` would keep those of each step for days."""
        store = self.table.store()
        for path in paths:
            with delta_errors(self.table.url):
                store.delete_file(path)


def is_whole(files: Sequence[str]) -> bool:
    """Whether a bucket with some files is written as a whole by the next step."""
    return len(files) >= _MAX_FILES


def stored_rows(table: LakeTable, paths: Sequence[str]) -> Any:
    """The rows of some files, as an Arrow table without the bucket."""
    schema = detector_schema()
    schema = schema.remove(schema.get_field_index(BUCKET))
    return table.dataset([TableFile(path, f"{table.url}/{path}", None, 0, 0) for path in paths], schema).to_table()
