"""How many clients of one address may be in their handshakes, and who waits for whom."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
import uvloop
from broker.raw_clients import AMQP, OPEN, connect, dropped
from support.waiting import until

from qmf.broker import Broker, accepting, server
from qmf.broker.accepting import Acceptor
from qmf.broker.connection_limits import ConnectionLimits
from qmf.broker.handshakes import Handshakes
from qmf.broker.nodes.counters import BrokerCounters
from qmf.broker.protocols.mqtt.options import MqttOptions
from qmf.broker.protocols.stomp.options import StompOptions
from qmf.bus import AmqpBus

#: Seconds that nobody waits for in a test that passes.
NEVER = 600.0
TLS_FOLDER = Path(__file__).resolve().parents[1] / "bus" / "tls"
#: CONNECT of MQTT 3.1.1, for a client with an id of its own; and CONNECT of STOMP.
MQTT_CONNECT = b"\x10\x0d\x00\x04MQTT\x04\x02\x00\x00\x00\x01c"
STOMP_CONNECT = b"CONNECT\naccept-version:1.2\nhost:h\n\n\0"


def _handshakes(limit: int, counted: float = NEVER) -> Handshakes:
    return Handshakes(limit, counted, BrokerCounters())


async def _turn() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_one_too_many_waits_for_the_first_that_is_through() -> None:
    handshakes = _handshakes(2)
    first, second = await handshakes.begin("a"), await handshakes.begin("a")
    third, fourth = (asyncio.create_task(handshakes.begin("a")) for _ in range(2))
    await _turn()
    assert (third.done(), len(handshakes)) == (False, 2)
    await handshakes.begin("b")  # of another address: waits for nobody
    first.end()
    first.end()
    await _turn()
    assert (third.done(), fourth.done(), len(handshakes)) == (True, False, 3)
    second.end()
    (await third).end()
    (await fourth).end()
    assert len(handshakes) == 1


async def test_who_gives_up_while_it_waits_takes_no_place() -> None:
    handshakes = _handshakes(1)
    first = await handshakes.begin("a")
    impatient, late, last = (asyncio.create_task(handshakes.begin("a")) for _ in range(3))
    await _turn()
    impatient.cancel()
    await _turn()
    first.end()
    late.cancel()  # its place was free just now
    (await last).end()
    assert impatient.cancelled()
    assert late.cancelled()
    assert len(handshakes) == 0


async def test_a_slow_one_is_counted_for_a_time_only() -> None:
    handshakes = _handshakes(1, 0.01)
    slow = await handshakes.begin("a")
    next_one = await handshakes.begin("a")
    slow.end()
    assert len(handshakes) == 1
    next_one.end()


async def test_no_limit() -> None:
    handshakes = _handshakes(0)
    all_of_them = [await handshakes.begin("a") for _ in range(100)]
    assert len(handshakes) == 100
    for each in all_of_them:
        each.end()
    assert len(handshakes) == 0


async def test_silent_clients_keep_nobody_waiting_and_slow_ones_do(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    limit = 3
    monkeypatch.setattr(accepting, "SILENT", 0.01)
    caplog.set_level(logging.INFO, "qmf.broker")
    async with Broker(port=0, open_timeout=NEVER, connection_limits=ConnectionLimits(handshakes=limit)) as broker:
        silent = [await connect(broker) for _ in range(3 * limit)]
        bus = AmqpBus(broker.url)
        await bus.open()
        await bus.close()
        slow = [await connect(broker) for _ in range(limit)]
        for _, writer in slow:
            writer.write(AMQP)
        await until(lambda: broker.connections == limit)
        bus = AmqpBus(broker.url)
        opening = asyncio.create_task(bus.open(NEVER))
        (reader, writer), *others = slow
        assert await reader.read(8) == AMQP  # it is served while it is slow
        assert not opening.done()
        writer.close()
        await opening
        await bus.close()
        for _, writer in (*silent, *others):
            writer.close()
        text = "it disconnected before it had sent anything"
        await until(lambda: sum(text in each for each in caplog.messages) == len(silent))
        assert broker.counters.failures == len(silent) + limit


async def test_a_client_that_sends_nothing_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    async with Broker(port=0, open_timeout=0.05) as broker:
        reader, writer = await connect(broker)
        await dropped(reader, writer)
        assert [each.endswith("it sent nothing within 0.05 s") for each in caplog.messages] == [True]
        assert (broker.connections, broker.counters.connections, broker.counters.failures) == (0, 0, 1)


async def test_who_waits_when_the_broker_ends_is_gone_with_it() -> None:
    async with Broker(port=0, open_timeout=NEVER, connection_limits=ConnectionLimits(handshakes=1)) as broker:
        clients = [await connect(broker) for _ in range(3)]
        for _, writer in clients[:2]:
            writer.write(AMQP)
        await until(lambda: broker.connections == 1)
    for reader, writer in clients:
        await dropped(reader, writer)


async def test_slow_clients_that_have_sent_nothing_leave_others_in_the_backlog_for_a_short_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(accepting, "TURN", 1)
    monkeypatch.setattr(accepting, "SILENT", NEVER)
    listening = socket.create_server(("127.0.0.1", 0), backlog=20)
    listening.setblocking(False)
    acceptor = Acceptor([listening], asyncio.Protocol, None, _handshakes(2), NEVER)
    clients = [socket.create_connection(listening.getsockname()) for _ in range(9)]
    await until(lambda: acceptor.accepted == 2)
    await _turn()
    assert acceptor.accepted == 2
    clients[0].send(b"A")
    clients[1].send(b"A")
    await until(lambda: acceptor.accepted == 4)
    await _turn()
    assert acceptor.accepted == 4
    monkeypatch.setattr(accepting, "SILENT", 0.001)
    clients[2].send(b"A")
    clients[3].send(b"A")
    await until(lambda: acceptor.accepted == 9)
    for client in clients:
        client.close()
    acceptor.close()
    await acceptor.wait_closed(1.0)


async def test_who_has_given_up_while_it_waited_is_not_served() -> None:
    async with Broker(port=0, open_timeout=NEVER, connection_limits=ConnectionLimits(handshakes=1)) as broker:
        (_, slow), (_, impatient), (reader, last) = [await connect(broker) for _ in range(3)]
        slow.write(AMQP)
        await until(lambda: broker.connections == 1)
        impatient.write(AMQP)
        impatient.close()
        await impatient.wait_closed()
        last.write(AMQP)
        slow.close()
        assert await reader.read(8) == AMQP
        assert (broker.connections, broker.counters.connections) == (1, 2)
        last.close()


async def test_of_many_at_once_few_are_in_their_handshakes_and_each_is_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limit, count, most = 4, 40, 0

    class Counted(Handshakes):
        async def begin(self, host: str) -> object:  # type: ignore[override]
            nonlocal most
            handshake = await super().begin(host)
            most = max(most, len(self))
            return handshake

    monkeypatch.setattr(server, "Handshakes", Counted)
    async with Broker(port=0, connection_limits=ConnectionLimits(handshakes=limit)) as broker:
        buses = [AmqpBus(broker.url) for _ in range(count)]
        await asyncio.gather(*(bus.open(60) for bus in buses))
        assert most == limit
        assert (broker.connections, broker.counters.failures) == (count, 0)
        await asyncio.gather(*(bus.close() for bus in buses))


async def _open_amqp(broker: Broker) -> None:
    reader, writer = await connect(broker)
    writer.write(AMQP + OPEN)
    assert (await reader.read(8)) == AMQP
    writer.close()


async def _open_tls(broker: Broker) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    assert broker.tls_url is not None
    bus = AmqpBus(broker.tls_url, ssl_context=context)
    await bus.open()
    await bus.close()


async def _send(url: str | None, data: bytes, answer: bytes) -> None:
    assert url is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", int(url.rpartition(":")[2]))
    writer.write(data)
    assert (await reader.read(len(answer))) == answer
    writer.close()


async def _open_mqtt(broker: Broker) -> None:
    await _send(broker.mqtt_urls[0], MQTT_CONNECT, b"\x20")


async def _open_stomp(broker: Broker) -> None:
    await _send(broker.stomp_url, STOMP_CONNECT, b"CONNECTED")


async def _open_each(kind: Callable[[Broker], Awaitable[None]]) -> None:
    protocols: dict[str, object] = {"mqtt": MqttOptions(port=0), "stomp": StompOptions(port=0)}
    if kind is _open_tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(TLS_FOLDER / "cert.pem", TLS_FOLDER / "key.pem")
        protocols = {"ssl_context": context, "tls_port": 0}
    limits = ConnectionLimits(handshakes=1)
    async with Broker(port=0, open_timeout=NEVER, connection_limits=limits, **protocols) as broker:  # type: ignore[arg-type]
        async with asyncio.timeout(30):
            for _ in range(3):
                await kind(broker)


@pytest.mark.parametrize("kind", [_open_amqp, _open_tls, _open_mqtt, _open_stomp], ids=["amqp", "tls", "mqtt", "stomp"])
@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def test_who_is_through_makes_room(
    loop: Callable[[], asyncio.AbstractEventLoop], kind: Callable[[Broker], Awaitable[None]]
) -> None:
    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(_open_each(kind))
