"""What a recorder keeps in a folder of its machine, so that its next start, or a check, completes what a kill left.

::

    FOLDER/lock             locked while a process records under the name
    FOLDER/run.json         the run, and when its last batch was stored; absent after an orderly end
    FOLDER/00000042.arrow   a batch that is being committed to its tables
    FOLDER/00000042.waiting a batch of which some tables are not committed yet, since they are quiet
    FOLDER/held.json        messages that wait for the schemas of their classes; absent where there are none

A batch is stored here, whole and synced, before the first of its tables is written, and removed after the last one. It
has the messages that were held when it was collected, where these changed: so a message is either held or in a batch.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import attrs

from qmf._atomic_files import TEMPORARY, replace_file
from qmf.pipeline.errors import LakeError, lake_errors
from qmf.pipeline.lake.arrow import import_pyarrow
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.maintenance import Finding
from qmf.pipeline.record.held_messages import HeldMessage, from_json, to_json
from qmf.pipeline.record.lake_writer import LakeWriter
from qmf.pipeline.state_database import lock_file

#: The folder inside a lake in which recorders keep their state.
PENDING = "_pending"

#: The syntax of a writer's name: it becomes part of paths.
WRITER_NAME = re.compile(r"[A-Za-z0-9_.]{1,64}")

#: The file of messages that wait for schemas.
HELD = "held.json"

_RUN = "run.json"
_SUFFIX, _WAITING = ".arrow", ".waiting"


@attrs.frozen
class PendingBatch:
    """A batch of rows on its way to the tables, Arrow tables by path in the order in which they are written.

    `time_ns` is when it was collected, `held` are the messages that were held then; None for those of the batch before.
    """

    number: int
    run: str
    time_ns: int
    tables: Mapping[str, Any]
    held: Sequence[HeldMessage] | None = None


@attrs.frozen
class Interruption:
    """What a run that did not end in order left: batches that may not be in all of their tables, and damaged files.

    Its last batch was stored, or it started, at `last_ns` by its clock.
    """

    run: str
    last_ns: int
    batches: tuple[PendingBatch, ...] = ()
    damaged: tuple[str, ...] = ()


def state_folder(lake: DeltaLake, name: str, root: Path | None = None) -> Path:
    """The folder of a writer's state: in a lake that is a folder, or in another one; `LakeError` for a wrong name.

    For other lakes it is in the user's folder of application states, or in `root`.
    """
    if not WRITER_NAME.fullmatch(name) or name.startswith("."):
        raise LakeError(f"a writer's name has 1 to 64 letters, digits, dots and underscores, not {name!r}")
    if root is None and lake.is_local:
        return Path(lake.url) / PENDING / name
    states = root or Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "qmf-pipeline"
    return states / hashlib.sha256(lake.url.encode()).hexdigest()[:16] / name


class WriterState:
    """The state of one writer. Belongs to one thread at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the writer's name until the block ends, or the process; `LakeError` if another process holds it."""
        with lake_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
        refusal = f"{self.folder}: another process records as {self.folder.name!r}; choose another --name"
        with lock_file(self.folder / "lock", refusal):
            yield

    def interruption(self) -> Interruption | None:
        """What the last run left if it did not end in order. Removes files that it had not written whole."""
        with lake_errors(self.folder):
            for path in self.folder.glob(f"{TEMPORARY}*"):
                path.unlink()
            stored = sorted(path for suffix in (_SUFFIX, _WAITING) for path in self.folder.glob(f"*{suffix}"))
            run, last_ns = _read_run(self.folder / _RUN)
        batches, damaged = [], []
        for path in stored:
            try:
                batches.append(_read_batch(path))
            except (LakeError, ValueError, KeyError, OSError):
                damaged.append(path.name)
        try:
            self.held_messages()
        except ValueError:
            damaged.append(HELD)
        if run is None and not stored and not damaged:
            return None
        last_ns = max((last_ns, *(batch.time_ns for batch in batches)))
        return Interruption(run or (batches[-1].run if batches else ""), last_ns, tuple(batches), tuple(damaged))

    def mark(self, run: str, time_ns: int) -> None:
        """Note that a run is recording, and that all its rows up to now are stored."""
        with lake_errors(self.folder):
            replace_file(self.folder / _RUN, json.dumps({"run": run, "last_ns": time_ns}).encode())

    def end(self) -> None:
        with lake_errors(self.folder):
            (self.folder / _RUN).unlink(missing_ok=True)

    def store(self, batch: PendingBatch) -> None:
        pa = import_pyarrow()
        contents = []
        for table in batch.tables.values():
            sink = pa.BufferOutputStream()
            with pa.ipc.new_stream(sink, table.schema) as writer:
                writer.write_table(table)
            contents.append(sink.getvalue().to_pybytes())
        about: dict[str, object] = {"number": batch.number, "run": batch.run, "time_ns": batch.time_ns}
        if batch.held is not None:
            about["held"] = to_json(batch.held)
        schema = pa.schema([("table", pa.string()), ("rows", pa.large_binary())], {"batch": json.dumps(about)})
        whole = pa.table(
            [pa.array(list(batch.tables), pa.string()), pa.array(contents, pa.large_binary())], schema=schema
        )
        sink = pa.BufferOutputStream()
        # Of the file format, whose end is marked: one that was cut off is known as such.
        with pa.ipc.new_file(sink, schema) as writer:
            writer.write_table(whole)
        with lake_errors(self.folder):
            replace_file(self.folder / _file_name(batch.number), sink.getvalue(), sync=True)

    def store_held(self, messages: Sequence[HeldMessage]) -> None:
        """Store the messages that are held, instead of those of before."""
        with lake_errors(self.folder):
            if messages:
                replace_file(self.folder / HELD, to_json(messages).encode(), sync=True)
            else:
                (self.folder / HELD).unlink(missing_ok=True)

    def held_messages(self) -> list[HeldMessage]:
        """The messages that are held; `ValueError` if they cannot be read."""
        with lake_errors(self.folder):
            try:
                text = (self.folder / HELD).read_text(encoding="utf-8")
            except FileNotFoundError:
                return []
        return from_json(text)

    def complete(self, batch: PendingBatch, *, waits: bool = False) -> None:
        """Note that a batch is in all of its tables, or in all but those that wait."""
        if batch.held is not None:
            self.store_held(batch.held)
        if waits:
            with lake_errors(self.folder):
                (self.folder / _file_name(batch.number)).replace(self.folder / _file_name(batch.number, _WAITING))
        else:
            self.remove(batch.number)

    def batch_path(self, number: int) -> Path:
        """The file of a batch that is not in all of its tables."""
        waiting = self.folder / _file_name(number, _WAITING)
        return waiting if waiting.exists() else self.folder / _file_name(number)

    def remove(self, number: int) -> None:
        """Remove a batch that is in all of its tables."""
        with lake_errors(self.folder):
            for suffix in (_SUFFIX, _WAITING):
                (self.folder / _file_name(number, suffix)).unlink(missing_ok=True)

    def remove_file(self, name: str) -> None:
        with lake_errors(self.folder):
            (self.folder / name).unlink(missing_ok=True)


def _file_name(number: int, suffix: str = _SUFFIX) -> str:
    return f"{number:08d}{suffix}"


def _read_batch(path: Path) -> PendingBatch:
    pa = import_pyarrow()
    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        whole = reader.read_all()
        about = json.loads(whole.schema.metadata[b"batch"])
    tables = {row["table"]: pa.ipc.open_stream(row["rows"]).read_all() for row in whole.to_pylist()}
    held = from_json(about["held"]) if "held" in about else None
    return PendingBatch(about["number"], about["run"], about["time_ns"], tables, held)


def _read_run(path: Path) -> tuple[str | None, int]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        return str(content["run"]), int(content["last_ns"])
    except FileNotFoundError:
        return None, 0
    except (ValueError, KeyError, TypeError):
        # It is not synced: after a failure of the power it may be empty.
        return "", path.stat().st_mtime_ns


def check_pending(lake: DeltaLake, *, repair: bool = False) -> Iterator[Finding]:
    """Batches that killed recorders left in a lake that is a folder; to repair is to commit them, as a start would."""
    root = Path(lake.url) / PENDING
    if not lake.is_local or not root.is_dir():
        return
    for folder in sorted(path for path in root.iterdir() if path.is_dir()):
        state = WriterState(folder)
        try:
            with state.lock():
                yield from _check_state(lake, state, repair=repair)
        except LakeError as error:
            yield Finding(str(folder), str(error), is_damage=False)


def _check_state(lake: DeltaLake, state: WriterState, *, repair: bool) -> Iterator[Finding]:
    interruption = state.interruption()
    if interruption is not None:
        yield from _check_interruption(lake, state, interruption, repair=repair)
    if (state.folder / HELD).exists() and (interruption is None or HELD not in interruption.damaged):
        count = len(state.held_messages())
        text = f"{count} messages wait for the schemas of their classes; the recorder's next start goes on"
        yield Finding(str(state.folder / HELD), text, is_damage=False)


def _check_interruption(
    lake: DeltaLake, state: WriterState, interruption: Interruption, *, repair: bool
) -> Iterator[Finding]:
    writer = LakeWriter(lake, state.folder.name)
    for batch in interruption.batches:
        path = state.batch_path(batch.number)
        text = f"a batch of the killed run {batch.run} may not be in all of its tables"
        if not repair:
            yield Finding(str(path), f"{text}; the recorder's next start completes it")
            continue
        rows = writer.write(batch.number, batch.tables, again=True).rows
        state.complete(batch)
        yield Finding(str(path), text, f"{rows} rows committed")
    for name in interruption.damaged:
        done = ""
        if repair:
            state.remove_file(name)
            done = "removed"
        yield Finding(str(state.folder / name), "damaged: a batch that cannot be read", done)
