"""What a recorder keeps for its next start: batches on their way, and the mark of a run."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from pipeline.lakes import RUN, numbers, recorded

from qmf.pipeline.errors import LakeError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.delta_lake import DeltaLake
from qmf.pipeline.record.buffers import RowBuffers
from qmf.pipeline.record.lake_writer import LakeWriter
from qmf.pipeline.record.writer_state import PendingBatch, WriterState, state_folder


@pytest.fixture
def state(tmp_path: Path) -> WriterState:
    (tmp_path / "state").mkdir()
    return WriterState(tmp_path / "state")


def batch(number: int, **tables: int) -> PendingBatch:
    return PendingBatch(number, RUN, number * 1000, {name: pa.table({"x": [x]}) for name, x in tables.items()})


def test_an_orderly_end_leaves_nothing(state: WriterState) -> None:
    assert state.interruption() is None
    state.mark(RUN, 5)
    state.end()
    assert state.interruption() is None


def test_a_stored_batch_comes_back_whole_and_in_its_order(state: WriterState) -> None:
    state.mark(RUN, 5)
    state.store(batch(7, schemas=1, heartbeats=2))
    found = state.interruption()
    assert found is not None
    assert (found.run, found.last_ns, found.damaged) == (RUN, 7000, ())
    (stored,) = found.batches
    assert (stored.number, stored.run, stored.time_ns) == (7, RUN, 7000)
    assert {name: table.to_pylist() for name, table in stored.tables.items()} == {
        "schemas": [{"x": 1}],
        "heartbeats": [{"x": 2}],
    }
    assert list(stored.tables) == ["schemas", "heartbeats"]
    state.remove(7)
    assert state.interruption() == type(found)(RUN, 5)


def test_what_was_not_written_whole_is_removed(state: WriterState) -> None:
    (state.folder / ".tmp-00000001.arrow").write_bytes(b"half")
    assert state.interruption() is None
    assert list(state.folder.iterdir()) == []


@pytest.mark.parametrize("keep", [0, 10, -1, -20])
def test_a_batch_that_was_cut_off_is_named(state: WriterState, keep: int) -> None:
    state.store(batch(1, heartbeats=1))
    path = state.folder / "00000001.arrow"
    path.write_bytes(path.read_bytes()[:keep])
    state.mark(RUN, 5)
    found = state.interruption()
    assert found is not None
    assert (found.batches, found.damaged) == ((), (path.name,))
    state.remove_file(path.name)
    assert list(state.folder.glob("*.arrow")) == []


def test_a_mark_that_was_cut_off_is_an_interruption(state: WriterState) -> None:
    (state.folder / "run.json").write_text("")
    found = state.interruption()
    assert found is not None
    assert found.last_ns > 0


def test_a_name_is_locked(state: WriterState) -> None:
    other = WriterState(state.folder)
    with state.lock(), pytest.raises(LakeError, match="another process records as 'state'"), other.lock():
        pass
    with state.lock():
        pass


@pytest.mark.parametrize("name", ["", "a b", "../x", "..", ".x", "x" * 65])
def test_names_that_are_no_names_are_refused(name: str) -> None:
    with pytest.raises(LakeError, match="a writer's name has"):
        state_folder(DeltaLake("/nowhere"), name)


def test_the_state_of_a_lake_elsewhere_is_on_this_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    lake = DeltaLake("s3://bucket/lake")
    folder = state_folder(lake, "a")
    assert folder.parent.parent == tmp_path / "qmf-pipeline"
    assert folder == state_folder(DeltaLake("s3://bucket/lake/"), "a")
    assert folder != state_folder(DeltaLake("s3://bucket/other"), "a")
    assert state_folder(lake, "a", tmp_path / "own").parent.parent == tmp_path / "own"


def beats(*seqs: int) -> RowBuffers:
    buffers = RowBuffers()
    for seq in seqs:
        buffers.add(RowKind.HEARTBEATS, None, seq, (RUN, seq, 0, seq, seq, "a", 1, 10.0, None, 1, None, None))
        buffers.add(RowKind.AGENTS, None, seq, (RUN, seq + 100, 0, seq, seq, "a", 1, "added", None, 10.0))
    return buffers


@pytest.mark.parametrize("written", range(3))
def test_a_batch_that_was_written_in_part_is_completed(tmp_path: Path, written: int) -> None:
    lake = DeltaLake(str(tmp_path / "lake"))
    lake.create()
    writer = LakeWriter(lake, "a")
    tables = writer.tables(beats(1, 2).take())
    writer.write(1, dict(list(tables.items())[:written]))
    again = LakeWriter(DeltaLake(lake.url), "a")
    again.write(1, tables, again=True)
    assert numbers(lake) == [(RUN, seq) for seq in (1, 2, 101, 102)]
    assert again.next_batch() == 2


def test_a_second_process_under_the_same_name_is_refused(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path / "lake"))
    one, two = LakeWriter(lake, "a"), LakeWriter(DeltaLake(lake.url), "a")
    one.commit(1, beats(1).take())
    with pytest.raises(LakeError, match="another process records as 'a'"):
        two.commit(1, beats(2).take())
    assert [row["_seq"] for row in recorded(lake, "heartbeats")] == [1]


def test_small_files_are_combined_when_there_are_many(tmp_path: Path) -> None:
    lake = DeltaLake(str(tmp_path / "lake"))
    writer = LakeWriter(lake, "a")
    for number in range(1, 5):
        writer.commit(number, beats(number).take())
    writer.combine(5)
    assert len(lake.table("heartbeats").snapshot().files) == 4
    again = LakeWriter(lake, "a")
    again.commit(5, beats(5).take())
    for _ in range(3):
        again.combine(5)
    assert [len(lake.table(path).snapshot().files) for path in ("agents", "heartbeats")] == [1, 1]
    assert len(numbers(lake)) == 10
