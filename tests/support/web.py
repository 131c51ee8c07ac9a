"""Applications of `qmf.web` for tests: called in the process, or served on a port of their own."""

from __future__ import annotations

import contextlib
import ssl
from collections.abc import AsyncIterator

import httpx
from fastapi import FastAPI

from qmf.bus import MemoryBus, MemoryExchange
from qmf.connecting import BrokerTarget
from qmf.web import WebOptions, WebServices, create_application
from qmf.web.server import WebServer, listen

#: For clients of servers without TLS, which otherwise read the certificates of the machine: 25 ms of the processor.
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)


def memory_application(exchange: MemoryExchange, options: WebOptions | None = None, *, pages: bool = False) -> FastAPI:
    """An application whose console is on a bus in memory."""
    options = options or web_options()
    services = WebServices(options, make_bus=lambda: MemoryBus(exchange))
    return create_application(options, services=services, pages=pages)


def web_options(**options: object) -> WebOptions:
    """Options for tests: a target that nobody connects to, unless it is given."""
    return WebOptions(**{"target": BrokerTarget.of("amqp://127.0.0.1:1"), **options})  # type: ignore[arg-type]


@contextlib.asynccontextmanager
async def called(app: FastAPI, base_url: str = "http://127.0.0.1:8672") -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that is open until the end of the block; without a network, and without streams."""
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=base_url) as client,
    ):
        yield client


@contextlib.asynccontextmanager
async def served(app: FastAPI, options: WebOptions | None = None) -> AsyncIterator[httpx.AsyncClient]:
    """A client of an application that is served on a free port until the end of the block.

    Args:
        app: the application.
        options: for what the server itself is told; None for the defaults.
    """
    options = options or web_options()
    server = WebServer(app, listen("127.0.0.1", 0), limits=options.limits, trusted_proxies=options.trusted_proxies)
    async with server, httpx.AsyncClient(base_url=server.url, timeout=30, verify=NO_TLS) as client:
        yield client
