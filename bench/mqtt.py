"""Messages of MQTT a second through the embedded broker, beside mosquitto and Artemis; and what idle connections cost.

One client publishes, others are subscribed. They are the same for all brokers: they send packets that were encoded
before, with a bounded number of messages under way, so that the broker is what is measured. The rates are those of the
broker's processor time, which others on the machine don't change much; `--clock` measures by the clock instead.

    python bench/mqtt.py [--messages N] [--sizes BYTES...] [--fan-out N] [--connections N] [--rounds N] [--clock]
                         [--json FILE]

mosquitto is found on the path, or in /usr/sbin, Artemis where `make contract` has put it; those that are missing are
left out.
"""

from __future__ import annotations

import argparse
import resource
import selectors
import socket
import statistics
import time
from pathlib import Path

from figures import Figure, note, report
from mqtt_brokers import Running, available

from qmf.broker.protocols.mqtt.codec.packets import Connect, Publish, Subscribe, SubscriptionRequest
from qmf.broker.protocols.mqtt.codec.values import Version
from qmf.broker.protocols.mqtt.codec.writing import encode_packet

#: Wanted of mosquitto's rate with QoS 1, and of Artemis' memory.
WANTED, OF_MEMORY = 0.5, 1.0
#: Messages under way, and bytes of them at most.
WINDOW, WINDOW_BYTES = 300, 1_000_000
#: Messages that are published together at most.
TOGETHER = 50
#: Messages under way to all subscribers of a fan-out.
FAN_WINDOW = 20
TOPIC = "bench/topic"


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
        self._window = min(WINDOW, max(2, WINDOW_BYTES // len(packet)))
        self._together = min(TOGETHER, self._window // 2)
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
                if self._sent < count and under_way + self._together <= self._window:
                    self._publish(min(self._together, count - self._sent))
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


def fan_out(broker: Running, subscribers: int, count: int, *, clock: bool) -> float:
    """Deliveries a second with QoS 0, of messages of 100 B that go to all subscribers."""
    publisher = connected(broker.port, "publisher")
    receivers = []
    for number in range(subscribers):
        receivers.append(connected(broker.port, f"receiver-{number}"))
        receivers[-1].sendall(encode_packet(Subscribe(1, (SubscriptionRequest(TOPIC),)), Version.V3))
        assert receivers[-1].recv(5) == bytes((0x90, 3, 0, 1, 0))
    packet = encode_packet(Publish(TOPIC, b"x" * 100), Version.V3)
    with selectors.DefaultSelector() as selector:
        for receiver in receivers:
            selector.register(receiver, selectors.EVENT_READ)

        def publish(messages: int) -> None:
            publisher.sendall(packet * messages)
            left = messages * subscribers * len(packet)
            while left:
                for key, _ in selector.select(30):
                    assert isinstance(key.fileobj, socket.socket)
                    left -= len(key.fileobj.recv(65536))

        publish(FAN_WINDOW)
        began, used = time.perf_counter(), broker.cpu()
        for _ in range(max(1, count // FAN_WINDOW)):
            publish(FAN_WINDOW)
        passed, used = time.perf_counter() - began, broker.cpu() - used
    for client in [publisher, *receivers]:
        client.close()
    return max(1, count // FAN_WINDOW) * FAN_WINDOW * subscribers / (passed if clock else max(used, 0.01))


def idle_memory(broker: Running, count: int) -> tuple[float, float]:
    """Memory of one idle connection, in kB, and of the broker with all of them, in MB."""
    connected(broker.port, "first").close()
    before = broker.memory()
    clients = [connected(broker.port, f"idle-{number}") for number in range(count)]
    after = broker.memory()
    for client in clients:
        client.close()
    return (after - before) / count, after / 1e3


def beside(
    name: str,
    unit: str,
    found: dict[str, list[float]],
    peer: str,
    *,
    at_least: float | None = None,
    at_most: float | None = None,
) -> Figure:
    """A figure beside that of another broker, from the medians."""
    medians = {broker: statistics.median(values) for broker, values in found.items()}
    other = medians.get(peer)
    return Figure(
        name, medians["qmf-broker"], unit, "" if other is None else peer, other, at_least=at_least, at_most=at_most
    )


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """All results, by what was measured and the broker."""
    found: dict[str, dict[str, list[float]]] = {}

    def keep(what: str, broker: Running, value: float) -> None:
        found.setdefault(what, {}).setdefault(broker.name, []).append(value)
        note(f"{broker.name}: {what}: {value:,.1f}")

    for _ in range(arguments.rounds):
        for start in available():
            with start() as broker:
                for size in arguments.sizes:
                    for qos in range(3):
                        taken = rate(broker, qos, size, arguments.messages, clock=arguments.clock)
                        keep(f"QoS {qos}, {size:,} B", broker, taken)
                taken = fan_out(broker, arguments.fan_out, arguments.messages // 200, clock=arguments.clock)
                keep(f"deliveries to {arguments.fan_out:,} subscribers", broker, taken)
    for start in available():
        with start() as broker:
            each, whole = idle_memory(broker, arguments.connections)
            keep(f"memory of one of {arguments.connections:,} idle connections", broker, each)
            keep(f"memory with {arguments.connections:,} idle connections", broker, whole)
    return found


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--messages", type=int, default=50_000, metavar="N", help="of each flow (%(default)s)")
    add("--sizes", type=int, nargs="+", default=[100, 10_000], metavar="BYTES", help="of payloads (%(default)s)")
    add("--fan-out", type=int, default=1_000, metavar="N", help="subscribers of one topic (%(default)s)")
    add("--connections", type=int, default=10_000, metavar="N", help="that are idle (%(default)s)")
    add("--rounds", type=int, default=3, metavar="N", help="of each flow, of which the median counts (%(default)s)")
    add("--clock", action="store_true", help="measure by the clock")
    add("--json", type=Path, metavar="FILE", help="write the figures to this file")
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    arguments.connections = min(arguments.connections, hard - 200)
    unit = "a second" if arguments.clock else "a second of the processor"
    figures: list[Figure] = []
    for what, values in measure(arguments).items():
        memory = what.startswith("memory")
        kind = ("kB" if "one of" in what else "MB") if memory else unit
        figures.append(beside(what, kind, values, "mosquitto", at_least=WANTED if what.startswith("QoS 1") else None))
        if "Artemis" in values:
            figures.append(beside(what, kind, values, "Artemis", at_most=OF_MEMORY if memory else None))
    report(figures, arguments.json)


if __name__ == "__main__":
    main()
