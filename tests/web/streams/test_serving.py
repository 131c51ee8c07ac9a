"""Streams of events and of changes: server-sent events and websockets, resumed where they ended."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator
from typing import Any

import attrs
import httpx
import pytest
from support.shelf import store_agent
from support.waiting import WAIT_LIMIT
from support.web import memory_application, served, web_options
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidStatus

from qmf.bus import MemoryExchange
from qmf.testing import FakeAgent
from qmf.web import WebLimits, WebOptions

API = "/api/v1"
CHANGES = f"{API}/changes?class=shelf&fields=name,sold&interval=1"


@attrs.frozen
class Served:
    """A store's agent, and a client of a server on a port."""

    agent: FakeAgent
    http: httpx.AsyncClient

    def socket(self, path: str, **options: Any) -> Any:
        """A websocket."""
        return connect(str(self.http.base_url).replace("http", "ws", 1).rstrip("/") + path, **options)


@contextlib.asynccontextmanager
async def serving(options: WebOptions | None = None) -> AsyncIterator[Served]:
    """A store with a server."""
    exchange = MemoryExchange()
    app = memory_application(exchange, options)
    async with store_agent(exchange) as agent, served(app) as http:
        yield Served(agent, http)


@attrs.frozen
class Sent:
    """A server-sent event."""

    id: str | None
    kind: str
    data: Any


class Events:
    """Reads server-sent events; comments are skipped."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.aiter_lines()

    async def next(self) -> Sent:
        """The next one."""
        fields: dict[str, str] = {}
        async for line in self._lines:
            if not line and "data" in fields:
                return Sent(fields.get("id"), fields["event"], json.loads(fields["data"]))
            name, colon, value = line.partition(": ")
            if colon and name:
                fields[name] = value
        raise AssertionError("the stream has ended")

    async def until(self, kind: str) -> list[Sent]:
        """Those up to the next of a kind."""
        found = [await self.next()]
        while found[-1].kind != kind:
            found.append(await self.next())
        return found


@contextlib.asynccontextmanager
async def reading(http: httpx.AsyncClient, path: str, last: str | None = None) -> AsyncIterator[Events]:
    """A stream of server-sent events."""
    headers = {} if last is None else {"Last-Event-ID": last}
    async with http.stream("GET", path, headers=headers, timeout=WAIT_LIMIT) as response:
        assert response.status_code == 200
        assert response.headers["content-type"].startswith("text/event-stream")
        yield Events(response)


async def test_events_as_they_come_and_again_after_an_interruption() -> None:
    async with serving() as here:
        async with reading(here.http, f"{API}/events/stream") as events:
            here.agent.raise_event("sale", shelf="a/0", count=1)
            first = await events.next()
            assert (first.kind, first.data["arguments"]) == ("event", {"shelf": "a/0", "count": 1})
        async with reading(here.http, f"{API}/events/stream") as other:
            here.agent.raise_event("sale", shelf="a/1", count=2)
            here.agent.raise_event("broken", shelf="a/2")
            await other.next()
            await other.next()
        async with reading(here.http, f"{API}/events/stream?severity=error", first.id) as events:
            assert (await events.next()).data["arguments"] == {"shelf": "a/2"}
        async with reading(here.http, f"{API}/events/stream", first.id) as events:
            assert [(await events.next()).data["arguments"]["shelf"] for _ in range(2)] == ["a/1", "a/2"]


async def test_a_reader_learns_what_it_missed() -> None:
    async with serving(web_options(limits=WebLimits(history=2))) as here:
        async with reading(here.http, f"{API}/events/stream") as events:
            here.agent.raise_event("sale", shelf="a/0", count=0)
            first = await events.next()
            for count in range(1, 5):
                here.agent.raise_event("sale", shelf="a/0", count=count)
                await events.next()
        async with reading(here.http, f"{API}/events/stream", first.id) as events:
            missed = await events.next()
            assert (missed.id, missed.kind, missed.data) == (None, "missed", {"count": 2})
            assert [(await events.next()).data["arguments"]["count"] for _ in range(2)] == [3, 4]


async def test_a_position_of_another_server_is_none_of_this_one() -> None:
    async with serving() as here, reading(here.http, f"{API}/events/stream", "00000000-5") as events:
        here.agent.raise_event("sale", shelf="a/0", count=1)
        assert (await events.next()).data["arguments"]["count"] == 1


async def test_events_over_a_websocket() -> None:
    async with serving() as here:
        async with here.socket(f"{API}/events/socket?class=sale") as socket:
            here.agent.raise_event("broken", shelf="a/2")
            here.agent.raise_event("sale", shelf="a/0", count=1)
            first = json.loads(await socket.recv())
            assert (first["type"], first["data"]["class"]) == ("event", "sale")
        async with here.socket(f"{API}/events/socket?last={first['id']}") as socket:
            here.agent.raise_event("sale", shelf="a/0", count=2)
            assert json.loads(await socket.recv())["data"]["arguments"]["count"] == 2


async def test_changes_begin_with_what_there_is() -> None:
    async with serving() as here, reading(here.http, CHANGES) as events:
        found = await events.until("complete")
        assert sorted(item.data["values"]["name"] for item in found[:-1]) == ["a/0", "a/1", "a/2"]
        assert {item.kind for item in found[:-1]} == {"added"}
        assert found[-1].data == {"count": 3}
        added = here.agent.add("Shelf", name="new", limit=5)
        assert (await events.next()).data["values"] == {"name": "new", "sold": 0}
        added.sold.set(2**60)
        change = await events.next()
        assert (change.kind, change.data["values"]["sold"]) == ("changed", str(2**60))
        here.agent.remove(added)
        assert (await events.next()).kind == "deleted"


async def test_changes_go_on_where_they_were() -> None:
    async with serving() as here:
        async with reading(here.http, CHANGES) as events:
            complete = (await events.until("complete"))[-1]
        here.agent.add("Shelf", name="new", limit=5)
        async with reading(here.http, CHANGES, complete.id) as events:
            change = await events.next()
            assert (change.kind, change.data["values"]["name"]) == ("added", "new")
        async with reading(here.http, CHANGES, "00000000-1") as events:
            assert (await events.next()).kind == "reset"
            assert (await events.until("complete"))[-1].data == {"count": 4}


async def test_changes_over_a_websocket() -> None:
    async with serving() as here, here.socket(f"{API}/changes/socket?class=shelf&interval=1") as socket:
        kinds = [json.loads(await socket.recv())["type"] for _ in range(4)]
        assert kinds == ["added", "added", "added", "complete"]


async def test_an_agent_that_is_gone() -> None:
    async with serving() as here, reading(here.http, CHANGES) as events:
        await events.until("complete")
        await here.agent.close()
        assert [(await events.next()).kind for _ in range(3)] == ["lost", "lost", "lost"]


async def test_one_client_has_so_many_streams() -> None:
    async with serving(web_options(limits=WebLimits(streams=1))) as here:
        async with reading(here.http, f"{API}/events/stream"):
            for path in (f"{API}/events/stream", CHANGES):
                answer = await here.http.get(path)
                assert answer.status_code == 429
                assert "1 open streams already" in answer.json()["detail"]
        async with reading(here.http, f"{API}/events/stream") as events:
            here.agent.raise_event("sale", shelf="a/0", count=1)
            assert (await events.next()).kind == "event"


@pytest.mark.parametrize("path", [f"{API}/changes", f"{CHANGES}&where=x", f"{CHANGES}&where={{%22nme%22:1}}"])
async def test_wrong_streams_are_refused_before_they_begin(path: str) -> None:
    async with serving() as here:
        await here.http.get(f"{API}/objects?class=shelf")  # its schema is known then
        answer = await here.http.get(path)
        assert answer.status_code == 422
        assert answer.headers["content-type"] == "application/problem+json"


async def test_websockets_need_a_caller_and_our_own_page() -> None:
    async with serving(web_options(users={"ann": "secret"})) as here:
        with pytest.raises(InvalidStatus) as refused:
            await here.socket(f"{API}/events/socket").__aenter__()
        assert refused.value.response.status_code == 401
        with pytest.raises(InvalidStatus) as refused:
            await here.socket(f"{API}/events/socket", origin="https://evil.example").__aenter__()
        assert refused.value.response.status_code == 403


async def test_the_end_of_a_server_ends_its_streams() -> None:
    exchange = MemoryExchange()
    async with store_agent(exchange), contextlib.AsyncExitStack() as stack:
        http = await stack.enter_async_context(served(memory_application(exchange)))
        response = await stack.enter_async_context(http.stream("GET", CHANGES, timeout=WAIT_LIMIT))
        await Events(response).until("complete")
