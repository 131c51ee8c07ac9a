"""The recorder: what it records, what it waits for, and its errors."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from agent.warehouse import Shelf, ShelfMoveResult, ShelfSpill, Site

from qmf.agent import AccessRequest, Agent, MethodError, current_caller
from qmf.bus import MemoryBus, MemoryExchange
from qmf.errors import CallerError, ConnectError, NotFoundError, RemoteError
from qmf.models.host.agent import Filesystem as HostFilesystem
from qmf.models.host.console import Filesystem
from qmf.testing import InThread, Recorder, until


class MovingShelf(Shelf):
    def move(self, items: int, from_: str, factor: float) -> ShelfMoveResult:
        if items > 9:
            raise MethodError("too heavy", code=65537)
        self.in_.inc(items)
        caller = current_caller()
        return ShelfMoveResult(moved=items, note=(caller and caller.user_id) or "")


@pytest.fixture
async def recorder(qmf_exchange: MemoryExchange) -> AsyncIterator[Recorder]:
    async with Recorder(qmf_exchange) as recorder:
        yield recorder


@pytest.fixture
async def agent(qmf_exchange: MemoryExchange, recorder: Recorder) -> AsyncIterator[Agent]:
    bus = MemoryBus(qmf_exchange)
    async with Agent(bus, vendor="example.org", product="stock", instance="one", epoch=1, interval=3600) as agent:
        yield agent


async def test_objects_changes_and_deletions(recorder: Recorder, agent: Agent) -> None:
    shelf = MovingShelf(number=7, label="top")
    agent.add(shelf)
    assert recorder.objects("shelf") == []
    assert await agent.publish()
    found = await recorder.there(Shelf, number=7, label="top")
    assert (found.label, recorder.objects("SHELF"), recorder.objects("site")) == ("top", [found], [])
    shelf.users.set(3)
    shelf.users.set(1)
    await agent.publish()
    await recorder.there(Shelf, users=1, usersHigh=3)
    assert [item.users for item in recorder.publications(Shelf)] == [0, 1]
    recorder.clear()
    shelf.label = "gone"
    agent.remove(shelf)
    await agent.publish()
    assert (await recorder.deletion("shelf", number=7)).label == "gone"
    assert (recorder.objects(Shelf), len(recorder.publications(Shelf))) == ([], 1)
    assert recorder.heartbeats == 1


async def test_generated_consoles_give_typed_objects(recorder: Recorder, agent: Agent) -> None:
    agent.add(HostFilesystem(mountPoint="/", device="/dev/x", threshold=90))
    await agent.publish()
    found = await recorder.there(Filesystem, mountPoint="/")
    assert found.threshold == 90
    assert recorder.objects(Filesystem) == recorder.publications(Filesystem) == [found]


async def test_events(recorder: Recorder, agent: Agent) -> None:
    agent.raise_event(ShelfSpill(shelf=None, items=1, class_="A"))
    agent.raise_event(ShelfSpill(shelf=None, items=2, class_="A"), severity=2)
    event = await recorder.event("shelfSpill", items=2)
    assert event.severity == 2
    assert [item.arguments["items"] for item in recorder.events(ShelfSpill)] == [1, 2]
    assert recorder.events("other") == []


async def test_method_answers(recorder: Recorder, agent: Agent) -> None:
    shelf = MovingShelf(number=7)
    with pytest.raises(CallerError, match="add it to an agent"):
        await recorder.call(shelf, "move", 3)
    agent.add(shelf)
    assert dict(await recorder.call(shelf, "move", 3)) == {"moved": 3, "note": ""}
    with pytest.raises(RemoteError, match="too heavy") as caught:
        await recorder.call(await recorder.query(shelf), "move", items=10)
    assert caught.value.code == 65537
    await recorder.set(shelf, label="x")
    assert (shelf.label, (await recorder.query(shelf)).in_) == ("x", 3)
    agent.remove(shelf)
    with pytest.raises(NotFoundError, match="shelf:"):
        await recorder.query(shelf)


async def test_an_error_lists_what_was_received(recorder: Recorder, agent: Agent) -> None:
    recorder.clear()
    with pytest.raises(AssertionError, match=r"not within 0 s: an object Site with .*north.*; nothing was received"):
        await recorder.there(Site, name="north", _timeout=0)
    agent.add(Site(name="south"))
    await agent.publish()
    await recorder.there(Site)
    with pytest.raises(AssertionError, match=r"the latest last: .*HeartbeatSeen; .*site:south \{'name': 'south'\}"):
        await recorder.wait(lambda: False, timeout=0.02)
    with pytest.raises(NotFoundError, match="did you mean name"):
        await recorder.there(Site, nam="south")


async def test_the_access_function_gets_the_user(qmf_exchange: MemoryExchange) -> None:
    def access(request: AccessRequest) -> bool | str:
        return request.user_id == "ann" or "only ann may"

    shelf = MovingShelf(number=1)
    agent = Agent(MemoryBus(qmf_exchange), vendor="v", product="p", access=access)
    agent.add(shelf)
    async with Recorder(qmf_exchange, user="ann") as ann, Recorder(qmf_exchange, user="bob") as bob, agent:
        assert (await ann.call(shelf, "move", 1)).note == "ann"
        with pytest.raises(RemoteError, match="only ann may"):
            await bob.query(shelf)
    with pytest.raises(CallerError, match="the broker determines"):
        Recorder(MemoryBus(qmf_exchange), user="ann")


async def test_objects_of_an_agent_that_left_are_forgotten(recorder: Recorder, qmf_exchange: MemoryExchange) -> None:
    async with Agent(MemoryBus(qmf_exchange), vendor="v", product="p") as agent:
        agent.add(Site(name="north"))
        await agent.publish()
        await recorder.there(Site, name="north")
    await recorder.wait(lambda: not recorder.objects(Site), "the agent's goodbye")
    assert not recorder.objects(Site)


@pytest.mark.slow
def test_plain_threaded_programs(qmf_exchange: MemoryExchange, qmf_recorder: InThread[Recorder]) -> None:
    recorder, run = qmf_recorder.it, qmf_recorder.run
    with Agent.run_in_thread(MemoryBus(qmf_exchange), vendor="v", product="p", interval=0.05) as thread:
        shelf = MovingShelf(number=4)
        thread.agent.add(shelf)
        assert run(recorder.there(Shelf, number=4)).label is None
        assert run(recorder.call(shelf, "move", 2)).moved == 2
        run(recorder.there(Shelf, **{"in": 2}))


def test_what_cannot_be_opened_in_a_thread_leaves_none_behind(qmf_exchange: MemoryExchange) -> None:
    qmf_exchange.stop()
    with pytest.raises(ConnectError, match="stopped"), InThread(lambda: Recorder(qmf_exchange)):
        pass


async def test_until() -> None:
    ready = asyncio.Event()
    asyncio.get_running_loop().call_later(0.02, ready.set)
    assert await until(ready.is_set)
    with pytest.raises(AssertionError, match="no luck"):
        await until(lambda: 0, "no luck", timeout=0)
    with pytest.raises(AssertionError, match="made late"):
        await until(lambda: 0, lambda: "made late", timeout=0)
