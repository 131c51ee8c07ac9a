"""What is damaged in a lake is found, named with its file, and repaired where it can be."""

from __future__ import annotations

import shutil
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from pipeline.heartbeats import DAY, beats, put, seqs
from pipeline.lakes import HERE, RUN, Shop, recorded

from qmf.pipeline.cli import main
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake import maintenance
from qmf.pipeline.lake.arrow import arrow_table, columns_of, with_text
from qmf.pipeline.lake.columns import DATE
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.maintenance.checking import LakeCheck
from qmf.pipeline.maintenance.optimizing import optimize_lake
from qmf.pipeline.record.lake_writer import LakeWriter
from qmf.pipeline.record.writer_state import PENDING, PendingBatch, WriterState, state_folder

pytestmark = pytest.mark.slow


def gap(seq: int) -> object:
    """A row of gaps."""
    rows = [(RUN, seq, 0, 0, 0, None, None, "missed", "", 1, None)]
    return with_text(arrow_table(columns_of(RowKind.GAPS, None), rows), DATE, "1970-01-01")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of six commits, of which each test has a copy: to write it takes longer."""
    folder = tmp_path_factory.mktemp("written") / "lake"
    lake = DeltaLake(str(folder))
    for number in range(1, 7):
        put(lake, number, (number, number % 2))
    return folder


@pytest.fixture
def lake(written: Path, tmp_path: Path) -> DeltaLake:
    """A lake of six commits."""
    return DeltaLake(str(shutil.copytree(written, tmp_path / "lake")))


def entry(lake: DeltaLake, version: int) -> Path:
    return Path(lake.url) / "heartbeats" / "_delta_log" / f"{version:020d}.json"


def file_of(lake: DeltaLake, seq: int) -> Path:
    """The file of a row."""
    (path,) = (
        Path(file.url)
        for file in lake.table("heartbeats").snapshot(seq - 1).files
        if file.first_ns is not None
        and lake.table("heartbeats").dataset([file]).to_table()["_seq"].to_pylist() == [seq]
    )
    return path


def lines(lake: DeltaLake, *, repair: bool = False) -> list[str]:
    return [str(item) for item in LakeCheck(HERE, DeltaLake(lake.url), repair=repair, now_ns=DAY).findings()]


def gaps(lake: DeltaLake) -> list[tuple[str, str, int]]:
    return [(row["reason"], row["subject"], row["count"]) for row in recorded(lake, "gaps")]


def test_a_whole_lake(lake: DeltaLake, capsys: pytest.CaptureFixture[str]) -> None:
    optimize_lake(HERE, lake)
    assert lines(lake) == []
    assert main(["check", "--lake", lake.url]) == 0
    assert capsys.readouterr().out == "Nothing is wrong\n"


@pytest.mark.parametrize("version", [1, 3, 5])
@pytest.mark.parametrize("keep", [0, 0.5, 0.95])
def test_a_truncated_entry_of_a_log(
    lake: DeltaLake, version: int, keep: float, capsys: pytest.CaptureFixture[str]
) -> None:
    path = entry(lake, version)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    assert main(["check", "--lake", lake.url]) == 2
    found = capsys.readouterr()
    assert f"{path}: damaged: " in found.out
    assert f"\nqmf-pipeline: {lake.url}: " in found.err
    if keep:
        assert main(["optimize", "--lake", lake.url]) == 2
        assert f"\nqmf-pipeline: {path}: damaged: " in capsys.readouterr().err
    assert main(["check", "--lake", lake.url, "--repair"]) == 0
    assert seqs(DeltaLake(lake.url)) == [1, 2, 3, 4, 5, 6]
    assert lines(lake) == []
    put(DeltaLake(lake.url), 7, (7, 0))
    assert seqs(DeltaLake(lake.url)) == [1, 2, 3, 4, 5, 6, 7]


def test_a_truncated_entry_that_moved_rows(lake: DeltaLake) -> None:
    optimize_lake(HERE, lake)
    entry(lake, 6).write_bytes(b"{")
    lines(lake, repair=True)
    assert seqs(DeltaLake(lake.url)) == [1, 2, 3, 4, 5, 6]
    assert lines(lake) == []


def test_a_truncated_checkpoint(lake: DeltaLake) -> None:
    lake.table("heartbeats").delta().create_checkpoint()
    (path,) = (Path(lake.url) / "heartbeats" / "_delta_log").glob("*.checkpoint.parquet")
    path.write_bytes(path.read_bytes()[:100])
    (line,) = [line for line in lines(lake) if line.startswith(str(path))]
    assert "damaged" in line
    lines(lake, repair=True)
    assert seqs(DeltaLake(lake.url)) == [1, 2, 3, 4, 5, 6]
    assert lines(lake) == []


@pytest.mark.parametrize("keep", [None, 0, 100])
def test_a_file_that_is_missing_or_truncated(lake: DeltaLake, keep: int | None) -> None:
    path = file_of(lake, 3)
    if keep is None:
        path.unlink()
    else:
        path.write_bytes(path.read_bytes()[:keep])
    found = lines(lake)
    assert found[0].startswith(f"{path}: {'missing' if keep is None else 'damaged'}")
    assert found[1:] == [f"run {RUN}: 1 of 6 rows are missing"]
    lines(lake, repair=True)
    again = DeltaLake(lake.url)
    assert seqs(again) == [1, 2, 4, 5, 6]
    inside = path.relative_to(lake.url).as_posix()
    assert gaps(again) == [("damaged", inside, 1)]
    assert lines(lake) == [f"run {RUN}: 1 of 6 rows are missing"]


def test_what_a_recorder_is_committing_is_not_missing(lake: DeltaLake, monkeypatch: pytest.MonkeyPatch) -> None:
    writer, state = LakeWriter(lake, "recorder"), WriterState(state_folder(lake, "recorder"))
    pending = PendingBatch(7, RUN, 5, {"gaps": gap(7), **writer.tables(beats((8, 0)).take())})
    with state.lock():
        state.store(pending)
        writer.write(7, {"heartbeats": pending.tables["heartbeats"]})
        monkeypatch.setattr("qmf.pipeline.maintenance.checking.WAIT_LIMIT", 0.0)
        assert lines(lake) == [f"run {RUN}: 1 of 8 rows are in no table yet: a recorder is committing"]
        assert main(["check", "--lake", lake.url]) == 0

        def commit(_seconds: float) -> None:
            writer.write(7, pending.tables, again=True)
            # And the next batch is in some of its tables already.
            LakeWriter(lake, "recorder").write(8, writer.tables(beats((10, 0)).take()))
            state.complete(pending)

        monkeypatch.setattr("qmf.pipeline.maintenance.checking.WAIT_LIMIT", 60.0)
        # Not the module's function itself, which threads of others call.
        clock = SimpleNamespace(sleep=commit, monotonic=time.monotonic, time_ns=time.time_ns)
        monkeypatch.setattr("qmf.pipeline.maintenance.checking.time", clock)
        assert lines(lake) == []


def test_rows_that_are_there_twice(lake: DeltaLake) -> None:
    put(lake, 1, (6, 0), name="other")
    assert lines(lake) == [f"run {RUN}: 1 rows are there more than once"]


def test_dropped_days_are_no_damage(lake: DeltaLake) -> None:
    maintenance.retain(lake, 0, now_ns=DAY)
    assert seqs(lake) == [1, 3, 5]
    assert lines(lake) == []


def test_the_batch_of_a_killed_recorder(lake: DeltaLake, capsys: pytest.CaptureFixture[str]) -> None:
    state = WriterState(state_folder(lake, "recorder"))
    with state.lock():
        state.store(PendingBatch(7, RUN, 5, LakeWriter(lake, "recorder").tables(beats((7, 0)).take())))
        assert main(["check", "--lake", lake.url]) == 0
        assert "another process records as 'recorder'" in capsys.readouterr().out
    assert main(["check", "--lake", lake.url]) == 2
    path = Path(lake.url) / PENDING / "recorder" / "00000007.arrow"
    assert f"{path}: a batch of the killed run {RUN}" in capsys.readouterr().out
    assert main(["check", "--lake", lake.url, "--repair"]) == 0
    assert seqs(DeltaLake(lake.url)) == [1, 2, 3, 4, 5, 6, 7]
    path.write_bytes(b"half")
    assert main(["check", "--lake", lake.url, "--repair"]) == 0
    assert f"{path}: damaged: " in capsys.readouterr().out
    assert not path.exists()


def test_two_recorders_of_one_bus_are_told(tmp_path: Path) -> None:
    for name in ("one", "two"):
        shop = Shop(tmp_path, run=f"run_{name}", name=name)
        shop.beat(*range(1000, 1100, 10))
    (line,) = lines(DeltaLake(str(tmp_path)))
    assert line == "run run_two: recorded 1 agents at the same time as run_one, whose rows count there"


def test_a_class_without_rows(lake: DeltaLake) -> None:
    shop = Shop(Path(lake.url), name="shop", run="other")
    shop.put((1, 1))
    shutil.rmtree(Path(lake.url) / "objects")
    assert any("there is no table of org.example.shop:till" in line for line in lines(lake))
