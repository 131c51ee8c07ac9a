"""The properties of objects that agents published before the recorder came."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from pipeline.lakes import recorded
from pipeline.shop import Till
from support.proxy import Proxy
from support.scripted_agent import ScriptedAgent, part, widget
from support.waiting import until

from qmf.agent import Agent as QmfAgent
from qmf.broker import Broker
from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.aio import Client
from qmf.pipeline import DeltaLake, LakeRecorder
from qmf.pipeline.cli import main
from qmf.pipeline.history.reader import LakeReader
from qmf.protocol import Content, Envelope, ObjectData, ObjectsResponse, QueryRequest, What

pytestmark = pytest.mark.slow


class Agent(ScriptedAgent):
    """An agent that can hold back its answers to queries for objects."""

    holds = False

    def answer(self, content: Content) -> list[tuple[Content, bool]]:
        if self.holds and isinstance(content, QueryRequest) and content.what is What.OBJECT:
            return []
        return super().answer(content)

    @property
    def queries(self) -> list[Envelope]:
        """The queries for objects so far."""
        found = [item for item in self.asked if isinstance(item.content, QueryRequest)]
        return [item for item in found if isinstance(item.content, QueryRequest) and item.content.what is What.OBJECT]

    async def answer_query(self, *objects: ObjectData) -> None:
        """Answer the last query for objects."""
        await self.reply(self.queries[-1], ObjectsResponse(list(objects)))


@contextlib.asynccontextmanager
async def recording(
    bus: MemoryExchange | str, lake: Path, name: str = "recorder", *, clock: Callable[[], int] = time.time_ns
) -> AsyncIterator[LakeRecorder]:
    """A recorder that runs, with its subscriptions in place."""
    ready = asyncio.Event()
    client = Client(bus if isinstance(bus, str) else MemoryBus(bus), discover=True, settle=0.0)
    recorder = LakeRecorder(client, DeltaLake(str(lake)), name=name, interval=0.01, clock=clock, on_ready=ready.set)
    task = asyncio.create_task(recorder.run())
    try:
        await ready.wait()
        yield recorder
    finally:
        recorder.stop()
        await task


@contextlib.asynccontextmanager
async def agents(exchange: MemoryExchange, *names: str) -> AsyncIterator[list[Agent]]:
    """Agents that have a widget each."""
    made = [Agent(exchange, name) for name in names]
    for agent in made:
        agent.objects = [widget("w", label="old")]
        await agent.start()
    try:
        yield made
    finally:
        for agent in made:
            await agent.bus.close()


def rows(root: Path) -> list[dict[str, Any]]:
    """The rows of all widgets, in their order."""
    lake = DeltaLake(str(root))
    found = [row for path in lake.paths() if path.startswith("objects/") for row in recorded(lake, path)]
    return sorted(found, key=lambda row: row["_seq"])


async def test_statistics_that_arrive_before_the_answer_do_not_hide_the_properties(tmp_path: Path) -> None:
    exchange = MemoryExchange()
    async with agents(exchange, "a:b:c") as [agent], recording(exchange, tmp_path):
        agent.holds = True
        await until(lambda: agent.queries)
        await agent.publish(part("w", {"turns": 8}))
        await until(lambda: rows(tmp_path))
        await agent.answer_query(widget("w", label="old"))
        await until(lambda: len(rows(tmp_path)) == 2)
        await agent.publish(part("w", {"turns": 9}))
        await until(lambda: len(rows(tmp_path)) == 3)
    first, learned, last = rows(tmp_path)
    assert (first["turns"], first["label"], first["_properties"]) == (8, None, False)
    assert (learned["turns"], learned["label"], learned["_properties"]) == (None, "old", True)
    assert (last["turns"], last["label"], last["_properties"]) == (9, "old", False)


async def test_published_properties_are_newer_than_the_answer(tmp_path: Path) -> None:
    exchange = MemoryExchange()
    async with agents(exchange, "a:b:c") as [agent], recording(exchange, tmp_path):
        agent.holds = True
        await until(lambda: agent.queries)
        await agent.publish(part("w", {"label": "new"}))
        await until(lambda: rows(tmp_path))
        await agent.answer_query(widget("w", label="old"))
        await until(lambda: len(rows(tmp_path)) == 2)
    assert [(row["name"], row["label"]) for row in rows(tmp_path)] == [(None, "new"), ("w", "new")]


async def test_an_object_deleted_before_the_answer_stays_deleted(tmp_path: Path) -> None:
    exchange = MemoryExchange()
    async with agents(exchange, "a:b:c") as [agent], recording(exchange, tmp_path):
        agent.holds = True
        await until(lambda: agent.queries)
        await agent.publish(widget("w", delete=5))
        await until(lambda: rows(tmp_path))
        await agent.answer_query(widget("w"), widget("other"))
        await until(lambda: len(rows(tmp_path)) == 2)
    assert [(row["_object"], row["_delete_ns"]) for row in rows(tmp_path)] == [("w", 5), ("other", 0)]


HOUR, HOURS = 3600 * 10**9, 6
DAY_START = 1_800_000_000 * 10**9


async def test_an_object_that_never_changes_is_in_each_hour(tmp_path: Path) -> None:
    exchange = MemoryExchange()
    now = DAY_START
    async with agents(exchange, "a:b:c") as [agent], recording(exchange, tmp_path, clock=lambda: now):
        agent.objects = [widget("stuck", turns=480, update=5), widget("busy")]
        for hour in range(HOURS):
            now = DAY_START + hour * HOUR
            await agent.heartbeat()
            await until(lambda hour=hour: sum(row["_object"] == "stuck" for row in rows(tmp_path)) == hour + 1)  # type: ignore[misc]
            # An hour after its last row it would be asked for before it is published.
            now += HOUR // 2 - hour * HOUR // 12
            await agent.publish(part("busy", {"turns": hour}))
            await until(lambda hour=hour: sum(row["_statistics"] for row in rows(tmp_path)) == hour + 1)  # type: ignore[misc]
        asked = len(agent.queries)
    found = rows(tmp_path)
    stuck = [row for row in found if row["_object"] == "stuck"]
    # They are no samples, and have all that is known, with the time of the answer.
    assert {(row["turns"], row["load"], row["level"], row["_statistics"]) for row in stuck} == {(480, 3, 5, False)}
    assert [row["_ts_ns"] for row in stuck] == [DAY_START + hour * HOUR for hour in range(HOURS)]
    # One that is published is not asked for.
    assert sum(not row["_statistics"] for row in found if row["_object"] == "busy") == 1
    assert asked == HOURS
    with LakeReader(tmp_path) as reader:
        reader.refresh()
        at = DAY_START + (HOURS - 1) * HOUR
        (key,) = reader.classes()
        state = {item.object_id.object_name: item.data.values for item in reader.state(key, at).objects}
        assert state["stuck"]["turns"] == 480
        series = reader.series([key], ("a:b:c", "stuck"), ["turns"], DAY_START, at)
        assert [sample.values["turns"] for sample in series.samples] == [480] * HOURS


async def test_all_is_asked_for_again_after_a_lost_connection(tmp_path: Path) -> None:
    async with Broker(port=0) as broker:
        agent = QmfAgent(broker.url, vendor="example.org", product="shop", instance="x", interval=0.1)
        with Proxy(broker.url) as proxy:
            async with agent, recording(proxy.url, tmp_path):
                agent.add(Till(name="one"))
                await until(lambda: rows(tmp_path))
                before = len([row for row in rows(tmp_path) if row["sales"] is not None])
                proxy.cut()
                await until(
                    lambda: any(
                        row["reason"] == "connected again" for row in recorded(DeltaLake(str(tmp_path)), "gaps")
                    )
                )
                await until(lambda: len([row for row in rows(tmp_path) if row["sales"] is not None]) > before)


async def test_every_agent_of_a_class_is_asked_once(tmp_path: Path) -> None:
    exchange = MemoryExchange()
    async with agents(exchange, "a:b:1", "a:b:2") as made, recording(exchange, tmp_path):
        await until(lambda: len(rows(tmp_path)) == 2)
        late = Agent(exchange, "a:b:3")
        late.objects = [widget("w")]
        await late.start()
        made.append(late)
        await late.heartbeat()
        await until(lambda: len(rows(tmp_path)) == 3)
        for agent in made:
            await agent.heartbeat()
            await agent.publish(part("w", {"turns": 1}))
        await until(lambda: len(rows(tmp_path)) == 6)
    assert sorted(row["_agent"] for row in rows(tmp_path) if row["_properties"]) == ["a:b:1", "a:b:2", "a:b:3"]
    for agent in made:
        assert len(agent.queries) == 1


async def test_a_restarted_agent_is_asked_again(tmp_path: Path) -> None:
    exchange = MemoryExchange()
    async with agents(exchange, "a:b:c") as [agent], recording(exchange, tmp_path):
        await until(lambda: rows(tmp_path))
        agent.restart()
        agent.objects = [widget("w", label="other")]
        await agent.heartbeat()
        await until(lambda: len(rows(tmp_path)) == 2)
    assert [row["label"] for row in rows(tmp_path)] == ["old", "other"]


async def test_what_is_published_when_the_recorder_is_ready_is_recorded(tmp_path: Path) -> None:
    exchange = MemoryExchange()
    async with agents(exchange, "a:b:c") as [agent]:
        agent.objects = []
        async with recording(exchange, tmp_path):
            await agent.publish(widget("w"))
            await until(lambda: rows(tmp_path))
    assert rows(tmp_path)[0]["_object"] == "w"


async def test_two_recorders_of_one_bus_are_told_of(tmp_path: Path) -> None:
    exchange = MemoryExchange()
    async with (
        agents(exchange, "a:b:c") as [agent],
        recording(exchange, tmp_path) as one,
        recording(exchange, tmp_path, "other") as other,
    ):

        async def told() -> list[tuple[str, str, int]]:
            await agent.heartbeat()
            await asyncio.sleep(0)
            found = recorded(DeltaLake(str(tmp_path)), "gaps")
            return [(row["_run"], row["subject"], row["count"]) for row in found if row["reason"] == "recorded twice"]

        deadline = asyncio.get_running_loop().time() + 30
        while not (rows_told := await told()):
            assert asyncio.get_running_loop().time() < deadline
    runs = {one.run_id, other.run_id}
    for run, subject, count in rows_told:
        assert {run, subject} == runs
        assert count == 1


def test_the_command_says_that_it_records_only_after_it_has_connected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["record", "-b", "127.0.0.1:1", "--lake", str(tmp_path)]) == 2
    assert "Recording" not in capsys.readouterr().out
