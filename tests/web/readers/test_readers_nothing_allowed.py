"""A caller whom no rule allows anything: every route that there is, with all scopes, gives and changes nothing."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import quote

import pytest
import websockets
from support.waiting import WAIT_LIMIT
from web.readers.test_readers import ANN, API, BOB, Web, web
from websockets.asyncio.client import connect

RULES = "acl allow ann@QPID all\nacl deny all all\n"
#: What is there, for the parameters of routes.
PARTS = {
    "agent": "example.org:store:1",
    "object_name": "org.example.store:shelf:a~2F1",
    "package": "org.example.store",
    "class_name": "shelf",
    "method": "add",
    "name": "jobs",
    "job": "1",
    "id": "1",
    "number": "1",
}
QUERIES = {f"{API}/objects": "?class=shelf", f"{API}/changes": "?class=shelf"}
BODIES = {"add": {"count": 3}, "properties": {"label": "x"}}
MESSAGES = ("/queues", "/topics")
#: Answers that have no end, the second one to those who may read objects of its class.
STREAM, CHANGES = f"{API}/events/stream", f"{API}/changes"


async def ask(here: Web, method: str, template: str, user: tuple[str, str]) -> tuple[int, str]:
    """Status and text of an answer."""
    path = template.format(**PARTS) + QUERIES.get(template, "")
    body = BODIES.get(path.rpartition("/")[2], {})
    answer = await here.http.request(method.upper(), path, auth=user, json=None if method == "get" else body)
    return answer.status_code, answer.text.replace(path, "").replace(quote(path), "")


@pytest.mark.slow
async def test_every_route(tmp_path: Path) -> None:
    async with web(tmp_path, rules=RULES) as here:
        paths = (await here.get("/api/openapi.json", auth=ANN))["paths"]
        routes = [(method, path) for path in paths for method in paths[path] if method != "head" and path != STREAM]
        assert len(routes) > 40
        here.agents.sell()
        added: list[object] = []

        def add(*_: object, **inputs: object) -> dict[str, object]:
            added.append(inputs)
            return {"total": 1}

        here.agents.store.on("Shelf", "add", add)
        for method, path in routes:
            status, text = await ask(here, method, path, BOB)
            if method != "get" or path.startswith(MESSAGES):
                assert status in (403, 404), (method, path, status, text)
            else:
                assert status in (200, 403, 404), (method, path, status, text)
            for word in ("secret", "sold", "sale", "vault", "a/0", "a/2"):  # what nobody has asked for
                assert word not in text.lower(), (method, path, text)
        assert added == []
        for method, path in routes:
            if path.startswith((*MESSAGES, CHANGES)):
                continue  # there is no broker; changes have no end
            assert (await ask(here, method, path, ANN))[0] != 403, (method, path)
        assert len(added) == 1


#: Where collectors of OTLP and of Prometheus' remote write take what is sent to them.
COLLECTORS = (
    "/v1/metrics",
    "/v1/logs",
    "/v1/traces",
    "/api/v1/write",
    "/api/v1/otlp/v1/metrics",
    "/metrics",
    "/events",
)


async def test_nothing_comes_in_as_metrics(tmp_path: Path) -> None:
    """OTLP is a way out, to the collector that the command line names."""
    async with web(tmp_path, rules=RULES) as here:
        protobuf = {"Content-Type": "application/x-protobuf"}
        for path in COLLECTORS:
            for method in ("POST", "PUT", "PATCH", "DELETE"):
                for auth, statuses in ((None, (401,)), (BOB, (404, 405)), (ANN, (404, 405))):
                    answer = await here.http.request(method, path, auth=auth, content=b"\n\0", headers=protobuf)
                    assert answer.status_code in statuses, (method, path, auth, answer.text)


@pytest.mark.slow
async def test_streams_and_sockets(tmp_path: Path) -> None:
    async with web(tmp_path, over_network=True, rules=RULES) as here, asyncio.timeout(WAIT_LIMIT):
        base = str(here.http.base_url)
        login = f"Basic {b64encode(':'.join(BOB).encode()).decode()}"
        url = base.replace("http", "ws").rstrip("/") + f"{API}/events/socket"
        for what in ("class=shelf", ""):
            refused = f"{url.replace('events', 'changes')}?{what}"
            with pytest.raises((websockets.InvalidStatus, websockets.ConnectionClosed)):
                async with connect(refused, additional_headers={"Authorization": login}, proxy=None) as changes:
                    await changes.recv()
        async with (
            here.http.stream("GET", STREAM, auth=BOB) as events,
            connect(url, additional_headers={"Authorization": login}, proxy=None) as socket,
        ):
            lines = events.aiter_lines()
            await anext(lines)
            for _ in range(2):
                here.agents.sell()
            while len((await here.get(f"{API}/events", auth=ANN))["events"]) < 8:
                await asyncio.sleep(0.01)
            rest = [asyncio.ensure_future(socket.recv()), asyncio.ensure_future(first_data(lines))]
            done, _ = await asyncio.wait(rest, timeout=0.1)
            for task in rest:
                task.cancel()
            assert not done


async def first_data(lines: AsyncIterator[str]) -> None:
    """Read until there is an event."""
    async for line in lines:
        if line.startswith("data"):
            return
