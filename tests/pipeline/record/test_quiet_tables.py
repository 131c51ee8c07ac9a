"""Tables with few rows are committed more rarely, and nothing of them is lost."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pipeline.lakes import HERE, numbers, recorded
from support.scripted_agent import ScriptedAgent, widget
from support.waiting import until

from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.aio import Client
from qmf.pipeline import DeltaLake, LakeRecorder
from qmf.pipeline.lake.waiting import ReaderNote, waiting_since
from qmf.pipeline.maintenance.checking import LakeCheck
from qmf.pipeline.record.lake_writer import LakeWriter
from qmf.pipeline.record.quiet_tables import SMALL_BYTES, QuietTables
from qmf.pipeline.record.writer_state import check_pending

SECOND = 10**9
CLASS = "objects/p/c"
NOBODY: frozenset[str] = frozenset()


class Clock:
    """A clock that is set by hand, in seconds."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def rows(arrival: int, count: int = 1) -> Any:
    """Rows of any table, by the second of their arrival."""
    return pa.table({"_received_ns": pa.array([arrival * SECOND] * count, pa.int64())})


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def quiet(clock: Clock) -> QuietTables:
    """The class's table has been quiet for long, with a batch each ten seconds up to 400."""
    quiet = QuietTables(300, clock)
    for number in range(1, 31):
        clock.now = number * 10
        quiet.add(number, {CLASS: rows(number * 10)}, followed=NOBODY, all_due=False)
        assert list(quiet.due) == [CLASS]
        quiet.on_committed()
    clock.now = 400
    return quiet


def add(quiet: QuietTables, number: int, tables: dict[str, Any], **options: Any) -> list[tuple[str, int]]:
    """The tables that are committed with a batch, with the number of their rows."""
    quiet.add(number, tables, **{"followed": NOBODY, "all_due": False, **options})
    found = [(path, table.num_rows) for path, table in quiet.due.items()]
    quiet.on_committed()
    return found


def test_rows_of_a_quiet_table_wait_for_each_other(quiet: QuietTables, clock: Clock) -> None:
    for number in range(40, 69):
        assert add(quiet, number, {"heartbeats": rows(number), CLASS: rows(number)}) == [("heartbeats", 1)]
        assert quiet.held_back == {CLASS: 40 * SECOND}
        assert not quiet.is_due(NOBODY)
        clock.now += 10
    assert quiet.batches == frozenset(range(40, 69))
    clock.now = 700
    assert quiet.is_due(NOBODY)
    assert add(quiet, 70, {CLASS: rows(70)}) == [(CLASS, 30)]
    assert (quiet.held_back, quiet.batches) == ({}, frozenset())


@pytest.mark.parametrize(
    ("number", "options"),
    [(1, {"followed": frozenset({CLASS})}), (1, {"all_due": True}), (SMALL_BYTES * 4, {})],
    ids=["a reader follows it", "the recorder ends", "they are many"],
)
def test_what_ends_the_waiting(quiet: QuietTables, number: int, options: dict[str, Any]) -> None:
    assert add(quiet, 40, {CLASS: rows(40)}) == []
    assert add(quiet, 41, {CLASS: rows(41, number)}, **options) == [(CLASS, 1 + number)]


def test_many_rows_make_a_table_one_that_is_not_quiet(quiet: QuietTables, clock: Clock) -> None:
    assert add(quiet, 40, {CLASS: rows(40, SMALL_BYTES)}) == [(CLASS, SMALL_BYTES)]
    clock.now += 10
    assert add(quiet, 41, {CLASS: rows(41)}) == [(CLASS, 1)]


def test_without_an_interval_nothing_waits(clock: Clock) -> None:
    quiet = QuietTables(0, clock)
    for number in range(1, 4):
        clock.now += 1000
        assert add(quiet, number, {CLASS: rows(number)}) == [(CLASS, 1)]


def test_a_batch_that_is_tried_again_has_the_same_tables(quiet: QuietTables, clock: Clock) -> None:
    quiet.add(40, {CLASS: rows(40)}, followed=NOBODY, all_due=False)
    clock.now += 1000
    quiet.add(40, {CLASS: rows(40)}, followed=frozenset({CLASS}), all_due=True)
    assert quiet.due == {}


class World:
    """A recorder of a bus in memory whose class has been quiet for long, and an agent that publishes when asked to."""

    def __init__(self, lake: DeltaLake) -> None:
        self.lake = lake
        self.exchange = MemoryExchange()
        self.agent = ScriptedAgent(self.exchange, "a:b:c")
        self.agent.objects = [widget("w", label="first")]
        self.clock = Clock()
        self.task: asyncio.Task[None] | None = None
        self.recorder: LakeRecorder | None = None

    async def start(self) -> None:
        """Start a recorder, and wait for its first rows."""
        ready = asyncio.Event()
        client = Client(MemoryBus(self.exchange), discover=True, settle=0.0)
        quiet = QuietTables(300, self.clock)
        self.recorder = LakeRecorder(client, self.lake, interval=0.02, on_ready=ready.set, quiet=quiet)
        before = len(self.labels())
        self.task = asyncio.create_task(self.recorder.run())
        await ready.wait()
        await until(lambda: len(self.labels()) > before)
        self.clock.now += 301

    async def publish(self, label: str) -> None:
        """Publish an object, which is stored, and wait until a recorder holds it back."""
        beats = len(recorded(self.lake, "heartbeats"))
        await self.agent.publish(widget("w", label=label))
        await self.agent.heartbeat()
        await until(lambda: len(recorded(self.lake, "heartbeats")) > beats and bool(self.stored()))

    async def kill(self) -> None:
        """End the recorder as a kill does: nothing is committed any more."""
        assert self.task is not None
        self.task.cancel()
        await asyncio.wait({self.task})

    def labels(self) -> list[str]:
        """Those of all rows of objects."""
        paths = [path for path in self.lake.paths() if path.startswith("objects/")]
        return [row["label"] for path in paths for row in recorded(self.lake, path)]

    def stored(self) -> list[str]:
        """The files of batches that wait."""
        return sorted(path.name for path in Path(self.lake.url).glob("_pending/*/*.waiting"))


@pytest.fixture
async def world(tmp_path: Path) -> Any:
    world = World(DeltaLake(str(tmp_path / "lake")))
    await world.agent.start()
    await world.start()
    yield world
    if world.task is not None and not world.task.done():
        await world.kill()
    await world.agent.bus.close()


def whole(lake: DeltaLake) -> bool:
    """True if no number of a run is missing, and none is there twice."""
    found: dict[str, list[int]] = {}
    for run, seq in numbers(DeltaLake(lake.url)):
        found.setdefault(run, []).append(seq)
    return all(own == list(range(1, len(own) + 1)) for own in found.values())


@pytest.mark.slow
async def test_rows_that_wait_are_committed_at_the_end(world: World) -> None:
    await world.publish("second")
    await world.publish("third")
    assert world.labels() == ["first"]
    assert len(world.stored()) == 2
    (path,) = waiting_since(world.lake, 0)
    assert path.startswith("objects/")
    assert world.recorder is not None
    assert world.task is not None
    world.recorder.stop()
    await world.task
    assert world.labels() == ["first", "second", "third"]
    assert world.stored() == []
    assert waiting_since(world.lake, 0) == {}
    assert whole(world.lake)


@pytest.mark.slow
async def test_rows_that_a_killed_recorder_held_back_are_there_once(world: World) -> None:
    await world.publish("second")
    await world.publish("third")
    await world.kill()
    assert world.labels() == ["first"]
    assert [item.text.partition(" of ")[0] for item in check_pending(world.lake)][-1] == "a batch"
    await world.start()
    assert world.labels()[:3] == ["first", "second", "third"]  # and what is asked for at the start
    assert world.stored() == []
    assert waiting_since(world.lake, 0) == {}
    assert whole(world.lake)


@pytest.mark.slow
@pytest.mark.parametrize("at", ["before", "after"])
async def test_killed_while_it_commits_what_waited(world: World, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    await world.publish("second")
    assert world.recorder is not None
    write = LakeWriter.write

    def killed(writer: LakeWriter, *args: Any, **options: Any) -> Any:
        if at == "after":
            write(writer, *args, **options)
        raise asyncio.CancelledError

    with monkeypatch.context() as patched:
        patched.setattr(LakeWriter, "write", killed)
        world.recorder.stop()
        assert world.task is not None
        await asyncio.wait({world.task})
    await world.start()
    assert world.labels()[:2] == ["first", "second"]
    assert whole(world.lake)


@pytest.mark.slow
@pytest.mark.parametrize("reader", [False, True])
async def test_a_reader_gets_what_waits_at_once(world: World, reader: bool) -> None:
    await world.publish("second")
    (path,) = waiting_since(world.lake, 0)
    if reader:
        note = ReaderNote(world.lake, "test", time.time_ns)
        note.renew([path])
        await until(lambda: world.labels() == ["first", "second"])
        await world.agent.publish(widget("w", label="third"))
        await until(lambda: world.labels() == ["first", "second", "third"])
        note.close()
    else:
        # `check` follows all tables while it looks.
        findings = await asyncio.to_thread(lambda: list(LakeCheck(HERE, DeltaLake(world.lake.url)).findings()))
        assert findings == []
        assert world.labels() == ["first", "second"]
