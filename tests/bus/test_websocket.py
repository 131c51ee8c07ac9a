"""WebSocket below a protocol of asyncio, with the library's own client and server at the other end."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Sequence

import pytest
import websockets
from support.waiting import until

from qmf.bus.url import BusUrl, parse_url
from qmf.bus.websocket import WebSocketMissing, WebSocketRefused, check_library, client_layer, server_layer

LIMIT = 20.0


class Echo(asyncio.Protocol):
    """Sends back what comes, and remembers what happened."""

    def __init__(self, happened: list[str]) -> None:
        self.happened = happened

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.happened.append("made")

    def data_received(self, data: bytes) -> None:
        if data == b"bye":
            self.transport.write(b"last")
            self.transport.close()
            self.transport.write(b"too late")
            return
        self.transport.write(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self.happened.append("lost")


class SmallBuffers(asyncio.BufferedProtocol):
    """Takes a few bytes at a time, and sends them back."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.buffer = bytearray(3)

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.transport.write(bytes(self.buffer[:nbytes]))


@contextlib.asynccontextmanager
async def serving(happened: list[str], origins: Sequence[str] = ()) -> AsyncIterator[str]:
    """The URL of a server with two subprotocols."""
    accept = {"amqp": lambda: Echo(happened), "small": SmallBuffers}
    server = await asyncio.get_running_loop().create_server(
        lambda: server_layer(accept, origins, LIMIT), "127.0.0.1", 0
    )
    async with server:
        yield f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"


def connect(url: str, *names: str, origin: str | None = None) -> websockets.connect:
    subprotocols = [websockets.Subprotocol(name) for name in names]
    return websockets.connect(
        url, subprotocols=subprotocols, origin=None if origin is None else websockets.Origin(origin), proxy=None
    )


async def test_bytes_pass_both_ways() -> None:
    happened: list[str] = []
    async with serving(happened) as url, connect(url, "mqtt", "amqp") as client:
        assert client.subprotocol == "amqp"
        for sent in (b"a", b"b" * 100_000, iter([b"one ", b"message"])):  # the last one in two frames
            await client.send(sent)
        got = b""
        while len(got) < 100_012:
            message = await client.recv(decode=False)
            assert len(message) < 64 * 1024  # some take no more
            got += message
        assert got == b"a" + b"b" * 100_000 + b"one message"
        await client.ping()
        await client.close()
        await until(lambda: happened == ["made", "lost"])


async def test_a_protocol_with_buffers() -> None:
    async with serving([]) as url, connect(url, "small") as client:
        await client.send(b"abcdefgh")
        assert [await client.recv(), await client.recv(), await client.recv()] == [b"abc", b"def", b"gh"]


async def test_the_server_ends_the_connection() -> None:
    happened: list[str] = []
    async with serving(happened) as url, connect(url, "amqp") as client:
        await client.send(b"bye")
        assert await client.recv() == b"last"
        with pytest.raises(websockets.ConnectionClosedOK):
            await client.recv()
        await until(lambda: happened == ["made", "lost"])


async def test_texts_are_refused() -> None:
    async with serving([]) as url, connect(url, "amqp") as client:
        await client.send("text")
        with pytest.raises(websockets.ConnectionClosedError, match=r"1003 .* messages are binary"):
            await client.recv()


@pytest.mark.parametrize(
    ("origin", "status"),
    [(None, 101), ("https://mq.example", 101), ("https://evil.example", 403), ("null", 403)],
)
async def test_pages_of_other_origins_are_refused(origin: str | None, status: int) -> None:
    happened: list[str] = []
    async with serving(happened, ["https://mq.example"]) as url:
        if status == 101:
            async with connect(url, "amqp", origin=origin) as client:
                await client.send(b"x")
                assert await client.recv() == b"x"
            return
        with pytest.raises(websockets.InvalidStatus) as error:
            async with connect(url, "amqp", origin=origin):
                pass
        assert error.value.response.status_code == status
        assert happened == []


@pytest.mark.parametrize("names", [["stomp"], []])
async def test_an_unknown_subprotocol_is_refused(names: list[str]) -> None:
    async with serving([]) as url:
        with pytest.raises(websockets.InvalidStatus) as error:
            async with connect(url, *names):
                pass
        assert error.value.response.status_code == 400


@pytest.mark.parametrize("request_", [b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", b"AMQP\x00\x01\x00\x00\r\n\r\n", b""])
async def test_what_is_no_websocket_is_refused(request_: bytes) -> None:
    happened: list[str] = []
    async with serving(happened) as url:
        parsed = parse_url(url)
        reader, writer = await asyncio.open_connection(parsed.host, parsed.port)
        writer.write(request_)
        writer.write_eof()
        assert b" 101 " not in await reader.read()
        writer.close()
    assert happened == []


async def test_a_client_that_says_nothing_is_dropped() -> None:
    server = await asyncio.get_running_loop().create_server(lambda: server_layer({}, (), 0.01), "127.0.0.1", 0)
    async with server:
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        with contextlib.suppress(ConnectionResetError):
            assert await reader.read() == b""
        writer.close()


async def dial(url: BusUrl, happened: list[str]) -> asyncio.Transport:
    """A client's transport above WebSocket."""
    made: list[Echo] = []

    def make() -> Echo:
        made.append(Echo(happened))
        return made[0]

    layer = client_layer(url, make, LIMIT)
    await asyncio.get_running_loop().create_connection(lambda: layer, url.host, url.port)
    await layer.opened
    return made[0].transport


async def test_the_clients_side() -> None:
    happened: list[str] = []
    seen: list[tuple[str, object]] = []

    async def handle(connection: websockets.ServerConnection) -> None:
        assert connection.request is not None
        seen.append((connection.request.path, connection.subprotocol))
        await connection.send(b"ping")
        seen.append(("answer", await connection.recv()))
        await connection.close()

    subprotocol = websockets.Subprotocol("amqp")
    async with websockets.serve(handle, "127.0.0.1", 0, subprotocols=[subprotocol]) as server:
        host, port = next(iter(server.sockets)).getsockname()[:2]
        transport = await dial(BusUrl(host, port, path="/a/path?q=1"), happened)
        await until(lambda: happened == ["made", "lost"])
        assert seen == [("/a/path?q=1", "amqp"), ("answer", b"ping")]
        assert transport.is_closing()


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", b"AMQP\x00\x01\x00\x00\r\n", b""]
)
async def test_a_server_without_websocket(answer: bytes) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()[:2]
        with pytest.raises(WebSocketRefused, match="no WebSocket: "):
            await dial(BusUrl(host, port, path="/"), [])


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("protocol", "client", "server"):
        monkeypatch.setitem(sys.modules, f"websockets.{name}", None)
    with pytest.raises(WebSocketMissing, match=r"needs the library websockets: pip install '\.\[websocket\]'"):
        check_library()
    with pytest.raises(WebSocketRefused, match="needs the library websockets"):
        client_layer(BusUrl("h", path="/"), lambda: Echo([]), LIMIT)
