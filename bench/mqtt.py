"""Messages of MQTT a second through the embedded broker, beside mosquitto; and what idle connections cost.

One client publishes, another is subscribed. Both are the same for both brokers: they send packets that were encoded
before, with at most 300 messages under way, so that the broker is what is measured. The rates are those of the
broker's processor time, which others on the machine don't change much; `--clock` measures by the clock instead.

    python bench/mqtt.py [--messages N] [--size BYTES] [--connections N] [--rounds N] [--clock] [--json FILE]

mosquitto is found on the path, or in /usr/sbin; without it, the figures stand alone.
"""

from __future__ import annotations

import argparse
import contextlib
import resource
import selectors
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import psutil
from figures import Figure, note, report

from qmf.broker.protocols.mqtt.codec.packets import Connect, Publish, Subscribe, SubscriptionRequest
from qmf.broker.protocols.mqtt.codec.values import Version
from qmf.broker.protocols.mqtt.codec.writing import encode_packet

#: Wanted of mosquitto's rate with QoS 1.
WANTED = 0.5
#: Messages under way.
WINDOW = 300
#: Messages that are published together.
TOGETHER = 50
TOPIC = "bench/topic"
#: Neither limits what is under way, or waits.
MOSQUITTO = "listener {port} 127.0.0.1\nallow_anonymous true\nmax_inflight_messages 0\nmax_queued_messages 0\n"


@attrs.frozen
class Running:
    """A broker that runs.

    Attributes:
        name: of it.
        port: of MQTT.
        process: of it.
    """

    name: str
    port: int
    process: psutil.Process

    def cpu(self) -> float:
        """Seconds of processor time that it used so far."""
        times = self.process.cpu_times()
        return times.user + times.system

    def memory(self) -> float:
        """Its resident memory, in kB."""
        return self.process.memory_info().rss / 1e3


def free_port() -> int:
    """A port that nobody uses now."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


@contextlib.contextmanager
def started(name: str, command: list[str], port: int) -> Iterator[Running]:
    """A broker, until the end of the block."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            time.sleep(0.05)
        yield Running(name, port, psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait(20)


@contextlib.contextmanager
def embedded() -> Iterator[Running]:
    """The embedded broker."""
    port = free_port()
    command = [sys.executable, "-m", "qmf.broker", "--port", "0", "--mqtt-port", str(port), "--no-management"]
    with started("qmf-broker", command, port) as running:
        yield running


@contextlib.contextmanager
def mosquitto(program: str) -> Iterator[Running]:
    """Mosquitto, which stores nothing."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "mosquitto.conf"
        config.write_text(MOSQUITTO.format(port=port))
        with started("mosquitto", [program, "-c", str(config)], port) as running:
            yield running


def connected(port: int, client_id: str) -> socket.socket:
    """A client that is connected."""
    made = socket.create_connection(("127.0.0.1", port))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.sendall(encode_packet(Connect(Version.V3, client_id), Version.V3))
    assert made.recv(4) == b"\x20\x02\0\0"
    return made


class Flow:
    """A publisher and a subscriber, both in one loop."""

    def __init__(self, port: int, qos: int, size: int) -> None:
        self._qos = qos
        self._publisher, self._subscriber = connected(port, "publisher"), connected(port, "subscriber")
        request = Subscribe(1, (SubscriptionRequest(TOPIC, qos),))
        self._subscriber.sendall(encode_packet(request, Version.V3))
        assert self._subscriber.recv(5) == bytes((0x90, 3, 0, 1, qos))
        packet = encode_packet(Publish(TOPIC, b"x" * size, qos, packet_id=1), Version.V3)
        self._head = packet[: packet.index(b"x" * size) - (2 if qos else 0)]
        self._payload = b"x" * size
        self._length = len(packet)
        self._sent = self._acknowledged = self._received = 0
        self._of_publisher, self._of_subscriber = bytearray(), bytearray()

    def run(self, count: int) -> None:
        """Publish messages, and receive them."""
        self._sent = self._acknowledged = self._received = 0
        with selectors.DefaultSelector() as selector:
            selector.register(self._publisher, selectors.EVENT_READ)
            selector.register(self._subscriber, selectors.EVENT_READ)
            while self._received < count or (self._qos and self._acknowledged < count):
                under_way = self._sent - min(self._received, self._acknowledged if self._qos else self._received)
                if self._sent < count and under_way + TOGETHER <= WINDOW:
                    self._publish(min(TOGETHER, count - self._sent))
                    continue
                for key, _ in selector.select(30):
                    if key.fileobj is self._publisher:
                        self._on_answers(self._publisher.recv(65536))
                    else:
                        self._on_messages(self._subscriber.recv(262144))

    def close(self) -> None:
        """End both clients."""
        self._publisher.close()
        self._subscriber.close()

    def _publish(self, count: int) -> None:
        parts = []
        for number in range(self._sent, self._sent + count):
            parts.append(self._head)
            if self._qos:
                parts.append((number % 60_000 + 1).to_bytes(2))
            parts.append(self._payload)
        self._sent += count
        self._publisher.sendall(b"".join(parts))

    def _on_answers(self, data: bytes) -> None:
        if not data:
            raise RuntimeError("the broker closed the publisher's connection")
        buffer = self._of_publisher
        buffer += data
        whole = len(buffer) // 4
        if self._qos == 1:
            self._acknowledged += whole
        else:
            released = [
                b"\x62\x02" + buffer[place + 2 : place + 4] for place in range(0, 4 * whole, 4) if buffer[place] == 0x50
            ]
            self._acknowledged += whole - len(released)
            if released:
                self._publisher.sendall(b"".join(released))
        del buffer[: 4 * whole]

    def _on_messages(self, data: bytes) -> None:
        if not data:
            raise RuntimeError("the broker closed the subscriber's connection")
        buffer, place, answers = self._of_subscriber, 0, []
        buffer += data
        at_id, answer = len(self._head), b"\x40\x02" if self._qos == 1 else b"\x50\x02"
        while place < len(buffer):
            length = self._length if buffer[place] >> 4 == 3 else 4
            if place + length > len(buffer):
                break
            if length != 4:
                self._received += 1
                if self._qos:
                    answers.append(answer + buffer[place + at_id : place + at_id + 2])
            else:
                answers.append(b"\x70\x02" + buffer[place + 2 : place + 4])
            place += length
        del buffer[:place]
        if answers:
            self._subscriber.sendall(b"".join(answers))


def rate(broker: Running, qos: int, size: int, count: int, *, clock: bool) -> float:
    """Messages a second, of the broker's processor time or by the clock."""
    flow = Flow(broker.port, qos, size)
    flow.run(count // 10)
    began, used = time.perf_counter(), broker.cpu()
    flow.run(count)
    passed, used = time.perf_counter() - began, broker.cpu() - used
    flow.close()
    return count / (passed if clock else max(used, 0.01))


def idle_memory(broker: Running, count: int) -> float:
    """Memory of one idle connection, in kB."""
    connected(broker.port, "first").close()
    before = broker.memory()
    clients = [connected(broker.port, f"idle-{number}") for number in range(count)]
    grown = broker.memory() - before
    for client in clients:
        client.close()
    return grown / count


def beside(name: str, unit: str, found: dict[str, list[float]], **wanted: float) -> Figure:
    """A figure beside that of mosquitto, from the medians."""
    medians = {broker: statistics.median(values) for broker, values in found.items()}
    own, peer = medians["qmf-broker"], medians.get("mosquitto")
    return Figure(name, own, unit, "" if peer is None else "mosquitto", peer, **wanted)


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--messages", type=int, default=50_000, metavar="N", help="of each flow (%(default)s)")
    add("--size", type=int, default=100, metavar="BYTES", help="of a payload (%(default)s)")
    add("--connections", type=int, default=10_000, metavar="N", help="that are idle (%(default)s)")
    add("--rounds", type=int, default=3, metavar="N", help="of each flow, of which the median counts (%(default)s)")
    add("--clock", action="store_true", help="measure by the clock")
    add("--json", type=Path, metavar="FILE", help="write the figures to this file")
    arguments = parser.parse_args()
    starts: list[Callable[[], contextlib.AbstractContextManager[Running]]] = [embedded]
    program = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if program is not None:
        starts.append(lambda: mosquitto(program))
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    rates: dict[int, dict[str, list[float]]] = {0: {}, 1: {}, 2: {}}
    memory: dict[str, list[float]] = {}
    for _ in range(arguments.rounds):
        for start in starts:
            with start() as broker:
                for qos in rates:
                    found = rate(broker, qos, arguments.size, arguments.messages, clock=arguments.clock)
                    rates[qos].setdefault(broker.name, []).append(found)
                    note(f"{broker.name}: QoS {qos}: {found:,.0f} a second")
    for start in starts:
        with start() as broker:
            memory[broker.name] = [idle_memory(broker, min(arguments.connections, hard - 200))]
    unit = "messages/s" if arguments.clock else "messages/s of the processor"
    figures = [
        beside(f"QoS {qos}, {arguments.size} B", unit, found, **({"at_least": WANTED} if qos == 1 else {}))
        for qos, found in rates.items()
    ]
    figures.append(beside(f"memory of one of {arguments.connections:,} idle connections", "kB", memory))
    report(figures, arguments.json)


if __name__ == "__main__":
    main()
