"""Start and end of the broker."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import pytest
from broker.raw_clients import AMQP, OPEN, connect, dropped, usable
from support.waiting import until

from qmf.broker import Broker, ListenError


async def test_a_port_in_use_is_named() -> None:
    async with Broker(port=0) as broker:
        second = Broker(port=broker.port)
        with pytest.raises(ListenError) as caught:
            await second.start()
        assert str(caught.value) == f"cannot listen on 127.0.0.1 port {broker.port}: address already in use"
        await second.close()


async def test_a_host_that_is_not_ours_is_named() -> None:
    with pytest.raises(ListenError, match=r"cannot listen on 192\.0\.2\.1 port 0: "):
        await Broker("192.0.2.1", 0).start()


async def test_closing_twice_and_before_start() -> None:
    broker = Broker(port=0)
    await broker.close()
    await broker.start()
    await broker.close()
    await broker.close()


async def test_a_closed_broker_can_be_started_again() -> None:
    broker = Broker(port=0)
    await broker.start()
    await broker.close()
    await broker.start()
    await usable(broker)
    await broker.close()


async def test_a_client_that_does_not_answer_delays_the_end_by_the_time_limit_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qmf.broker.server.CLOSE_PATIENCE", 0.05)
    broker = Broker(port=0)
    await broker.start()
    _, writer = await connect(broker)
    writer.write(AMQP + OPEN)
    await until(lambda: broker.connections == 1, "the connection")
    async with asyncio.timeout(2):
        await broker.close()
    assert broker.connections == 0
    writer.close()


async def test_a_failed_tls_handshake_ends_its_connection_only() -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    folder = Path(__file__).resolve().parents[1] / "bus" / "tls"
    context.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    async with Broker(port=0, ssl_context=context, open_timeout=0.1) as broker:
        reader, writer = await connect(broker)
        writer.write(AMQP)
        await dropped(reader, writer)
        reader, writer = await connect(broker)
        await dropped(reader, writer)
        assert broker.connections == 0
