"""The description of the interface: complete, and true for requests that are invented from it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from schemathesis.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from schemathesis.core.result import Ok
from support.shelf import store_agent
from support.web import memory_application, web_options

from qmf.bus import MemoryExchange
from qmf.web import WebLimits
from qmf.web.server import WebServer, listen

pytestmark = pytest.mark.slow

#: Those that end by themselves.
DESCRIPTION = memory_application(MemoryExchange()).openapi()
SCHEMA = schemathesis.openapi.from_dict(DESCRIPTION).include(path_regex="^/(api/v1|metrics)").exclude(
    path_regex="(/stream|/changes)$"
)  # fmt: skip

#: What is there to be found, so that requests do not only find nothing.
PATHS = {
    "agent": "example.org:store:1",
    "object_name": "org.example.store:shelf:a~2F0",
    "method": "add",
    "package": "org.example.store",
    "class_name": "shelf",
}


class Serving:
    """A store with a server, on a thread of their own."""

    def __init__(self) -> None:
        self.url = ""
        self._ready, self._stop = threading.Event(), asyncio.Event()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._main, daemon=True)
        self._thread.start()
        assert self._ready.wait(30)

    def _main(self) -> None:
        with contextlib.closing(self._loop):
            self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        exchange = MemoryExchange()
        app = memory_application(exchange, web_options(limits=WebLimits(rate=0)))
        async with store_agent(exchange) as agent, WebServer(app, listen("127.0.0.1", 0)) as server:
            agent.on("Shelf", "add", lambda _, count, at: {"total": count})
            self.url = server.url.rstrip("/")
            self._ready.set()
            await self._stop.wait()

    def close(self) -> None:
        """End."""
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(30)


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    found = Serving()
    yield found
    found.close()


#: Operations by name; a test for each, with an id of its own.
_FOUND: list[Any] = [item.ok() for item in SCHEMA.get_all_operations() if isinstance(item, Ok)]
OPERATIONS: dict[str, Any] = {operation.label: operation for operation in _FOUND}

CHECKS = [
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]


def check(case: Any, serving: Serving) -> None:
    """Send a request, and compare the answer with the description; an agent may be too slow."""
    response = case.call(base_url=serving.url)
    assert response.status_code != 500, response.text
    case.validate_response(response, checks=CHECKS)


quickly = settings(max_examples=15, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_invented_requests(name: str, serving: Serving) -> None:
    @quickly
    @given(case=OPERATIONS[name].as_strategy())
    def try_it(case: Any) -> None:
        check(case, serving)

    try_it()


@pytest.mark.parametrize("name", [name for name in sorted(OPERATIONS) if "{agent}" in name or "{package}" in name])
def test_invented_requests_to_what_exists(name: str, serving: Serving) -> None:
    @quickly
    @given(case=OPERATIONS[name].as_strategy())
    def try_it(case: Any) -> None:
        for parameter in case.path_parameters or {}:
            case.path_parameters[parameter] = PATHS.get(parameter, case.path_parameters[parameter])
        check(case, serving)

    try_it()


def test_there_are_operations() -> None:
    assert len(OPERATIONS) > 10


def test_the_description_is_of_the_version_that_was_promised() -> None:
    assert DESCRIPTION["openapi"].startswith("3.1")
    assert set(DESCRIPTION["components"]["securitySchemes"]) == {"token", "password"}


def test_every_operation_says_what_it_is_for() -> None:
    for path, operations in DESCRIPTION["paths"].items():
        for method, operation in operations.items():
            assert operation.get("summary"), f"{method} {path}"
            assert {"401", "403"} <= operation["responses"].keys() or not path.startswith("/api"), f"{method} {path}"
