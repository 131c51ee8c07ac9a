"""Recorders and readers know of each other, by small files in the lake."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pipeline.lakes import HERE, recorded
from support.scripted_agent import ScriptedAgent, widget
from support.waiting import until

from qmf.bus import MemoryBus, MemoryExchange
from qmf.console.aio import Client
from qmf.pipeline import DeltaLake, LakeError, LakeRecorder
from qmf.pipeline.cli import main
from qmf.pipeline.lake.waiting import (
    ENDED_NS,
    LEASE_NS,
    READERS,
    RENEWAL_NS,
    WAITING,
    Note,
    ReaderNote,
    Share,
    followed_tables,
    waiting_since,
)
from qmf.pipeline.maintenance.checking import LakeCheck

NOW = 10**18


@pytest.fixture
def lake(tmp_path: Path) -> DeltaLake:
    return DeltaLake(str(tmp_path))


def test_a_table_is_complete_until_the_first_row_that_waits(lake: DeltaLake) -> None:
    assert waiting_since(lake, NOW) == {}
    Note(lake, WAITING, "one").write({"time_ns": NOW, "tables": {"objects/p/c": NOW - 7, "events/p/d": NOW - 9}})
    Note(lake, WAITING, "two").write({"time_ns": NOW, "tables": {"objects/p/c": NOW - 8}})
    assert waiting_since(lake, NOW) == {"objects/p/c": NOW - 8, "events/p/d": NOW - 9}
    # A recorder that ended is not waited for.
    assert waiting_since(lake, NOW + ENDED_NS) != {}
    assert waiting_since(lake, NOW + ENDED_NS + 1) == {}


def test_readers_follow_tables_until_they_end(lake: DeltaLake) -> None:
    now = NOW
    one, two = (ReaderNote(lake, f"a job/{number}", lambda: now) for number in range(2))
    one.renew(["objects/p/c"])
    two.renew(["objects/p/c", "events/p/d"])
    assert followed_tables(lake, now) == {"objects/p/c", "events/p/d"}
    two.close()
    two.close()
    assert followed_tables(lake, now) == {"objects/p/c"}
    # One that was killed follows nothing after a while, and is forgotten later.
    assert followed_tables(lake, now + LEASE_NS + 1) == set()
    assert list(Path(lake.url, READERS).iterdir()) != []
    followed_tables(lake, now + LEASE_NS + 3600 * 10**9 + 1)
    assert list(Path(lake.url, READERS).iterdir()) == []


def test_a_reader_names_its_tables_again_when_that_is_due(lake: DeltaLake) -> None:
    now = NOW
    note = ReaderNote(lake, "job", lambda: now)
    note.renew(["a"])
    (path,) = Path(lake.url, READERS).iterdir()
    path.unlink()
    note.renew(["a"])
    assert not path.exists()
    note.renew(["a", "b"])
    assert path.exists()
    path.unlink()
    now += RENEWAL_NS
    note.renew(["a", "b"])
    assert path.exists()


def test_a_lake_that_cannot_be_written_is_read_all_the_same(lake: DeltaLake, caplog: pytest.LogCaptureFixture) -> None:
    Path(lake.url, READERS).write_text("a file in the place of the folder")
    note = ReaderNote(lake, "job", lambda: NOW)
    note.renew(["a"])
    assert "rows of quiet tables come later" in caplog.text
    note.close()


def test_a_damaged_file_is_named(lake: DeltaLake) -> None:
    path = Path(lake.url, WAITING, "one.json")
    path.parent.mkdir()
    path.write_text('{"tables": {}}')
    with pytest.raises(LakeError, match=r"_waiting/one.json: damaged"):
        waiting_since(lake, NOW)


SECOND = 10**9


@given(st.text(min_size=1), st.integers(1, 20))
def test_each_agent_is_in_one_share(agent: str, count: int) -> None:
    assert sum(Share(number, count).has(agent) for number in range(1, count + 1)) == 1
    assert all(Share(number, count).has(None) for number in range(1, count + 1))


def test_the_share_of_an_agent_is_always_the_same() -> None:
    assert [Share(2, 3).has(f"vendor:product:{number}") for number in range(6)] == [
        False, True, False, False, False, True,
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["0/2", "3/2", "1", "a/b", "1/2/3", ""])
def test_what_is_no_share(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["record", "--lake", "nowhere", "--share", text])
    assert "a share is a number of several, such as 2/5" in capsys.readouterr().err


@pytest.mark.slow
async def test_two_recorders_divide_the_agents(tmp_path: Path) -> None:
    exchange = MemoryExchange()
    wanted = [f"a:b:{number}" for number in range(8)]
    agents = [ScriptedAgent(exchange, name) for name in wanted]
    for name, agent in zip(wanted, agents, strict=True):
        agent.objects = [widget("w", label=name)]
        await agent.start()
    lake = DeltaLake(str(tmp_path))
    recorders = [
        LakeRecorder(
            Client(MemoryBus(exchange), discover=True, settle=0.0),
            DeltaLake(str(tmp_path)),
            name=f"recorder{number}",
            interval=0.05,
            share=Share(number, 2),
        )
        for number in (1, 2)
    ]
    tasks = [asyncio.create_task(recorder.run()) for recorder in recorders]

    def labels() -> list[str]:
        paths = [path for path in lake.paths() if path.startswith("objects/")]
        return sorted(row["label"] for path in paths for row in recorded(lake, path))

    def agents_heard() -> list[dict[str, Any]]:
        return [row for row in recorded(lake, "heartbeats") if row["_agent"] is not None]

    await until(lambda: labels() == wanted)
    for agent in agents:
        await agent.heartbeat()
    await until(lambda: len({row["_agent"] for row in agents_heard()}) == len(agents))
    for number, recorder in enumerate(recorders, 1):
        own = {row["_agent"] for row in agents_heard() if row["_run"] == recorder.run_id}
        assert own == {name for name in wanted if Share(number, 2).has(name)}
        recorder.stop()
    await asyncio.gather(*tasks)
    for agent in agents:
        await agent.bus.close()
    assert list(LakeCheck(HERE, DeltaLake(lake.url)).findings()) == []


def test_a_lost_share_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lake, now = DeltaLake(str(tmp_path)), 1_700_000_000 * SECOND
    lake.create()
    times = {"one": (1, now), "two": (2, now - ENDED_NS - SECOND), "older": (2, now - 9 * ENDED_NS)}
    for name, (number, time_ns) in times.items():
        Note(lake, WAITING, name).write({"time_ns": time_ns, "tables": {}, "share": [number, 3]})
    found = [str(finding) for finding in LakeCheck(HERE, lake, now_ns=now).findings()]
    assert found == [
        "share 2/3: no recorder is recording the agents of this share: 'two' had it until 2023-11-14 22:11:19 UTC",
        "share 3/3: no recorder is recording the agents of this share: no recorder ever had it",
    ]
    # When all have ended, nobody is waiting for a share.
    assert list(LakeCheck(HERE, lake, now_ns=now + ENDED_NS + SECOND).findings()) == []
    assert main(["check", "--lake", str(tmp_path)]) == 0
    assert "Nothing is wrong" in capsys.readouterr().out


def test_different_numbers_of_shares_are_reported(tmp_path: Path) -> None:
    lake, now = DeltaLake(str(tmp_path)), 1_700_000_000 * SECOND
    lake.create()
    for name, share in {"one": [1, 1], "two": [1, 2], "three": [2, 2]}.items():
        Note(lake, WAITING, name).write({"time_ns": now, "tables": {}, "share": share})
    (found,) = LakeCheck(HERE, lake, now_ns=now).findings()
    assert found.text == "recorders divide the agents into different numbers of shares: 1, 2"
