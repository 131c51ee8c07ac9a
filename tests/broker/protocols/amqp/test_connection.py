"""Peers that break the rules of the protocol."""

from __future__ import annotations

import asyncio
import gc
import logging
import struct
import weakref
from collections.abc import Callable

import pytest
from broker.raw_clients import AMQP, OPEN, TOPIC, TOPIC_FILTER, Client, connect, dropped, usable
from broker.visible_broker import VisibleBroker
from hypothesis import given
from hypothesis import strategies as st
from support.examples import examples
from support.waiting import until

from qmf.broker import AmqpOptions, Broker
from qmf.broker.nodes.observed_clients import BrokerClient
from qmf.broker.nodes.observer import BrokerObserver
from qmf.broker.protocols.amqp.connection import ServerConnection
from qmf.bus.engine.events import ConnectionFailed, LinkAttached
from qmf.bus.engine.values import Terminus
from qmf.codec import Described, Symbol, UInt64
from qmf.codec.amqp10 import encode

#: A frame of SASL with an init of ANONYMOUS.
_INIT = encode(Described(UInt64(0x41), [Symbol("ANONYMOUS"), None, None]))
SASL_INIT = struct.pack(">IBBH", 8 + len(_INIT), 2, 1, 0) + _INIT


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
async def test_garbage_ends_its_connection_only_and_is_logged_once(
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


@pytest.mark.parametrize("data", [b"AM", AMQP, AMQP + OPEN[:10], b"AMQP\x03\x01\x00\x00"])
async def test_a_client_that_does_not_open_in_time_is_dropped(data: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with Broker(port=0, open_timeout=0.05) as broker:
        reader, writer = await connect(broker)
        writer.write(data)
        await dropped(reader, writer)
        await until(lambda: broker.connections == 0, "the end of the connection")
        assert caplog.text.count("no AMQP open within 0.05 s of its last step") == 1
        await usable(broker)


async def test_each_step_of_a_client_has_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """When thousands come at once, each step of one waits for those of the others."""
    loop, timeout = asyncio.get_running_loop(), 77.0
    due: list[Callable[..., object]] = []
    call_later = loop.call_later

    def record(delay: float, callback: Callable[..., object], *more: object) -> asyncio.TimerHandle:
        if delay == timeout:
            due.append(callback)
        return call_later(delay, callback, *more)

    monkeypatch.setattr(loop, "call_later", record)
    async with Broker(port=0, open_timeout=timeout) as broker:
        reader, writer = await connect(broker)
        for timers, (step, answer) in enumerate([(b"AMQP\x03\x01\x00\x00", b"PLAIN"), (SASL_INIT, b"\x53\x44")], 2):
            writer.write(step)
            seen = b""
            while answer not in seen:
                seen += await reader.read(1000)
                assert seen, "the broker dropped it"
            due[-1]()
            assert len(due) == timers, "it has the time again"
            assert broker.counters.failures == 0
        due[-1]()
        await dropped(reader, writer)
        assert broker.counters.failures == 1


async def test_a_client_that_opens_and_then_stops_in_the_middle_of_a_frame_is_dropped() -> None:
    async with Broker(port=0, open_timeout=0.05, amqp=AmqpOptions(idle_timeout=0.1)) as broker:
        reader, writer = await connect(broker)
        writer.write(AMQP + OPEN + struct.pack(">IBBH", 100, 2, 0, 0) + b"half")
        await dropped(reader, writer)
        await until(lambda: broker.connections == 0, "the end of the connection")
        assert broker.counters.failures == 1


async def test_a_client_that_disconnects_without_close_is_forgotten() -> None:
    async with Broker(port=0) as broker:
        _, writer = await connect(broker)
        writer.write(AMQP + OPEN)
        await until(lambda: broker.connections == 1, "the connection")
        writer.close()
        await until(lambda: broker.connections == 0, "the end of the connection")


async def test_frames_are_limited() -> None:
    async with Broker(port=0, amqp=AmqpOptions(max_frame=512)) as broker:
        reader, writer = await connect(broker)
        writer.write(AMQP + OPEN + struct.pack(">IBBH", 513, 2, 0, 0) + b"x" * 505)
        await dropped(reader, writer)
        await usable(broker)


async def test_dispositions_for_what_was_never_sent_are_ignored() -> None:
    async with Broker(port=0) as broker:
        client = Client(*await connect(broker))
        client.engine.links.attach("in", is_sender=False, terminus=Terminus(TOPIC, filters=(TOPIC_FILTER,)), credit=5)
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
@examples(40)
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


async def test_an_ended_connection_is_gone_with_its_last_user() -> None:
    """It is in no cycle of references: the next connections do not wait for the collector to free memory."""
    seen: list[weakref.ref[object]] = []

    class Watching(BrokerObserver):
        def on_connected(self, client: BrokerClient) -> None:
            """See `BrokerObserver`."""
            assert isinstance(client, ServerConnection)
            parts = (client, client.transport, client.transport.engine)
            seen.extend(weakref.ref(part) for part in parts)

    async with VisibleBroker(port=0, queues=["q"]) as broker:
        broker.registry.observer = Watching()
        client = Client(*await connect(broker))
        gc.disable()
        try:
            client.engine.links.attach("in", is_sender=False, terminus=Terminus("q"), credit=5)
            client.engine.links.attach("out", is_sender=True, terminus=Terminus("q"))
            await client.exchange(LinkAttached, 2)
            client.writer.close()
            await until(lambda: len(seen) == 3 and not any(part() for part in seen), "the end of all parts")
        finally:
            gc.enable()


async def test_a_broker_ends_though_an_observer_fails_when_a_connection_is_gone() -> None:
    class Failing(BrokerObserver):
        def on_disconnected(self, client: BrokerClient) -> None:
            """See `BrokerObserver`."""
            raise LookupError("a bug")

    faults: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: faults.append(context["exception"]))
    async with VisibleBroker(port=0) as broker:
        broker.registry.observer = Failing()
        client = Client(*await connect(broker))
        client.engine.links.attach("out", is_sender=True, terminus=Terminus("amq.topic"))
        await client.exchange(LinkAttached)
        client.writer.close()
        await until(lambda: faults, "the fault")
        assert broker.connections == 0
    assert isinstance(faults[0], LookupError)
