"""Clients that send or take nothing, and that are gone: the server waits for none of them for long."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import httpx
from support.waiting import until
from support.web import memory_application, served, web_options

from qmf.bus import MemoryBus, MemoryExchange
from qmf.web import WebLimits, WebServices, create_application


@contextlib.asynccontextmanager
async def connected(
    http: httpx.AsyncClient, head: str
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """A connection of its own, on which a request was begun."""
    reader, writer = await asyncio.open_connection(http.base_url.host, http.base_url.port)
    try:
        writer.write(f"{head}\r\nHost: 127.0.0.1\r\n".encode())
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def test_a_body_that_does_not_come() -> None:
    options = web_options(users={"ann": "secret"}, limits=WebLimits(read_time=0.2))
    async with (
        served(memory_application(MemoryExchange(), options)) as http,
        connected(http, "POST /login HTTP/1.1") as (reader, writer),
    ):
        writer.write(b"Content-Length: 10\r\n\r\nuser")
        answer = await reader.readuntil(b"\r\n\r\n")
        assert b" 408 " in answer
        assert b"application/problem+json" in answer


async def test_a_form_to_log_in_that_comes_in_many_parts() -> None:
    options = web_options(users={"ann": "secret"}, limits=WebLimits(header_time=0.2, read_time=3600))
    async with (
        served(memory_application(MemoryExchange(), options)) as http,
        connected(http, "POST /login HTTP/1.1") as (reader, writer),
    ):
        writer.write(b"Content-Length: 1000000\r\n\r\n")

        async def feed() -> None:
            while not writer.is_closing():
                writer.write(b"x")
                await asyncio.sleep(0.01)

        feeding = asyncio.create_task(feed())
        try:
            assert b" 408 " in await reader.readuntil(b"\r\n\r\n")
        finally:
            feeding.cancel()


async def test_a_stream_whose_reader_is_gone_is_closed() -> None:
    exchange = MemoryExchange()
    services = WebServices(web_options(), make_bus=lambda: MemoryBus(exchange))
    app = create_application(services.options, services=services, pages=False)
    async with served(app) as http:
        async with connected(http, "GET /api/v1/events/stream HTTP/1.1") as (reader, writer):
            writer.write(b"\r\n")
            await reader.readuntil(b"\r\n\r\n")
            assert services.access.streams.open == 1
        await until(lambda: services.access.streams.open == 0)
