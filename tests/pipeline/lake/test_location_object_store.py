"""Lakes in an object store: they are recorded, maintained and read as those in folders are."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipeline.heartbeats import DAY, put, seqs
from pipeline.lakes import numbers, recorded
from pipeline.object_store import ObjectStore, s3_store
from support.scripted_agent import ScriptedAgent, widget
from support.waiting import until

from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.aio import Client
from qmf.pipeline import DeltaLake, LakeError, LakeRecorder
from qmf.pipeline.cli import main
from qmf.pipeline.lake import maintenance
from qmf.pipeline.lake.maintenance import MaintenanceCounts

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def store() -> Iterator[ObjectStore]:
    with s3_store("delta") as found:
        yield found


def lake_in(store: ObjectStore, name: str) -> DeltaLake:
    return DeltaLake(f"{store.url}/{name}", store.options)


def settings(store: ObjectStore) -> list[str]:
    return [word for key, value in store.options.items() for word in ("--storage", f"{key}={value}")]


async def test_a_recorder_writes_there_and_keeps_its_state_here(store: ObjectStore, tmp_path: Path) -> None:
    lake = lake_in(store, "recorded")
    exchange = MemoryExchange()
    agent = ScriptedAgent(exchange, "a:b:c")
    agent.objects = [widget("w", label="old")]
    await agent.start()
    ready = asyncio.Event()
    client = Client(MemoryBus(exchange), discover=True, settle=0.0)
    recorder = LakeRecorder(client, lake, interval=0.05, state=tmp_path, on_ready=ready.set)
    task = asyncio.create_task(recorder.run())
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.wait({task, asyncio.create_task(ready.wait())}, return_when=asyncio.FIRST_COMPLETED)
    await until(lambda: recorder.counts.written.rows >= 3)
    recorder.stop()
    await task
    await agent.bus.close()
    found = numbers(lake_in(store, "recorded"))
    assert [seq for _run, seq in found] == list(range(1, len(found) + 1))
    (path,) = [path for path in lake.paths() if path.startswith("objects/")]
    assert [row["label"] for row in recorded(lake, path)] == ["old"]
    assert [found.name for found in tmp_path.rglob("*") if found.is_file()] == ["lock"]


def test_two_machines_under_one_name_are_refused(store: ObjectStore) -> None:
    put(lake_in(store, "twice"), 1, (1, 0))
    with pytest.raises(LakeError, match="another process records as 'recorder'"):
        put(lake_in(store, "twice"), 1, (2, 0))
    assert seqs(lake_in(store, "twice")) == [1]


def test_it_is_maintained(store: ObjectStore, capsys: pytest.CaptureFixture[str]) -> None:
    lake = lake_in(store, "maintained")
    for number in range(1, 4):
        put(lake, number, (number, 0), (number + 10, 1))
    assert main(["optimize", "--lake", lake.url, *settings(store)]) == 0
    assert capsys.readouterr().out == "Combined 6 files into 2\n"
    assert seqs(lake) == [1, 2, 3, 11, 12, 13]
    assert maintenance.retain(lake, 0, now_ns=DAY) == MaintenanceCounts(rows=3)
    assert seqs(lake) == [11, 12, 13]
    assert maintenance.vacuum(lake, grace_days=0).deleted == 7
    assert seqs(lake_in(store, "maintained")) == [11, 12, 13]


def test_a_bucket_that_is_not_there_is_one_line(store: ObjectStore, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", "--lake", "s3://nowhere/lake", *settings(store)]) == 2
    place, error = capsys.readouterr().err.splitlines()
    assert place == "qmf-pipeline: optimize runs in this process"
    assert error.startswith("qmf-pipeline: s3://nowhere/lake")
