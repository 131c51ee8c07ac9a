"""The connections of a server: clients that only hold them keep nobody out, and cost nothing for long."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator
from ipaddress import ip_network
from pathlib import Path

import httpx
import pytest
import trustme
import websockets
from hypothesis import given
from hypothesis import strategies as st
from support.waiting import until
from support.web import memory_application, served, web_options

from qmf.bus import MemoryExchange
from qmf.web import WebLimits, WebOptions
from qmf.web.connections import most_connections, open_files
from qmf.web.server import ServerTls, WebServer, listen

HALF = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"

Connection = tuple[asyncio.StreamReader, asyncio.StreamWriter]


@contextlib.asynccontextmanager
async def connections(port: int, count: int, sent: bytes = HALF) -> AsyncIterator[list[Connection]]:
    """So many connections on which the same was sent; the server has accepted them all, and closed some."""
    found: list[Connection] = []
    try:
        for _ in range(count):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            found.append((reader, writer))
            writer.write(sent)
        yield found
    finally:
        for _, writer in found:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


def options(**limits: float) -> WebOptions:
    return web_options(limits=WebLimits(**limits))  # type: ignore[arg-type]


def port_of(http: httpx.AsyncClient) -> int:
    assert http.base_url.port is not None
    return http.base_url.port


async def closed(reader: asyncio.StreamReader) -> bytes:
    """What came until the server closed the connection."""
    with contextlib.suppress(ConnectionError):
        return await reader.read()
    return b""


@pytest.mark.parametrize("limits", [{"address_connections": 5}, {"connections": 5}])
async def test_half_headers_keep_nobody_out(limits: dict[str, float]) -> None:
    wanted = options(header_time=3600, **limits)
    async with (
        served(memory_application(MemoryExchange(), wanted), wanted) as http,
        connections(port_of(http), 20) as held,
    ):
        assert (await http.get("/healthz")).status_code == 200
        # Those that waited longest made room, without an answer.
        assert await closed(held[0][0]) == b""
        # The last ones may still go on.
        held[-1][1].write(b"\r\n")
        assert (await held[-1][0].readline()).startswith(b"HTTP/1.1 200 ")


async def test_a_header_has_to_come_in_time() -> None:
    wanted = options(header_time=0.1)
    async with served(memory_application(MemoryExchange(), wanted), wanted) as http:
        async with connections(port_of(http), 1) as [(reader, _)]:
            head, _, body = (await closed(reader)).partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
            assert json.loads(body)["detail"] == "the header of the request did not come within 0.1 s"
        async with connections(port_of(http), 1, b"") as [(reader, _)]:
            assert await closed(reader) == b""


async def test_the_next_header_of_a_connection_has_to_come_in_time_as_well() -> None:
    wanted = options(header_time=0.1)
    async with (
        served(memory_application(MemoryExchange(), wanted), wanted) as http,
        connections(port_of(http), 1, HALF + b"\r\n") as [(reader, writer)],
    ):
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
        writer.write(HALF)
        assert b"HTTP/1.1 408 " in await closed(reader)


async def test_where_all_connections_are_busy_a_new_one_is_refused() -> None:
    wanted = options(connections=3)
    stream = b"GET /api/v1/events/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    async with served(memory_application(MemoryExchange(), wanted), wanted) as http:
        async with connections(port_of(http), 3, stream) as held:
            for reader, _ in held:
                await reader.readuntil(b"\r\n\r\n")
            async with connections(port_of(http), 1, b"") as [(reader, _)]:
                head, _, body = (await closed(reader)).partition(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: ")
                assert json.loads(body)["detail"] == "too many connections"
        # They are gone: there is room again.
        assert (await http.get("/healthz")).status_code == 200


async def test_a_websocket_is_a_connection_until_it_ends() -> None:
    wanted = options(connections=2, header_time=0.1)
    app = memory_application(MemoryExchange(), wanted)
    server = WebServer(app, listen("127.0.0.1", 0), limits=wanted.limits)
    async with server:
        url = server.url.replace("http", "ws") + "api/v1/events/socket"
        for _ in range(5):
            async with websockets.connect(url) as one, websockets.connect(url) as two:
                for socket in (one, two):
                    await (await socket.ping())
                assert len(server.connections) == 2
                with pytest.raises(websockets.InvalidStatus, match="503"):
                    await websockets.connect(url)
            await until(lambda: len(server.connections) == 0)


async def test_a_trusted_proxy_has_the_connections_of_many() -> None:
    limits = WebLimits(address_connections=2)
    wanted = web_options(limits=limits, trusted_proxies=(ip_network("127.0.0.1"),))
    async with (
        served(memory_application(MemoryExchange(), wanted), wanted) as http,
        connections(port_of(http), 5, HALF) as held,
    ):
        for reader, writer in held:
            writer.write(b"\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200 ")


async def test_tls_has_to_be_agreed_upon_in_time(tmp_path: Path) -> None:
    issued = trustme.CA().issue_cert("127.0.0.1")
    pem = tmp_path / "server.pem"
    pem.write_bytes(issued.private_key_pem.bytes() + issued.cert_chain_pems[0].bytes())
    wanted = options(header_time=0.1)
    server = WebServer(
        memory_application(MemoryExchange(), wanted),
        listen("127.0.0.1", 0),
        tls=ServerTls(cert=pem),
        limits=wanted.limits,
    )
    async with server:
        port = httpx.URL(server.url).port
        assert port is not None
        async with connections(port, 1, b"\x16\x03\x01") as [(reader, _)]:
            assert await closed(reader) == b""
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        async with httpx.AsyncClient(base_url=server.url, verify=context) as client:
            assert (await client.get("/healthz")).status_code == 200


@pytest.mark.parametrize(
    ("trusted", "address"),
    [((), "127.0.0.1"), (("10.0.0.0/8",), "127.0.0.1"), (("127.0.0.0/8",), "192.0.2.7"), (("127.0.0.1",), "192.0.2.7")],
)
async def test_who_a_client_is_only_a_trusted_proxy_says(
    trusted: tuple[str, ...], address: str, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = web_options(users={"ann": "secret"}, trusted_proxies=tuple(map(ip_network, trusted)))
    async with served(memory_application(MemoryExchange(), wanted), wanted) as http:
        await http.get("/api/v1", auth=("ann", "wrong"), headers={"X-Forwarded-For": "198.51.100.9, 192.0.2.7"})
    (record,) = (json.loads(record.message) for record in caplog.records if record.name == "qmf.web.audit")
    assert record["address"] == address


@given(st.integers(1, 10**6), st.integers(1, 10**6))
def test_connections_leave_files_for_others(wanted: int, files: int) -> None:
    found = most_connections(wanted, files)
    assert 1 <= found <= wanted
    assert files == 1 or found < files


def test_the_system_is_asked_for_files() -> None:
    assert open_files(10) >= most_connections(10, open_files(10))
