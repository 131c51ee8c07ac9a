"""Lakes of earlier versions are taken over: every row once, whenever the conversion is killed."""

from __future__ import annotations

import fcntl
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pipeline.lakes import numbers, recorded
from pipeline.shop import PACKAGE, ROBBED, TILL

from qmf.pipeline.cli import main
from qmf.pipeline.errors import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake import conversion
from qmf.pipeline.lake.arrow import arrow_schema, columns_of
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.conversion import KEPT, convert
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.lake.lake_table import LakeTable

TILLS = ClassVersion.from_schema(TILL)
ROBBERIES = ClassVersion.from_schema(ROBBED)
DAYS = ("2030-01-31", "2030-02-01")


class OldLake:
    """Writes a lake as earlier versions did."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "_log").mkdir(parents=True)
        (root / "_trash").mkdir()
        (root / "_lock_recorder").touch()
        self.entries = 0
        self.seq: dict[str, int] = {}

    def file(self, kind: RowKind, version: ClassVersion | None, date: str, run: str, rows: int, **cells: Any) -> str:
        """Write a file that is not in the log yet."""
        folder = kind.value
        if version is not None and kind is not RowKind.SCHEMAS:
            package, name, hash = version.package, version.name, version.hash or "none"
            folder += f"/qmf_package={package}/qmf_class={name}/qmf_hash={hash}"
        # `table` and `since_ns` came later.
        own = version if kind in (RowKind.OBJECTS, RowKind.EVENTS) else None
        columns = tuple(item for item in columns_of(kind, own) if item[0] not in ("table", "since_ns"))
        schema = arrow_schema(columns)
        start = self.seq.get(run, 0)
        self.seq[run] = start + rows
        values = [{"_run": run, "_seq": start + n + 1, "_ts_ns": n, **cells} for n in range(rows)]
        inside = f"{folder}/qmf_date={date}/recorder-{run}-{self.seq[run]:08d}.parquet"
        (self.root / inside).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(values, schema), self.root / inside)
        return inside

    def log(self, added: list[str], removed: list[str] | None = None) -> None:
        self.entries += 1
        content = {"added": dict.fromkeys(added, 1), "removed": removed or [], "moved": bool(removed)}
        (self.root / "_log" / f"{self.entries:020d}.json").write_text(json.dumps(content))

    def checkpoint(self, files: list[str]) -> None:
        path = self.root / "_log" / f"{self.entries:020d}.checkpoint.json"
        path.write_text(json.dumps(dict.fromkeys(files, 1)))


def told(old: OldLake, version: ClassVersion, run: str) -> str:
    """A file with the schema of a class."""
    return old.file(
        RowKind.SCHEMAS,
        None,
        DAYS[0],
        run,
        1,
        package=version.package,
        **{"class": version.name},
        hash=version.hash,
        event=version.event,
        columns=version.to_json(),
        xml="<x/>",
    )


def fill(root: Path) -> list[tuple[str, int]]:
    """An old lake; returns run and number of all its rows."""
    old = OldLake(root)
    files = [told(old, TILLS, "run1"), told(old, ROBBERIES, "run1")]
    for run in ("run1", "run2"):
        for date in DAYS:
            files += [
                old.file(RowKind.OBJECTS, TILLS, date, run, 5, sales=7, name="one"),
                old.file(RowKind.EVENTS, ROBBERIES, date, run, 2, till="one"),
                old.file(RowKind.HEARTBEATS, None, date, run, 3, interval=10.0),
                old.file(RowKind.GAPS, None, date, run, 1, reason="missed", subject="", count=3),
            ]
    combined, *others = files[2:]
    gone = combined.replace("recorder", "upkeep")
    (root / gone).write_bytes((root / combined).read_bytes())
    (root / combined).unlink()
    old.log(files[:2])
    old.log([combined])
    old.log([gone], [combined])
    old.checkpoint([*files[:2], gone])
    old.log(others[:-1])
    # The last one was written by a recorder that was killed before it entered it.
    (root / "heartbeats" / ".tmp-recorder-x.parquet").write_bytes(b"half")
    jobs = root / "_tables" / "rollup"
    jobs.mkdir(parents=True)
    (jobs / "part.parquet").touch()
    return sorted((run, seq) for run, last in old.seq.items() for seq in range(1, last + 1))


def leftovers(root: Path) -> list[Path]:
    return [path for path in root.glob("**/*") if "qmf_" in path.name or path.name in ("_log", "_trash")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "lake"


def test_every_row_is_taken_over_and_the_old_files_are_gone(root: Path) -> None:
    expected = fill(root)
    lake = DeltaLake(str(root))
    with pytest.raises(LakeError, match="a lake of an earlier version: first qmf-pipeline convert"):
        lake.create()
    done = convert(root, lake)
    assert (done.rows, done.runs, done.tables) == (len(expected), 2, 5)
    assert numbers(lake) == expected
    tills = recorded(lake, f"objects/{PACKAGE}/till")
    assert len(tills) == 20
    assert {(row["sales"], row["_date"], row["_hash"]) for row in tills} == {(7, day, TILLS.hash) for day in DAYS}
    assert [item.version for item in lake.classes()] == [TILLS, ROBBERIES]
    assert [item.table for item in lake.classes()] == [f"objects/{PACKAGE}/till", f"events/{PACKAGE}/tillRobbed"]
    assert {row["since_ns"] for row in recorded(lake, "gaps")} == {None}
    assert leftovers(root) == []
    assert not (root / "_tables").exists()
    assert (root / KEPT / "_tables" / "rollup" / "part.parquet").exists()


class Killed(BaseException):
    """Stands for a kill."""


@pytest.mark.parametrize("after", range(7))
def test_a_killed_conversion_goes_on(root: Path, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fill(root)
    monkeypatch.setattr(conversion, "BATCH_ROWS", 5)
    left = after
    append = LakeTable.append

    def killed(self: LakeTable, *args: Any, **options: Any) -> bool:
        nonlocal left
        if not left:
            raise Killed
        left -= 1
        return append(self, *args, **options)

    with monkeypatch.context() as patch:
        patch.setattr(LakeTable, "append", killed)
        with pytest.raises(Killed):
            convert(root, DeltaLake(str(root)))
    convert(root, DeltaLake(str(root)))
    assert numbers(DeltaLake(str(root))) == expected
    assert leftovers(root) == []


@pytest.mark.parametrize("after", range(4))
def test_killed_while_it_removes_old_files_it_goes_on(root: Path, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = fill(root)
    left = after
    rmtree: Callable[[Path], None] = shutil.rmtree

    def killed(path: Path) -> None:
        nonlocal left
        if not left:
            raise Killed
        left -= 1
        rmtree(path)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(Killed):
            convert(root, DeltaLake(str(root)))
    convert(root, DeltaLake(str(root)))
    assert numbers(DeltaLake(str(root))) == expected
    assert leftovers(root) == []


def test_old_files_can_be_kept(root: Path, tmp_path: Path) -> None:
    expected = fill(root)
    other = DeltaLake(str(tmp_path / "other"))
    convert(root, other, keep=True)
    assert numbers(other) == expected
    assert (root / "_log").is_dir()
    lake = DeltaLake(str(root))
    convert(root, lake, keep=True)
    assert numbers(lake) == expected
    assert list((root / KEPT / "objects").rglob("*.parquet"))
    assert leftovers(root / "objects") == []


def test_a_difference_keeps_the_old_files(root: Path) -> None:
    fill(root)
    lake = DeltaLake(str(root))
    rows = pa.table({"_run": ["run1"], "_seq": [1], "_date": [DAYS[0]]})
    lake.table("heartbeats").append(rows, writer="someone", batch=1)
    with pytest.raises(LakeError, match="the old files are kept"):
        convert(root, lake)
    assert (root / "_log").is_dir()


def test_what_is_damaged_is_named(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fill(root)
    entry = root / "_log" / f"{4:020d}.json"
    text = entry.read_text()
    entry.write_text(text[:-5])
    assert main(["convert", "--lake", str(root)]) == 2
    assert capsys.readouterr().err.startswith(f"qmf-pipeline: {entry}: damaged: ")
    entry.write_text(text)
    file = next((root / "events").rglob("*.parquet"))
    content = file.read_bytes()
    file.write_bytes(content[:-9])
    assert main(["convert", "--lake", str(root)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"qmf-pipeline: {file}: ")
    assert error.count("\n") == 1
    file.unlink()
    assert main(["convert", "--lake", str(root)]) == 2
    assert f"{file}: the log has it, and it is missing" in capsys.readouterr().err
    file.write_bytes(content)
    assert main(["convert", "--lake", str(root)]) == 0
    assert capsys.readouterr().out.startswith("Converted 46 rows of 2 runs in 18 files to 5 tables")


def test_an_old_recorder_that_runs_is_left_alone(root: Path) -> None:
    fill(root)
    with (root / "_lock_recorder").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(LakeError, match="a recorder of an earlier version is running"):
            convert(root, DeltaLake(str(root)))


def test_other_folders_are_not_converted(tmp_path: Path) -> None:
    with pytest.raises(LakeError, match="not a lake of an earlier version"):
        convert(tmp_path, DeltaLake(str(tmp_path)))
