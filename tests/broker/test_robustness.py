"""Peers that break the rules, and the end of the broker."""

from __future__ import annotations

import asyncio
import logging
import ssl
import struct
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.recording import Inbox, message, text
from support.waiting import until

from qmf.broker import Broker, EmbeddedBroker, ListenError, QueueLimits
from qmf.bus import AmqpBus, Binding
from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import ConnectionFailed, Delivery, LinkAttached, LinkDetached
from qmf.bus.engine.values import ConnectionSettings, Filter, Terminus
from qmf.codec import Described, UInt64
from qmf.codec.amqp10 import encode
from qmf.errors import LinkError

TOPIC = "qmf.default.topic"
AMQP = b"AMQP\x00\x01\x00\x00"
OPEN = encode(Described(UInt64(0x10), ["raw"]))
OPEN = struct.pack(">IBBH", 8 + len(OPEN), 2, 0, 0) + OPEN


async def connect(broker: Broker) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection(broker.host, broker.port)


async def dropped(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """The broker hangs up."""
    async with asyncio.timeout(5):
        try:
            while await reader.read(65536):
                pass
        except ConnectionError:
            pass
    writer.close()


async def usable(broker: Broker) -> None:
    """The broker still does its work."""
    bus = AmqpBus(broker.url)
    inbox = Inbox()
    await bus.open()
    await bus.subscribe(Binding(TOPIC, "#"), inbox)
    await bus.send(message(TOPIC, "x", "works"), confirm=True)
    assert await inbox.wait(1) == ["works"]
    await bus.close()


@pytest.mark.parametrize(
    "data",
    [
        b"GET / HTTP/1.1\r\nHost: broker\r\n\r\n",
        b"AMQP\x00\x00\x09\x01",
        b"AMQP\x01\x01\x00\x0a",
        b"AMQP\x02\x01\x00\x00",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\x00" * 100,
        AMQP + b"\xff" * 100,
        AMQP + OPEN + struct.pack(">IBBH", 1 << 30, 2, 0, 0),
        AMQP + struct.pack(">IBBH", 3, 2, 0, 0),
    ],
)
async def test_garbage_ends_its_connection_is_logged_once_and_harms_nobody(
    data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "qmf")
    async with Broker(port=0) as broker:
        reader, writer = await connect(broker)
        writer.write(data)
        await dropped(reader, writer)
        await until(lambda: broker.connections == 0, "the end of the connection")
        assert broker.counters.failures == 1
        assert caplog.text.count("dropped") == 1
        assert "127.0.0.1" in caplog.text
        await usable(broker)


@pytest.mark.parametrize("data", [b"", b"AM", AMQP, AMQP + OPEN[:10], b"AMQP\x03\x01\x00\x00"])
async def test_a_client_that_does_not_open_in_time_is_dropped(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with Broker(port=0, open_timeout=0.05) as broker:
        reader, writer = await connect(broker)
        writer.write(data)
        await dropped(reader, writer)
        await until(lambda: broker.connections == 0, "the end of the connection")
        assert caplog.text.count("no AMQP open within 0.05 s") == 1
        await usable(broker)


async def test_a_client_that_opens_and_then_stops_in_the_middle_of_a_frame_is_dropped() -> None:
    async with Broker(port=0, open_timeout=0.05, idle_timeout=0.1) as broker:
        reader, writer = await connect(broker)
        writer.write(AMQP + OPEN + struct.pack(">IBBH", 100, 2, 0, 0) + b"half")
        await dropped(reader, writer)
        await until(lambda: broker.connections == 0, "the end of the connection")
        assert broker.counters.failures == 1


async def test_a_client_that_hangs_up_without_goodbye_is_forgotten() -> None:
    async with Broker(port=0) as broker:
        _, writer = await connect(broker)
        writer.write(AMQP + OPEN)
        await until(lambda: broker.connections == 1, "the connection")
        writer.close()
        await until(lambda: broker.connections == 0, "the end of the connection")


async def test_a_message_that_is_none_is_rejected() -> None:
    async with Broker(port=0) as broker:
        bus = AmqpBus(broker.url)
        await bus.open()
        with pytest.raises(LinkError) as caught:
            await bus.send(b"\xff garbage", confirm=True)
        assert caught.value.condition == "amqp:decode-error"
        assert broker.counters.rejected == 1
        await bus.close()


async def test_a_message_above_the_limit_is_refused_and_the_bus_goes_on() -> None:
    async with Broker(port=0, max_message=10_000) as broker:
        bus = AmqpBus(broker.url)
        await bus.open()
        with pytest.raises(LinkError) as caught:
            await bus.send(message(TOPIC, "x", "y" * 200_000), confirm=True)
        assert caught.value.condition == "amqp:link:message-size-exceeded"
        assert "10000 bytes" in caught.value.description
        await bus.send(message(TOPIC, "x", "y" * 9_000), confirm=True)
        await bus.close()


async def test_frames_are_limited() -> None:
    async with Broker(port=0, max_frame=512) as broker:
        reader, writer = await connect(broker)
        writer.write(AMQP + OPEN + struct.pack(">IBBH", 513, 2, 0, 0) + b"x" * 505)
        await dropped(reader, writer)
        await usable(broker)


class Client:
    """An engine on a stream, for clients that do what ours never would."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer
        self.engine = Engine(ConnectionSettings("client", mechanisms=None))
        self.seen: list[object] = []

    async def exchange(self, kind: type, count: int = 1) -> None:
        """Write and read until so many events of a kind were seen."""
        async with asyncio.timeout(5):
            while True:
                while data := self.engine.output():
                    self.writer.write(data)
                while (event := self.engine.next_event()) is not None:
                    self.seen.append(event)
                if sum(isinstance(event, kind) for event in self.seen) >= count:
                    return
                self.engine.feed(await self.reader.read(65536))


TOPIC_FILTER = Filter("f", "apache.org:legacy-amqp-topic-binding:string", "#")


async def test_a_receiver_that_gives_credit_and_reads_nothing_fills_no_memory() -> None:
    """It holds up neither the sender nor the others, and the broker keeps what the limits say, no more."""
    async with Broker(port=0, limits=QueueLimits(count=100)) as broker:
        reader, writer = await connect(broker)
        client = Client(reader, writer)
        client.engine.attach(
            "slow", is_sender=False, terminus=Terminus(TOPIC, filters=(TOPIC_FILTER,)), credit=1_000_000
        )
        await client.exchange(LinkAttached)
        # From here on it does not read: the system's buffers fill, then asyncio's, then the queue.
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        bus, other = AmqpBus(broker.url), AmqpBus(broker.url)
        inbox = Inbox()
        await bus.open()
        await other.open()
        await other.subscribe(Binding(TOPIC, "#"), inbox)
        body = "x" * 20_000
        sent = 0
        while not broker.counters.dropped:
            for _ in range(50):
                await bus.send(message(TOPIC, "k", body))
            sent += 50
            await bus.send(message(TOPIC, "k", body), confirm=True)
            sent += 1
            assert sent < 5_000, "nothing was dropped"
        for _ in range(100):
            await bus.send(message(TOPIC, "k", body), confirm=True)
        await inbox.wait(sent + 100)
        (connection,) = [c for c in broker._connections if "client at" in str(c)]
        (outgoing,) = connection._links._outgoing.values()
        assert len(outgoing.queue) <= 100
        assert connection.transport.engine.backlog(outgoing.link) < 1_000_000
        await bus.close()
        await other.close()
        writer.transport.abort()
        await until(lambda: broker.connections == 0, "the end of the connections")


async def test_a_receiver_that_never_settles_gets_no_more_than_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.broker.links.outgoing.MAX_UNSETTLED", 50)
    async with Broker(port=0, limits=QueueLimits(count=10)) as broker:
        bus = AmqpBus(broker.url)
        await bus.open()
        client = Client(*await connect(broker))
        link = client.engine.attach(
            "in", is_sender=False, terminus=Terminus(TOPIC, filters=(TOPIC_FILTER,)), credit=1_000
        )
        await client.exchange(LinkAttached)
        for number in range(100):
            await bus.send(message(TOPIC, "x", str(number)), confirm=True)
        await client.exchange(Delivery, 50)
        assert broker.counters.dropped == 40
        for event in list(client.seen):
            if isinstance(event, Delivery):
                assert event.delivery_tag is not None
                client.engine.settle(link, event.delivery_tag)
        await client.exchange(Delivery, 60)
        texts = [text(event.data) for event in client.seen if isinstance(event, Delivery)]
        assert texts[50:] == [str(number) for number in range(90, 100)]
        client.writer.close()
        await bus.close()


async def test_links_per_connection_are_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("qmf.broker.links.client_links.MAX_LINKS", 3)
    async with Broker(port=0) as broker:
        client = Client(*await connect(broker))
        for number in range(5):
            client.engine.attach(str(number), is_sender=True, terminus=Terminus("amq.topic"))
        await client.exchange(LinkDetached, 2)
        detached = [event for event in client.seen if isinstance(event, LinkDetached)]
        assert {event.condition for event in detached} == {"amqp:resource-limit-exceeded"}
        client.writer.close()


async def test_dispositions_for_what_was_never_sent_are_ignored() -> None:
    async with Broker(port=0) as broker:
        client = Client(*await connect(broker))
        client.engine.attach("in", is_sender=False, terminus=Terminus(TOPIC, filters=(TOPIC_FILTER,)), credit=5)
        await client.exchange(LinkAttached)
        body = encode(Described(UInt64(0x15), [True, UInt64(7), UInt64(9), True, Described(UInt64(0x24), [])]))
        client.writer.write(struct.pack(">IBBH", 8 + len(body), 2, 0, 0) + body)
        await usable(broker)
        assert not any(isinstance(event, ConnectionFailed) for event in client.seen)
        client.writer.close()


def chunk() -> st.SearchStrategy[bytes]:
    frames = st.binary(max_size=40).map(lambda body: struct.pack(">IBBH", 8 + len(body), 2, 0, 0) + body)
    described = st.builds(
        lambda code, fields: encode(Described(UInt64(code), fields)),
        st.integers(0x10, 0x18),
        st.lists(
            st.none() | st.booleans() | st.integers(0, 2**32) | st.text(max_size=5) | st.binary(max_size=5), max_size=8
        ),
    )
    valid = described.map(lambda body: struct.pack(">IBBH", 8 + len(body), 2, 0, 0) + body)
    return frames | valid | st.binary(max_size=30)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(chunks=st.lists(chunk(), min_size=1, max_size=6))
def test_no_sequence_of_frames_stops_the_broker(chunks: list[bytes]) -> None:
    async def run() -> None:
        async with Broker(port=0) as broker:
            _, writer = await connect(broker)
            writer.write(AMQP + OPEN + b"".join(chunks))
            writer.write_eof()
            await until(lambda: broker.counters.connections == 1 and broker.connections == 0, "the end")
            await usable(broker)
            writer.close()

    asyncio.run(run())


# Start and end


async def test_a_port_in_use_is_named() -> None:
    async with Broker(port=0) as broker:
        second = Broker(port=broker.port)
        with pytest.raises(ListenError) as caught:
            await second.start()
        assert str(caught.value) == f"cannot listen on 127.0.0.1 port {broker.port}: address already in use"
        await second.close()


async def test_a_host_of_somebody_else_is_named() -> None:
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


async def test_a_client_that_does_not_answer_holds_up_the_end_for_a_moment_only(
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


async def test_a_failed_tls_handshake_holds_up_nobody() -> None:
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


def test_an_embedded_broker_reports_that_it_cannot_listen_and_can_be_closed() -> None:
    with EmbeddedBroker() as first:
        second = EmbeddedBroker(port=first.port)
        with pytest.raises(ListenError, match="address already in use"):
            second.start()
        second.close()
        first.start()  # is running already


def test_an_embedded_broker_can_be_started_again() -> None:
    broker = EmbeddedBroker()
    for _ in range(2):
        broker.start()
        assert broker.url == f"amqp://127.0.0.1:{broker.port}"
        asyncio.run(_open_and_close(broker.url))
        broker.close()
        broker.close()


async def _open_and_close(url: str) -> None:
    bus = AmqpBus(url)
    await bus.open()
    await bus.close()
