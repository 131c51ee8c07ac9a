"""A client's connection: every way in which opening can fail ends in one error, in time, with nothing left behind."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import get_args

import proton
import pytest
from bus.certificates import server_tls, trusting
from bus.peer import Peer, raw_server, serving
from bus.scripted import DATA, GrantingBroker, ScriptedBroker
from support.recording import BusEvents, Inbox, message
from support.waiting import until

from qmf.broker import AmqpOptions, Broker
from qmf.bus import AmqpBus, Binding, LinkLost, UrlError
from qmf.bus.client.network_connection import HANDLERS
from qmf.bus.engine.events import (
    ConnectionClosed,
    ConnectionOpened,
    Delivery,
    EngineEvent,
    EventBatch,
    LinkRequested,
    OutcomeConfirmed,
)
from qmf.bus.engine.values import Terminus
from qmf.codec import Described, Symbol, UInt8, UInt16, UInt32, UInt64
from qmf.codec.amqp10 import decode, encode
from qmf.errors import AuthenticationError, ConnectError

SASL = b"AMQP\x03\x01\x00\x00"


AMQP = b"AMQP\x00\x01\x00\x00"


def frame(kind: int, body: bytes) -> bytes:
    return struct.pack(">IBBH", 8 + len(body), 2, kind, 0) + body


def performative(descriptor: int, *fields: object, kind: int = 0) -> bytes:
    return frame(kind, encode(Described(UInt64(descriptor), list(fields))))


def mechanisms(*names: str) -> bytes:
    items = b"".join(bytes([len(name)]) + name.encode() for name in names)
    array = b"\xe0" + bytes([len(items) + 2, len(names)]) + b"\xa3" + items
    return frame(1, b"\x00\x53\x40\xc0" + bytes([len(array) + 1, 1]) + array)


def open_frame(container: str) -> bytes:
    return performative(0x10, container)


BEGIN = performative(0x11, UInt16(0), UInt32(0), UInt32(9), UInt32(9))


#: As far as to the open frame, for clients that are anonymous.
WELCOME = SASL + mechanisms("ANONYMOUS") + performative(0x44, UInt8(0), kind=1) + AMQP + open_frame("scripted")


def nothing(peer: Peer, event: EngineEvent) -> None:
    """A script that leaves everything to the engine."""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port: int = sock.getsockname()[1]
        return port


async def failure(bus: AmqpBus, timeout: float = 5.0) -> ConnectError:
    """The error of opening, with the proof that it came in time and cleaned up."""
    with pytest.raises(ConnectError) as caught:
        async with asyncio.timeout(timeout + 1):
            await bus.open(timeout)
    assert not bus.connected
    assert [task for task in asyncio.all_tasks() if "qmf/bus" in repr(task.get_coro())] == []
    assert bus.url in str(caught.value)
    await bus.close()
    return caught.value


def test_every_event_of_the_engine_has_a_handler() -> None:
    only_in_batches = {OutcomeConfirmed}
    assert set(HANDLERS) == (set(get_args(EngineEvent)) - only_in_batches) | set(get_args(EventBatch))


async def test_nobody_listens() -> None:
    error = await failure(AmqpBus(f"127.0.0.1:{free_port()}"))
    assert "connection refused" in error.reason


async def test_unknown_host() -> None:
    error = await failure(AmqpBus("no-such-host.invalid"))
    assert "unknown host 'no-such-host.invalid'" in error.reason


async def test_a_name_that_is_not_valid() -> None:
    error = await failure(AmqpBus("x" * 70 + ".invalid"))
    assert "host" in error.reason


async def test_a_peer_that_sends_nothing() -> None:
    async with raw_server() as port:
        error = await failure(AmqpBus(f"127.0.0.1:{port}"), timeout=0.1)
    assert error.reason == "connected, but no answer in AMQP within 0.1 s"


@pytest.mark.parametrize(
    "answer", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.6\r\n", b"AMQP\x00\x00\x09\x01"]
)
async def test_a_peer_with_another_protocol(answer: bytes) -> None:
    async with raw_server(answer) as port:
        error = await failure(AmqpBus(f"127.0.0.1:{port}"))
    assert "does not use AMQP 1.0" in error.reason


async def test_a_peer_that_hangs_up() -> None:
    async with raw_server(close=True) as port:
        error = await failure(AmqpBus(f"127.0.0.1:{port}"))
    reasons = ("the broker closed the connection", "connection reset by peer")
    assert error.reason in [f"{reason}; it may require TLS (amqps://)" for reason in reasons]


async def test_a_peer_that_hangs_up_in_the_middle_of_a_frame() -> None:
    async with raw_server(b"AMQP\x03\x01\x00\x00\x00\x00", close=True) as port:
        error = await failure(AmqpBus(f"127.0.0.1:{port}"))
    reasons = ("the broker closed the connection", "connection reset by peer")
    assert error.reason in [f"{reason}; it may require TLS (amqps://)" for reason in reasons]


async def test_a_broker_that_opens_and_closes_at_once_gives_its_reason() -> None:
    error = Described(UInt64(0x1D), [Symbol("amqp:not-allowed"), "too many connections"])
    async with raw_server(WELCOME + performative(0x18, error)) as port:
        failed = await failure(AmqpBus(f"127.0.0.1:{port}"))
    assert failed.reason == "the broker closed the connection (amqp:not-allowed: too many connections)"


async def test_opening_can_be_tried_again_after_a_failure() -> None:
    port = free_port()
    bus = AmqpBus(f"127.0.0.1:{port}")
    with pytest.raises(ConnectError):
        await bus.open()
    async with Broker(port=port):
        await bus.open()
        assert bus.connected
        await bus.close()


async def test_cancelling_open_leaves_nothing() -> None:
    async with raw_server() as port:
        bus = AmqpBus(f"127.0.0.1:{port}")
        task = asyncio.create_task(bus.open(30))
        await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not bus.connected
        await bus.close()


async def test_closing_while_opening_fails_the_opening() -> None:
    async with raw_server() as port:
        bus = AmqpBus(f"127.0.0.1:{port}")
        task = asyncio.create_task(bus.open(30))
        await asyncio.sleep(0.02)
        await bus.close()
        with pytest.raises(ConnectError, match="closed while connecting"):
            await task


@pytest.mark.slow
@pytest.mark.parametrize("heartbeat", [None, 0.2])
async def test_a_quiet_connection_stays(heartbeat: float | None) -> None:
    async with Broker(port=0, amqp=AmqpOptions(idle_timeout=0.4)) as broker:
        bus = AmqpBus(broker.url, heartbeat=heartbeat)
        events = BusEvents(bus)
        await bus.open()
        await asyncio.sleep(1)
        assert bus.connected
        assert len(events.seen) == 1
        await bus.close()
        assert broker.counters.failures == 0


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
async def test_tls_with_a_trusted_certificate(host: str) -> None:
    async with Broker(port=0, ssl_context=server_tls()) as broker:
        assert broker.url.startswith("amqps://")
        bus = AmqpBus(f"amqps://{host}:{broker.port}", ssl_context=trusting())
        await bus.open()
        assert bus.connected
        await bus.close()


async def test_tls_with_an_unknown_certificate() -> None:
    async with Broker(port=0, ssl_context=server_tls()) as broker:
        error = await failure(AmqpBus(broker.url))
        assert "TLS certificate is not accepted: it is self-signed: " in error.reason


async def test_tls_with_a_certificate_of_another_host() -> None:
    async with Broker("127.0.0.2", 0, ssl_context=server_tls()) as broker:
        error = await failure(AmqpBus(f"amqps://127.0.0.2:{broker.port}", ssl_context=trusting()))
    assert "TLS certificate is not accepted" in error.reason
    assert "127.0.0.2" in error.reason


async def test_tls_to_a_broker_without() -> None:
    async with Broker(port=0) as broker:
        error = await failure(AmqpBus(f"amqps://127.0.0.1:{broker.port}"))
    assert "TLS" in error.reason or "closed" in error.reason or "reset" in error.reason


async def test_tls_to_a_peer_that_sends_nothing() -> None:
    async with raw_server() as port:
        error = await failure(AmqpBus(f"amqps://127.0.0.1:{port}"), timeout=0.1)
    assert error.reason == "no connection within 0.1 s"


async def test_no_tls_to_a_broker_with() -> None:
    async with Broker(port=0, ssl_context=server_tls()) as broker:
        error = await failure(AmqpBus(f"amqp://127.0.0.1:{broker.port}"))
    assert "does not use AMQP 1.0" in error.reason or "closed" in error.reason


class SaslServer:
    """Offers mechanisms, notes the client's answer, and gives the outcome that it was made for."""

    def __init__(self, mechanisms: list[str], code: int) -> None:
        self.mechanisms = mechanisms
        self.code = code
        self.init: list[object] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            assert await reader.readexactly(8) == SASL
            writer.write(SASL + mechanisms(*self.mechanisms))
            (size,) = struct.unpack(">I", await reader.readexactly(4))
            init, _ = decode((await reader.readexactly(size - 4))[4:])
            assert isinstance(init, Described)
            assert init.descriptor == 0x41
            assert isinstance(init.value, list)
            self.init = init.value
            writer.write(performative(0x44, UInt8(self.code), kind=1))
            if self.code == 0:
                assert (await reader.readexactly(8)).startswith(b"AMQP\x00")
                writer.write(AMQP + open_frame("sasl-server") + BEGIN)
                await reader.read(65536)
                await reader.read(65536)
                writer.write(performative(0x18))
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[int]:
        """Yields the port."""
        async with await asyncio.start_server(self.serve, "127.0.0.1", 0) as server:
            yield server.sockets[0].getsockname()[1]


@pytest.mark.parametrize(
    ("url", "arguments"),
    [
        ("amqp://guest:s%40cret@127.0.0.1:{}", {}),
        ("guest/s@cret@127.0.0.1:{}", {}),
        ("127.0.0.1:{}", {"username": "guest", "password": "s@cret"}),
        ("amqp://other:wrong@127.0.0.1:{}", {"username": "guest", "password": "s@cret"}),
    ],
)
async def test_plain_sends_user_and_password(
    url: str, arguments: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    sasl = SaslServer(["PLAIN", "ANONYMOUS"], 0)
    async with sasl.running() as port:
        bus = AmqpBus(url.format(port), **arguments)  # type: ignore[arg-type]
        events = BusEvents(bus)
        await bus.open()
        assert sasl.init[:2] == ["PLAIN", b"\0guest\0s@cret"]
        assert getattr(events.seen[0], "broker", None) == "sasl-server"
        await bus.close()
    assert "cret" not in caplog.text
    assert "cret" not in bus.url


async def test_without_a_user_access_is_anonymous() -> None:
    sasl = SaslServer(["PLAIN", "ANONYMOUS"], 0)
    async with sasl.running() as port:
        bus = AmqpBus(f"127.0.0.1:{port}")
        await bus.open()
        assert sasl.init[0] == "ANONYMOUS"
        await bus.close()


@pytest.mark.parametrize("code", [1, 2, 3, 4])
async def test_a_refused_user_is_named_without_password(code: int) -> None:
    sasl = SaslServer(["PLAIN"], code)
    async with sasl.running() as port:
        error = await failure(AmqpBus(f"amqp://guest:secret@127.0.0.1:{port}"))
    assert isinstance(error, AuthenticationError)
    assert "user 'guest' was refused (PLAIN)" in error.reason
    assert "secret" not in str(error)


@pytest.mark.parametrize(
    ("offered", "url", "reason"),
    [
        (["GSSAPI"], "127.0.0.1:{}", "anonymous access was refused: the broker offers SASL GSSAPI"),
        (["PLAIN"], "127.0.0.1:{}", "the broker offers SASL PLAIN: a user is needed"),
        (
            ["ANONYMOUS"],
            "guest:secret@127.0.0.1:{}",
            "the broker offers SASL ANONYMOUS: a user does not become anonymous",
        ),
    ],
)
async def test_a_user_never_becomes_anonymous_nor_the_reverse(offered: list[str], url: str, reason: str) -> None:
    sasl = SaslServer(offered, 0)
    async with sasl.running() as port:
        error = await failure(AmqpBus(url.format(port)))
    assert isinstance(error, AuthenticationError)
    assert reason in error.reason
    assert sasl.init == []


async def test_mechanisms_can_be_chosen() -> None:
    sasl = SaslServer(["PLAIN", "ANONYMOUS"], 0)
    async with sasl.running() as port:
        bus = AmqpBus(f"guest:secret@127.0.0.1:{port}", mechanisms=["ANONYMOUS"])
        await bus.open()
        assert sasl.init[0] == "ANONYMOUS"
        await bus.close()


async def test_a_bad_url_is_refused_before_anything_is_tried() -> None:
    with pytest.raises(UrlError):
        AmqpBus("http://127.0.0.1")


async def test_closing_sends_a_close_frame() -> None:
    async with serving(nothing) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.close()
        (peer,) = peers.all
        await until(peer.ended.done, "the end of the connection")
        assert peer.events[-1] == ConnectionClosed("", "")


async def test_each_connection_has_a_container_id_of_its_own_unless_one_is_given() -> None:
    async with serving(nothing) as peers:
        for container in (None, None, "fixed"):
            bus = AmqpBus(peers.url, container=container)
            await bus.open()
            await bus.close()
        names = [event.container for peer in peers.all for event in peer.events if isinstance(event, ConnectionOpened)]
        assert len(set(names)) == 3
        assert names[2] == "fixed"


async def test_a_broker_that_does_not_answer_the_close_delays_it_by_the_time_limit_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("qmf.bus.client.network_connection.CLOSE_TIMEOUT", 0.05)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(WELCOME)
        await reader.readuntil(b"\x00\x53\x11")  # the client's begin
        writer.write(BEGIN)
        while await reader.read(65536):
            pass
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        bus = AmqpBus(f"127.0.0.1:{server.sockets[0].getsockname()[1]}")
        await bus.open()
        async with asyncio.timeout(2):
            await bus.close()
        assert not bus.connected


async def test_an_ended_session_is_begun_again_with_all_links() -> None:
    script = ScriptedBroker()
    inbox = Inbox()
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        events = BusEvents(bus)
        await bus.open()
        await bus.subscribe(Binding("exchange", "key"), inbox)
        await bus.send(DATA, confirm=True)
        (peer,) = peers.all
        peer.links[0].session.close()
        peer.transport.flush_soon()
        await events.wait(LinkLost, 2)
        await bus.send(DATA, confirm=True)
        receiving = [link for link in peer.links if link.is_sender]
        peer.engine.deliveries.send(receiving[-1], message(None, None, "still here"))
        peer.transport.flush_soon()
        assert await inbox.wait(1) == ["still here"]
        assert len(peers.all) == 1
        await bus.close()


async def test_a_link_that_the_broker_asks_for_is_refused() -> None:
    async with serving(ScriptedBroker()) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        (peer,) = peers.all
        peer.engine.links.attach("unwanted", is_sender=True, terminus=Terminus("client"))
        peer.transport.flush_soon()
        await until(lambda: any(getattr(event, "condition", "") == "amqp:not-allowed" for event in peer.events))
        assert bus.connected
        await bus.close()


async def test_closing_waits_for_confirmations_that_are_due() -> None:
    script = ScriptedBroker()
    script.silent = True
    async with serving(script) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(DATA)
        (peer,) = peers.all
        await until(lambda: peer.bodies, "the message")
        closing = asyncio.create_task(bus.close())
        await asyncio.sleep(0.03)
        assert not closing.done()
        (incoming,) = [event for event in peer.events if isinstance(event, Delivery)]
        assert incoming.delivery_tag is not None
        peer.engine.decisions.settle(incoming.link, incoming.delivery_tag)
        peer.transport.flush_soon()
        await closing


async def test_a_close_that_is_cancelled_leaves_no_socket_behind() -> None:
    def silent(peer: Peer, event: EngineEvent) -> None:
        if isinstance(event, LinkRequested):
            peer.grant(event.link)

    async with serving(silent) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(message("x", "y", "z"))
        closing = asyncio.create_task(bus.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        async with asyncio.timeout(1):  # less than closing would wait for the confirmation
            await peers.all[0].ended


@pytest.mark.parametrize("properties", [["a", "list"], "text", 5, {"product": 5}])
async def test_a_peer_with_odd_connection_properties_is_usable(
    monkeypatch: pytest.MonkeyPatch, properties: object
) -> None:
    class OddConnection(proton.Connection):
        """The peer's has odd properties, the client's has its own."""

        def open(self) -> None:
            if self.container == "scripted":
                self.properties = properties  # type: ignore[assignment]
            super().open()

    monkeypatch.setattr(proton, "Connection", OddConnection)
    async with serving(GrantingBroker()) as peers:
        bus = AmqpBus(peers.url)
        await bus.open()
        await bus.send(message("x", "y", "z"), confirm=True)
        assert bus.connected
        await bus.close()
