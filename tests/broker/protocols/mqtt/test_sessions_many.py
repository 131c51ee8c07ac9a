"""Sessions of thousands of connected clients: a kill of the broker loses none of them, nor a message for them; and an
orderly end of the broker takes little time.
"""

from __future__ import annotations

import os
import resource
import signal
import socket
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import psutil
import pytest
from broker.protocols.mqtt.test_sessions_kills import start

from qmf.broker.protocols.mqtt.codec.packets import (
    ConnAck,
    Connect,
    Disconnect,
    MessageAnswer,
    Packet,
    Publish,
    SubAck,
    Subscribe,
    SubscriptionRequest,
)
from qmf.broker.protocols.mqtt.codec.properties import PacketProperty
from qmf.broker.protocols.mqtt.codec.reading import PacketReader
from qmf.broker.protocols.mqtt.codec.values import PacketType, ReasonCode, Version
from qmf.broker.protocols.mqtt.codec.writing import encode_packet

#: Clients of the test in `make soak`, and how many of them wait for an answer at the same time.
CLIENTS, TOGETHER = int(os.environ.get("QMF_SOAK_CLIENTS", "10000")), 200
#: Seconds that the broker has to end in good order.
END = 30.0
#: Seconds that an answer may take: it waits for the disk, behind those of others.
PATIENCE = 60.0


class BlockingClient:
    """A client that does one thing at a time."""

    def __init__(self, port: int, number: int, expiry: int = 10_000) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self._packets = PacketReader()
        properties = {PacketProperty.SESSION_EXPIRY: expiry}
        self.send(Connect(Version.V5, f"client-{number}", clean=False, properties=properties))

    def send(self, packet: Packet) -> None:
        self._socket.sendall(encode_packet(packet, Version.V5))

    def receive(self) -> Packet:
        while (packet := self._packets.next_packet()) is None:
            data = self._socket.recv(4096)
            assert data, "the broker has closed the connection"
            self._packets.feed(data)
        return packet

    def close(self) -> None:
        self._socket.close()


def connect_all(port: int, *, present: bool, expiry: int = 10_000) -> list[BlockingClient]:
    """All clients, whose sessions were there or not."""
    clients: list[BlockingClient] = []
    while len(clients) < CLIENTS:
        numbers = range(len(clients), min(len(clients) + TOGETHER, CLIENTS))
        some = [BlockingClient(port, number, expiry) for number in numbers]
        for client in some:
            packet = client.receive()
            assert isinstance(packet, ConnAck)
            assert (packet.code, packet.session_present) == (0, present)
        clients += some
    return clients


def parts(clients: Sequence[BlockingClient]) -> Iterator[Sequence[BlockingClient]]:
    for begin in range(0, len(clients), TOGETHER):
        yield clients[begin : begin + TOGETHER]


def subscribe_all(clients: Sequence[BlockingClient]) -> None:
    number = 0
    for some in parts(clients):
        for client in some:
            client.send(Subscribe(1, (SubscriptionRequest("all", 1), SubscriptionRequest(f"one/{number}", 2))))
            number += 1
        for client in some:
            assert client.receive() == SubAck(1, (1, 2))


def publish_all(publisher: BlockingClient) -> None:
    """A message for all, and one for each, of which the broker then has all."""
    publisher.send(Publish("all", b"x", 1, packet_id=TOGETHER + 1))
    assert publisher.receive() == MessageAnswer(PacketType.PUBACK, TOGETHER + 1)
    for begin in range(0, CLIENTS, TOGETHER):
        some = range(begin, min(begin + TOGETHER, CLIENTS))
        for number in some:
            publisher.send(Publish(f"one/{number}", str(number).encode(), 2, packet_id=number - begin + 1))
        for kind, answer in ((PacketType.PUBREC, PacketType.PUBREL), (PacketType.PUBCOMP, None)):
            for number in some:
                assert publisher.receive() == MessageAnswer(kind, number - begin + 1)
                if answer is not None:
                    publisher.send(MessageAnswer(answer, number - begin + 1))


def receive_all(clients: Sequence[BlockingClient]) -> None:
    """Each has the message for all, and the one for itself."""
    for number, client in enumerate(clients):
        found = []
        for _ in range(2):
            packet = client.receive()
            assert isinstance(packet, Publish)
            assert packet.packet_id is not None
            found.append((packet.topic, packet.payload))
            client.send(MessageAnswer(PacketType.PUBACK if packet.qos == 1 else PacketType.PUBREC, packet.packet_id))
        assert sorted(found) == [("all", b"x"), (f"one/{number}", str(number).encode())]


@pytest.mark.soak
@pytest.mark.slow
def test_a_kill_loses_no_session_of_connected_clients(tmp_path: Path) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    process, port = start(tmp_path)
    try:
        BlockingClient(port, CLIENTS).close()
        memory = psutil.Process(process.popen.pid).memory_info
        before = memory().rss
        clients = connect_all(port, present=False)
        connected = memory().rss
        subscribe_all(clients)
        subscribed = memory().rss
        publisher = BlockingClient(port, CLIENTS + 1)
        assert isinstance(publisher.receive(), ConnAck)
        publish_all(publisher)
    finally:
        process.end(signal.SIGKILL)
    for client in [*clients, publisher]:
        client.close()
    began = time.monotonic()
    process, port = start(tmp_path, patience=10)
    try:
        started = time.monotonic() - began
        used = psutil.Process(process.popen.pid).cpu_times().user
        again = connect_all(port, present=True)
        after = psutil.Process(process.popen.pid).memory_info().rss
        receive_all(again)
        print(
            f"{CLIENTS:,} clients: {(connected - before) / CLIENTS / 1e3:.1f} kB for each connected one, "
            f"{(subscribed - connected) / CLIENTS / 1e3:.1f} kB more for two subscriptions and their queue; "
            f"restart in {started:.1f} s with {used:.1f} s of the processor, {after / 1e6:.0f} MB when all were back",
            flush=True,
        )
    finally:
        process.end(signal.SIGKILL)
    for client in again:
        client.close()


@pytest.mark.soak
@pytest.mark.slow
@pytest.mark.parametrize("expiry", [0, 10_000], ids=["end with their connections", "are kept"])
def test_an_orderly_end_disconnects_all_clients_in_time(tmp_path: Path, expiry: int) -> None:
    """All clients are told, and the process is gone within the time that the system gives it at a shutdown."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    process, port = start(tmp_path)
    try:
        clients = connect_all(port, present=False, expiry=expiry)
        subscribe_all(clients)
        publisher = BlockingClient(port, CLIENTS + 1)
        assert isinstance(publisher.receive(), ConnAck)
        publish_all(publisher)
        used = psutil.Process(process.popen.pid).cpu_times()
        began = time.monotonic()
        process.popen.terminate()
        for client in [*clients, publisher]:
            while not isinstance(packet := client.receive(), Disconnect):
                pass
            assert packet.code == ReasonCode.SERVER_SHUTTING_DOWN
            client.close()
        told = time.monotonic() - began
        code = process.popen.wait(END)
        passed = time.monotonic() - began
    finally:
        process.end(signal.SIGKILL)
    assert code == 0
    print(
        f"{CLIENTS:,} clients: all told after {told:.1f} s, the process was gone after {passed:.1f} s; it had used "
        f"{used.user + used.system:.1f} s of the processor before",
        flush=True,
    )
    if expiry:
        process, port = start(tmp_path, patience=10)
        try:
            again = connect_all(port, present=True)
            receive_all(again)
        finally:
            process.end(signal.SIGKILL)
        for client in again:
            client.close()
