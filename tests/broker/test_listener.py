"""Sockets that cannot be listened on, and TLS that fails."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest
from broker.raw_clients import AMQP, connect, dropped

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
