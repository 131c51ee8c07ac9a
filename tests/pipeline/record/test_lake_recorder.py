"""The recorder on a real bus: the lake holds all that was published, and a kill loses only rows that waited."""

from __future__ import annotations

import asyncio
import errno
import itertools
import json
import os
import random
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pipeline.lakes import numbers, recorded
from pipeline.shop import PACKAGE, Till, TillRobbed
from support.processes import Process, command, running
from support.waiting import until, wait_until

from qmf.agent import Agent
from qmf.broker import Broker, EmbeddedBroker
from qmf.console.aio import Client
from qmf.errors import ConnectError
from qmf.hostagent import EmbeddedHostAgent, ProcessSelection, Settings
from qmf.models.host.schema import CPU
from qmf.pipeline import DeltaLake, LakeRecorder
from qmf.pipeline.cli import main
from qmf.pipeline.errors import NoSpaceError
from qmf.pipeline.kinds import RowKind
from qmf.pipeline.lake.columns import ClassVersion
from qmf.pipeline.lake.location import class_path
from qmf.pipeline.record.writer_state import PENDING

pytestmark = pytest.mark.slow

HUGE = (1 << 64) - 1
SECOND = 10**9


def rows(lake: DeltaLake, kind: str, name: str = "") -> list[dict[str, Any]]:
    """All rows of a kind or class, by run and number."""
    return recorded(lake, class_path(RowKind(kind), PACKAGE, name) if name else kind)


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return DeltaLake(str(tmp_path / "lake"))


@pytest.fixture
async def url() -> AsyncIterator[str]:
    async with Broker(port=0) as broker:
        yield broker.url


async def test_all_that_is_published_is_in_the_lake(url: str, lake: DeltaLake) -> None:
    recorder = LakeRecorder(Client(url, discover=True), lake, interval=0.1)
    till = Till(name="one")
    till.opened = 1_700_000_000_123_456_789
    till.limit = HUGE
    till.options = {"colour": "red", "deep": [1, None]}
    async with Agent(url, vendor="example.org", product="shop", instance="x", interval=0.1) as agent:
        agent.add(till)
        task = asyncio.create_task(recorder.run())
        await until(lambda: rows(lake, "objects", "till"))
        till.sales.set(HUGE - 1)
        till.service.sample(10)
        till.service.sample(30)
        agent.raise_event(TillRobbed(till="one", amount=HUGE))
        await until(lambda: rows(lake, "events", "tillRobbed"))
        await until(lambda: any(row["sales"] == HUGE - 1 for row in rows(lake, "objects", "till")))
        await until(lambda: rows(lake, "heartbeats"))
    await until(lambda: len(rows(lake, "agents")) >= 2)
    recorder.stop()
    await task

    sample = next(row for row in rows(lake, "objects", "till") if row["sales"] == HUGE - 1)
    assert (sample["limit"], sample["opened_ns"]) == (HUGE, 1_700_000_000_123_456_789)
    assert sample["opened"].isoformat() == "2023-11-14T22:13:20.123456+00:00"
    assert json.loads(sample["options"]) == {"colour": "red", "deep": [1, None]}
    assert (sample["_agent"], sample["_epoch"]) == ("example.org:shop:x", agent.epoch)
    samples = [row for row in rows(lake, "objects", "till") if row["serviceCount"]]
    assert sum(row["serviceCount"] for row in samples) == 2
    assert sum(row["serviceCount"] * row["serviceAvg"] for row in samples) == 40
    (event,) = rows(lake, "events", "tillRobbed")
    assert (event["till"], event["amount"], event["_severity"]) == ("one", HUGE, 1)
    assert [row["change"] for row in rows(lake, "agents")] == ["added", "removed"]
    assert rows(lake, "agents")[-1]["reason"] == "goodbye"
    stored = {(row["class"], row["event"]): row for row in rows(lake, "schemas")}
    schema = stored[("till", False)]
    table = ClassVersion.from_json(PACKAGE, "till", schema["hash"], False, schema["columns"])
    assert table == ClassVersion.from_schema(Till._qmf_schema_)
    counts = recorder.counts
    assert counts.written.rows == len(numbers(lake))
    assert (counts.lost, counts.invalid_values) == (0, 0)


async def test_a_commit_is_due_when_enough_cells_wait(url: str, lake: DeltaLake) -> None:
    recorder = LakeRecorder(Client(url, discover=True), lake, interval=3600, max_cells=200)
    till = Till(name="one")
    async with Agent(url, vendor="example.org", product="shop", instance="x", interval=0.01) as agent:
        agent.add(till)
        task = asyncio.create_task(recorder.run())
        sales = itertools.count(1)

        def sold() -> bool:
            till.sales.set(next(sales))
            return bool(rows(lake, "objects", "till"))

        await until(sold)
    recorder.stop()
    await task


@pytest.mark.parametrize("where", ["tables", "pending"])
async def test_a_full_disk_is_one_line_and_recording_goes_on_when_there_is_room(
    url: str, lake: DeltaLake, where: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    room = {"free": 1 << 40}
    refused = 0

    def disk_usage(_path: Path) -> SimpleNamespace:
        nonlocal refused
        refused += not room["free"]
        return SimpleNamespace(**room)

    sync = os.fsync

    def fsync(file: int) -> None:
        nonlocal refused
        if not room["free"]:
            refused += 1
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(file)

    if where == "tables":
        monkeypatch.setattr("qmf.pipeline.lake.location.shutil.disk_usage", disk_usage)
    else:
        monkeypatch.setattr("os.fsync", fsync)
    recorder = LakeRecorder(Client(url, discover=True), lake, interval=0.05)
    till = Till(name="one")
    pending = Path(lake.url) / PENDING / "recorder"
    async with Agent(url, vendor="example.org", product="shop", instance="x", interval=0.01) as agent:
        agent.add(till)
        task = asyncio.create_task(recorder.run())
        await until(lambda: rows(lake, "objects", "till"))
        room["free"] = 0
        await until(lambda: caplog.records)
        assert [path.name for path in pending.glob(".tmp-*")] == []
        till.sales.set(77)
        await until(lambda: refused > 2)
        assert not task.done()
        assert not any(row["sales"] == 77 for row in rows(lake, "objects", "till"))
        room["free"] = 1 << 40
        await until(lambda: any(row["sales"] == 77 for row in rows(lake, "objects", "till")))
    recorder.stop()
    await task
    full, again = (record.getMessage() for record in caplog.records)
    assert full.startswith(lake.url)
    assert "no space left on " in full.lower()
    assert full.endswith("; rows wait until there is room")
    assert again == "there is room again: recording goes on"
    # Nothing is lost, and nothing there twice.
    found = numbers(lake)
    assert [number for _run, number in found] == list(range(1, len(found) + 1))
    assert sorted(path.name for path in pending.iterdir()) == ["lock"]


async def test_a_recorder_that_ends_on_a_full_disk_says_so(
    url: str, lake: DeltaLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = LakeRecorder(Client(url, discover=True), lake, interval=0.05)
    async with Agent(url, vendor="example.org", product="shop", instance="x", interval=0.01) as agent:
        agent.add(Till(name="one"))
        task = asyncio.create_task(recorder.run())
        await until(lambda: rows(lake, "objects", "till"))
        usage = SimpleNamespace(free=0)
        monkeypatch.setattr("qmf.pipeline.lake.location.shutil.disk_usage", lambda _path: usage)
        await until(lambda: list((Path(lake.url) / PENDING / "recorder").glob("*.arrow")))
        recorder.stop()
        with pytest.raises(NoSpaceError, match="no space left on the device"):
            await task
    usage.free = 1 << 40
    again = LakeRecorder(Client(url, discover=True), lake, interval=0.05)
    task = asyncio.create_task(again.run())
    await until(lambda: any(row["reason"] == "killed" for row in rows(lake, "gaps")))
    again.stop()
    await task
    assert again.counts.completed > 0


async def test_a_clock_set_back_neither_stops_it_nor_loses_a_row(url: str, lake: DeltaLake) -> None:
    times = itertools.chain([2_000 * SECOND, 2_001 * SECOND], itertools.repeat(1_000 * SECOND))
    recorder = LakeRecorder(Client(url, discover=True), lake, interval=0.1, clock=lambda: next(times))
    async with Agent(url, vendor="example.org", product="shop", instance="x", interval=0.1) as agent:
        agent.add(Till(name="one"))
        task = asyncio.create_task(recorder.run())
        await until(lambda: rows(lake, "objects", "till") and rows(lake, "heartbeats"))
    recorder.stop()
    await task
    found = numbers(lake)
    assert len(set(found)) == len(found) == max(number for _run, number in found)
    assert min(row["_received_ns"] for row in rows(lake, "objects", "till")) == 1_000 * SECOND


async def test_without_a_broker_it_ends_with_an_error(lake: DeltaLake) -> None:
    client = Client("127.0.0.1:1", timeout=5)
    with pytest.raises(ConnectError):
        await LakeRecorder(client, lake).run()


async def test_it_can_be_stopped_while_it_waits_for_the_broker(lake: DeltaLake) -> None:
    recorder = LakeRecorder(Client("127.0.0.1:1", wait=True), lake)
    task = asyncio.create_task(recorder.run())
    await asyncio.sleep(0)
    recorder.stop()
    await task
    assert recorder.counts.written.rows == 0


def test_the_command_reports_an_error_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    state = ["--state", str(tmp_path)]
    assert main(["record", "-b", "127.0.0.1:1", "--lake", "nothing://host/lake", *state]) == 2
    error = capsys.readouterr().err
    assert error.startswith("qmf-pipeline: nothing://host/lake/schemas: ")
    assert error.count("\n") == 1


@pytest.fixture(scope="module")
def host_url() -> Iterator[str]:
    settings = Settings(interval=0.05, instance="kill", selection=ProcessSelection.parse("top:5"))
    with EmbeddedBroker() as broker, EmbeddedHostAgent(broker.url, settings=settings):
        yield broker.url


def test_a_recorder_whose_output_nobody_reads_ends_in_order(host_url: str, lake: DeltaLake) -> None:
    read, write = os.pipe()
    os.close(read)
    program = "import sys; from qmf._entry import pipeline; sys.exit(pipeline())"
    command = [sys.executable, "-c", program, "record", "-b", host_url, "--lake", lake.url]
    try:
        done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    finally:
        os.close(write)
    assert done.returncode == 0
    # It may end before it knows the schema of what it received.
    assert [line for line in done.stderr.splitlines() if "stay untyped" not in line] == []
    assert sorted(path.name for path in (Path(lake.url) / PENDING / "recorder").iterdir()) == ["lock"]


def recording(url: str, lake: DeltaLake) -> Any:
    return running(command("qmf-pipeline"), "record", "-b", url, "--lake", lake.url, "--interval", "0.02")


def committed(process: Process) -> int:
    return sum(int(line.split()[1]) for line in process.lines if line.startswith("Committed "))


def test_killed_at_random_points_nothing_is_there_twice_and_no_number_is_missing(
    host_url: str, lake: DeltaLake
) -> None:
    chance = random.Random(7)
    counts: list[int] = []
    for _ in range(3):
        with recording(host_url, lake) as process:
            for _ in range(chance.randint(1, 6)):
                process.wait_for("Committed ")
            process.end(signal.SIGKILL)
            counts.append(committed(process))
    with recording(host_url, lake) as process:
        process.wait_for("Committed ")
        assert process.end() == 0
        counts.append(committed(process))

    found = numbers(lake)
    assert len(found) == len(set(found))
    runs: dict[str, set[int]] = defaultdict(set)
    for run, number in found:
        runs[run].add(number)
    assert len(runs) == len(counts)
    for count, (_run, seqs) in zip(counts, sorted(runs.items()), strict=True):
        # Reported commits are in the lake, and what is there has no hole.
        assert seqs == set(range(1, len(seqs) + 1))
        assert len(seqs) >= count
    gaps = [row for row in rows(lake, "gaps") if row["reason"] == "killed"]
    assert [row["subject"] for row in gaps] == sorted(runs)[:-1]
    assert [row["_run"] for row in gaps] == sorted(runs)[1:]
    assert all(row["since_ns"] < row["_ts_ns"] for row in gaps)
    # Runs that follow each other are not taken for two recorders.
    assert {row["reason"] for row in rows(lake, "gaps")} == {"killed"}
    assert sorted(path.name for path in (Path(lake.url) / PENDING / "recorder").iterdir()) == ["lock"]


def test_the_host_agent_is_recorded_with_every_column(host_url: str, lake: DeltaLake) -> None:
    path = class_path(RowKind.OBJECTS, CPU.package, "cpu")
    with recording(host_url, lake) as process:
        wait_until(lambda: len(recorded(lake, path)) > 5, "a recorded processor")
        assert process.end() == 0
    expected = {item.name for item in ClassVersion.from_schema(CPU).columns}
    assert expected <= set(recorded(lake, path)[-1])
    assert {item.version.name for item in lake.classes()} >= {"cpu", "memory"}
