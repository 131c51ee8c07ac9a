"""Several protocols on one port: the first byte decides, with TLS, without it, or both."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
import trustme
import uvloop
import websockets
from support.waiting import until

from qmf.broker import Broker
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.broker.protocols.stomp.options import StompOptions
from qmf.messaging import aio

HOST = "127.0.0.1"
MQTT = bytes.fromhex("100c00044d51545404020000") + b"\x00\x00"
STOMP = b"CONNECT\naccept-version:1.2\nhost:mq\n\n\0"
PATIENCE = 30.0


def free_port() -> int:
    with socket.create_server((HOST, 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


class Tls:
    """The two sides of TLS."""

    def __init__(self) -> None:
        authority = trustme.CA()
        self.server, self.client = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH), ssl.create_default_context()
        authority.issue_cert(HOST).configure_cert(self.server)
        authority.configure_trust(self.client)


async def answer(port: int, data: bytes, tls: ssl.SSLContext | None, *, pieces: bool = False) -> bytes:
    """What the broker answers to bytes first."""
    async with asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(HOST, port, ssl=tls)
        for part in [data[:1], data[1:]] if pieces else [data]:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0)
        found = await reader.read(1000)
        writer.close()
        return found


async def try_all(port: int, tls: ssl.SSLContext | None) -> None:
    """A client of each protocol."""
    for pieces in (False, True):
        assert await answer(port, MQTT, tls, pieces=pieces) == bytes.fromhex("20020000")
        assert (await answer(port, STOMP, tls, pieces=pieces)).startswith(b"CONNECTED\n")
    scheme = "ws" if tls is None else "wss"
    subprotocols = [websockets.Subprotocol("mqtt")]
    async with websockets.connect(
        f"{scheme}://{HOST}:{port}", subprotocols=subprotocols, proxy=None, ssl=tls
    ) as client:
        await client.send(MQTT)
        assert await client.recv() == bytes.fromhex("20020000")
    options = {} if tls is None else {"ssl_context": tls}
    async with aio.Connection(f"{'amqp' if tls is None else 'amqps'}://{HOST}:{port}", **options) as connection:
        session = await connection.session()
        sender, receiver = await session.sender("jobs"), await session.receiver("jobs")
        await sender.send(b"x" * 100_000)
        assert len((await receiver.fetch(timeout=PATIENCE)).content) == 100_000
        await session.acknowledge()


@asynccontextmanager
async def broker_on(port: int, **options: object) -> AsyncIterator[Broker]:
    """A broker that has all protocols on one port."""
    arguments = {"mqtt": MqttOptions(port=port), "stomp": StompOptions(port=port), "ws_port": port, **options}
    async with Broker(HOST, port, queues=["jobs"], **arguments) as broker:  # type: ignore[arg-type]
        yield broker


def schemes(urls: Sequence[str], port: int) -> list[str]:
    assert {url.rpartition(":")[2] for url in urls} == {str(port)}
    return [url.partition(":")[0] for url in urls]


@pytest.mark.slow
async def test_all_protocols_on_one_port() -> None:
    port = free_port()
    async with broker_on(port) as broker:
        assert schemes(broker.urls, port) == ["amqp", "mqtt", "stomp", "ws"]
        await try_all(port, None)


@pytest.mark.slow
async def test_all_protocols_on_one_port_for_tls() -> None:
    port, tls = free_port(), Tls()
    async with broker_on(port, ssl_context=tls.server) as broker:
        assert schemes(broker.urls, port) == ["amqps", "mqtts", "stomp+ssl", "wss"]
        await try_all(port, tls.client)


@pytest.mark.slow
async def test_with_tls_and_without_it_on_one_port() -> None:
    port, tls = free_port(), Tls()
    mqtt = MqttOptions(port=port, tls_port=port)
    async with broker_on(port, tls_port=port, mqtt=mqtt, ssl_context=tls.server):
        assert await answer(port, MQTT, None) == bytes.fromhex("20020000")
        assert await answer(port, MQTT, tls.client) == bytes.fromhex("20020000")
        assert (await answer(port, STOMP, tls.client)).startswith(b"CONNECTED\n")
        # STOMP and WebSocket have no port without TLS where there is a certificate.
        assert await answer(port, STOMP, None) == b""
        for scheme, context in (("amqp", None), ("amqps", tls.client)):
            options = {} if context is None else {"ssl_context": context}
            async with aio.Connection(f"{scheme}://{HOST}:{port}", **options) as connection:
                await (await connection.session()).sender("jobs")


async def _with_tls_and_without_it() -> None:
    port, tls = free_port(), Tls()
    async with Broker(HOST, port, tls_port=port, ssl_context=tls.server):
        for context in (None, tls.client):
            assert (await answer(port, b"AMQP\x03\x01\x00\x00", context)).startswith(b"AMQP")
        silent, writer = await asyncio.open_connection(HOST, port)
    async with asyncio.timeout(PATIENCE):
        assert await silent.read() == b""  # the broker has ended, and waits for no first byte
    writer.close()


def test_with_tls_and_without_it_on_the_loop_of_the_command() -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_with_tls_and_without_it())


async def test_a_protocol_that_is_not_there_is_refused() -> None:
    port = free_port()
    async with Broker(HOST, port, mqtt=MqttOptions(port=port)) as broker:
        assert await answer(port, MQTT, None) == bytes.fromhex("20020000")
        assert await answer(port, STOMP, None) == b""
        assert (await answer(port, b"\x99\0\0\0\0\0\0\0", None)).startswith(b"AMQP")  # as a port of AMQP alone
        await until(lambda: broker.connections == 0)


@pytest.mark.parametrize("with_tls", [False, True])
async def test_who_sends_nothing_is_dropped(with_tls: bool) -> None:
    port, tls = free_port(), Tls() if with_tls else None
    both: dict[str, object] = {} if tls is None else {"tls_port": port, "ssl_context": tls.server}
    async with Broker(HOST, port, mqtt=MqttOptions(port=port), open_timeout=0.05, **both):  # type: ignore[arg-type]
        assert await answer(port, b"", None) == b""


async def test_a_handshake_that_fails_ends_its_connection_alone() -> None:
    port, tls = free_port(), Tls()
    async with Broker(HOST, port, tls_port=port, ssl_context=tls.server), asyncio.timeout(PATIENCE):
        reader, writer = await asyncio.open_connection(HOST, port)
        writer.write(b"\x16\x03\x01\x00\x05hello")
        await reader.read()  # until the end, perhaps with an alert
        writer.close()
        assert (await answer(port, b"AMQP\x03\x01\x00\x00", tls.client)).startswith(b"AMQP")
