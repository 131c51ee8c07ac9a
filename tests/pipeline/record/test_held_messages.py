"""Messages of classes whose schemas come late, or not at all."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pipeline.lakes import RUN, numbers, recorded
from support.scripted_agent import ALARM, PACKAGE, WIDGET, ScriptedAgent, part, widget
from support.waiting import until

from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.aio import Client
from qmf.errors import ConstraintError
from qmf.pipeline import DeltaLake, LakeRecorder
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.arrow import arrow_schema, columns_of, with_text
from qmf.pipeline.record import held_messages
from qmf.pipeline.record.held_messages import HeldMessage, from_json, to_json
from qmf.pipeline.record.writer_state import PendingBatch, WriterState, check_pending
from qmf.protocol import EventData, ObjectData, ObjectId
from qmf.schema import ClassKey, Kind

EVENTS, OBJECTS = f"events/{PACKAGE}/{ALARM.key.name}", f"objects/{PACKAGE}/{WIDGET.key.name}"


class SlowAgent(ScriptedAgent):
    """An agent that does not know its schemas before it is told to."""

    def __init__(self, exchange: MemoryExchange) -> None:
        super().__init__(exchange)
        self.schemas = []

    def give_schemas(self) -> None:
        self.schemas = [WIDGET, ALARM]


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return DeltaLake(str(tmp_path / "lake"))


@pytest.fixture
def exchange() -> MemoryExchange:
    return MemoryExchange()


@pytest.fixture
async def agent(exchange: MemoryExchange) -> AsyncIterator[SlowAgent]:
    agent = SlowAgent(exchange)
    await agent.start()
    yield agent
    await agent.bus.close()


@asynccontextmanager
async def recording(
    exchange: MemoryExchange, lake: DeltaLake, *, timeout: float = 60.0, is_killed: bool = False
) -> AsyncIterator[LakeRecorder]:
    """A recorder that is stopped at the end of the block; or cut off, which leaves what a kill leaves."""
    loop = asyncio.get_running_loop()
    executor = ThreadPoolExecutor(4)
    loop.set_default_executor(executor)
    ready = asyncio.Event()
    client = Client(MemoryBus(exchange), settle=0.0)
    recorder = LakeRecorder(client, lake, interval=0.02, timeout=timeout, on_ready=ready.set)
    task = asyncio.create_task(recorder.run())
    await asyncio.wait({task, asyncio.create_task(ready.wait())}, return_when=asyncio.FIRST_COMPLETED)
    try:
        yield recorder
    finally:
        if is_killed:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
            executor.shutdown()  # a commit on its way would go on beside the next recorder
            loop.set_default_executor(ThreadPoolExecutor(4))
        else:
            recorder.stop()
            await task


def rows(lake: DeltaLake, path: str) -> list[dict[str, Any]]:
    return recorded(lake, path) if path in lake.paths() else []


def held(lake: DeltaLake) -> int:
    return len(WriterState(Path(lake.url) / "_pending" / "recorder").held_messages())


async def test_messages_wait_for_the_schema_and_keep_their_order(
    lake: DeltaLake, exchange: MemoryExchange, agent: SlowAgent
) -> None:
    async with recording(exchange, lake) as recorder:
        await agent.raise_event({"name": "one", "level": 3})
        await agent.raise_event({"name": "two", "level": 4})
        await agent.publish(widget("w", update=10, turns=1))
        await agent.publish(part("w", {"label": "new"}, update=20))
        await agent.publish(part("w", {"turns": 3}, update=30))
        await until(lambda: held(lake) == 5)
        (finding,) = check_pending_of(lake)
        assert "another process" in finding
        agent.give_schemas()
        await until(lambda: len(rows(lake, EVENTS)) == 2)
        await until(lambda: len(rows(lake, OBJECTS)) == 3)
        await agent.raise_event({"name": "three", "level": 5})
        await until(lambda: len(rows(lake, EVENTS)) == 3)
        await until(lambda: held(lake) == 0)
    assert [row["name"] for row in rows(lake, EVENTS)] == ["one", "two", "three"]
    found = [(row["_ts_ns"], row["label"], row["turns"], row["_statistics"]) for row in rows(lake, OBJECTS)]
    # What came with the second message was merged over the first one: its statistics count once.
    assert found == [(10, None, 1, True), (20, "new", None, False), (30, "new", 3, True)]
    assert {(row["_agent"], row["_epoch"]) for row in rows(lake, EVENTS)} == {("example.org:widgets:1", 1)}
    assert rows(lake, "untyped") == []
    assert [seq for _run, seq in numbers(lake)] == list(range(1, recorder.counts.written.rows + 1))


async def test_what_waits_is_there_after_a_kill(lake: DeltaLake, exchange: MemoryExchange, agent: SlowAgent) -> None:
    async with recording(exchange, lake, is_killed=True):
        await agent.raise_event({"name": "one", "level": 3})
        await until(lambda: held(lake) == 1)
    assert rows(lake, EVENTS) == []
    (finding,) = check_pending_of(lake)
    assert finding.endswith("1 messages wait for the schemas of their classes; the recorder's next start goes on")
    async with recording(exchange, lake, is_killed=True):
        await agent.raise_event({"name": "two", "level": 3})
        await until(lambda: held(lake) == 2)
    agent.give_schemas()
    async with recording(exchange, lake):
        await until(lambda: len(rows(lake, EVENTS)) == 2)
    first, second = rows(lake, EVENTS)
    assert (first["name"], second["name"]) == ("one", "two")
    assert first["_received_ns"] < second["_received_ns"] < rows(lake, "schemas")[0]["_received_ns"]
    assert check_pending_of(lake) == []
    assert rows(lake, "untyped") == []


async def test_what_has_no_schema_in_time_is_untyped_with_the_reason(
    lake: DeltaLake, exchange: MemoryExchange, agent: SlowAgent
) -> None:
    unknown = ClassKey(PACKAGE, "other", Kind.EVENT)
    async with recording(exchange, lake, timeout=0.1):
        await agent.raise_event({"name": "one"})
        await until(lambda: len(rows(lake, "untyped")) == 1)
        await agent.raise_event({"name": "two"})
        await agent.raise_event({"name": "three"}, key=unknown)
        await until(lambda: len(rows(lake, "untyped")) == 3)
    found = [(row["class"], row["values"], row["reason"]) for row in rows(lake, "untyped")]
    late = found[0][2]
    assert late.startswith("no schema within 0.1 s: ")
    assert found == [
        (ALARM.key.name, '{"name":"one"}', late),
        (ALARM.key.name, '{"name":"two"}', late),
        ("other", '{"name":"three"}', "it names no version of its class"),
    ]


async def test_the_end_of_a_recorder_leaves_nothing(
    lake: DeltaLake, exchange: MemoryExchange, agent: SlowAgent
) -> None:
    async with recording(exchange, lake):
        await agent.publish(widget("w"))
        await until(lambda: held(lake) == 1)
    (row,) = rows(lake, "untyped")
    assert (row["object"], row["event"], row["reason"]) == ("w", False, "the recorder ended before its schema came")
    assert [path.name for path in (Path(lake.url) / "_pending" / "recorder").iterdir()] == ["lock"]


async def test_their_number_is_limited(
    lake: DeltaLake, exchange: MemoryExchange, agent: SlowAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(held_messages, "MAX_MESSAGES", 2)
    async with recording(exchange, lake):
        for name in ("one", "two", "three"):
            await agent.raise_event({"name": name})
        await until(lambda: len(rows(lake, "untyped")) == 3)
    found = [(row["values"], row["reason"]) for row in rows(lake, "untyped")]
    assert found == [(f'{{"name":"{name}"}}', "2 messages are waiting for schemas") for name in ("one", "two", "three")]


def check_pending_of(lake: DeltaLake) -> list[str]:
    return [str(finding) for finding in check_pending(lake)]


# -- in files


@pytest.mark.parametrize(
    "values",
    [
        {},
        {"a": 1, "b": -(1 << 63), "c": 1.5, "d": True, "e": None, "f": "ü", "g": {"x": [1, {"y": "z"}]}, "h": ["ÿ"]},
    ],
)
def test_messages_come_back_as_they_were(values: Mapping[str, object]) -> None:
    event = EventData(values=values, class_key=ALARM.key, timestamp=5, severity=2, object_id=ObjectId("o", "a", 1))
    an_object = ObjectData(
        values=values, object_id=ObjectId("w"), class_key=WIDGET.key, update_ts=3, create_ts=2, delete_ts=1
    )
    for data in (event, an_object):
        message = HeldMessage.of(data, agent="a:b:c", epoch=7, received_ns=9)
        (found,) = from_json(to_json([message]))
        assert found == message
        assert dict(found.data.values) == values
        assert found.data == data


def test_what_no_message_can_hold_is_an_error() -> None:
    with pytest.raises((ConstraintError, ValueError)):
        HeldMessage.of(EventData(values={"a": 1 << 70}, class_key=ALARM.key), agent="a", epoch=1, received_ns=1)


@pytest.mark.parametrize("text", ["", "{}x", "[1]", "[{}]", '[{"agent": "a"}]'])
def test_a_broken_file_is_named_and_removed(tmp_path: Path, text: str) -> None:
    state = WriterState(tmp_path)
    (tmp_path / "held.json").write_text(text)
    found = state.interruption()
    assert found is not None
    assert found.damaged == ("held.json",)
    state.remove_file("held.json")
    assert state.interruption() is None


def test_a_batch_has_what_was_held_when_it_was_collected(tmp_path: Path) -> None:
    state = WriterState(tmp_path)
    event = EventData(values={"a": 1}, class_key=ALARM.key)
    messages = [HeldMessage.of(event, agent="a", epoch=1, received_ns=number) for number in (1, 2)]
    state.store_held(messages)
    # Killed before the batch with the first message was written: the message is in the batch, and not held any more.
    state.store(PendingBatch(1, RUN, 5, {"heartbeats": pa.table({"x": [1]})}, messages[1:]))
    found = state.interruption()
    assert found is not None
    (batch,) = found.batches
    assert batch.held == messages[1:]
    state.complete(batch)
    assert state.held_messages() == messages[1:]
    state.complete(PendingBatch(2, RUN, 5, {}))
    assert state.held_messages() == messages[1:]
    state.complete(PendingBatch(3, RUN, 5, {}, []))
    assert list(tmp_path.iterdir()) == []


async def test_a_table_without_reasons_gets_the_column(
    lake: DeltaLake, exchange: MemoryExchange, agent: SlowAgent
) -> None:
    lake.create()
    columns = tuple(item for item in columns_of(RowKind.UNTYPED, None) if item[0] != "reason")
    schema = arrow_schema(columns)
    old = with_text(pa.Table.from_pylist([{"_run": RUN, "_seq": 1, "_ts_ns": 1}], schema=schema), "_date", "1970-01-01")
    lake.table("untyped").append(old, writer="old", batch=1, partition_by=("_date",))
    async with recording(exchange, lake, timeout=0.05):
        await agent.raise_event({"name": "one"})
        await until(lambda: len(rows(lake, "untyped")) == 2)
    assert sorted(row["reason"] is None for row in rows(lake, "untyped")) == [False, True]
