"""Messages of STOMP a second through the embedded broker, beside Artemis; and what idle connections cost.

One client sends to a queue, another one is subscribed to it. They are the same for both brokers: they send frames that
were encoded before, with a bounded number of messages under way, so that the broker is what is measured. The rates are
those of the broker's processor time, which others on the machine don't change much; `--clock` measures by the clock
instead.

    python bench/stomp_messages.py [--messages N] [--sizes BYTES...] [--connections N] [--rounds N] [--clock]
                                   [--json FILE]

Artemis is found where `make contract` has put it; without it there are only our own figures.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import resource
import selectors
import socket
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from figures import Figure, note, report
from mqtt_brokers import Running, artemis, program

from scripts.brokers import ARTEMIS_VERSION, CACHE, free_port

#: Wanted of Artemis' memory.
OF_MEMORY = 1.0
#: Messages under way, and bytes of them at most.
WINDOW, WINDOW_BYTES = 300, 1_000_000
#: Messages that are sent together at most.
TOGETHER = 50
_ACK = re.compile(rb"\nack:([^\n]*)\n")


@contextlib.contextmanager
def embedded() -> Iterator[Running]:
    """The embedded broker."""
    port = free_port()
    command = [sys.executable, "-m", "qmf.broker", "--port", "0", "--stomp-port", str(port), "--no-management"]
    yield from program(command, "qmf-broker", port)


def available() -> list[Callable[[], contextlib.AbstractContextManager[Running]]]:
    """What starts the brokers that are there."""
    return [embedded, *([artemis] if (CACHE / f"apache-artemis-{ARTEMIS_VERSION}").exists() else [])]


def connected(port: int) -> socket.socket:
    """A client that is connected."""
    made = socket.create_connection(("127.0.0.1", port))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    made.sendall(b"CONNECT\naccept-version:1.2\nhost:bench\n\n\0")
    answer = b""
    while b"\0" not in answer:
        data = made.recv(4096)
        if not data:
            raise ConnectionError("the broker has closed the connection")
        answer += data
    assert answer.lstrip().startswith(b"CONNECTED"), answer
    return made


def ready(broker: Running) -> Running:
    """A broker, once it lets clients in: Artemis listens some time before."""
    for _ in range(600):
        with contextlib.suppress(ConnectionError):
            connected(broker.port).close()
            return broker
        time.sleep(0.1)
    raise RuntimeError(f"{broker.name} lets nobody in")


class Flow:
    """A sender and a receiver, both in one loop.

    With confirmation, each message has a receipt, and is acknowledged by itself.
    """

    def __init__(self, port: int, size: int, *, confirmed: bool) -> None:
        self._confirmed = confirmed
        self._sender, self._receiver = connected(port), connected(port)
        mode = "client-individual" if confirmed else "auto"
        # What a receiver has not acknowledged when it ends must not come to the next one.
        queue = f"bench-{mode}-{size}"
        self._receiver.sendall(f"SUBSCRIBE\nid:1\ndestination:{queue}\nack:{mode}\nreceipt:s\n\n\0".encode())
        assert b"RECEIPT" in self._receiver.recv(4096)
        receipt = "receipt:r\n" if confirmed else ""
        head = f"SEND\ndestination:{queue}\ncontent-length:{size}\n{receipt}\n"
        self._frame = head.encode() + b"x" * size + b"\0"
        self._window = min(WINDOW, max(2, WINDOW_BYTES // len(self._frame)))
        self._together = min(TOGETHER, self._window // 2)
        self._sent = self._receipts = self._received = 0
        self._rest = b""

    def run(self, count: int) -> None:
        """Send messages, and receive them."""
        self._sent = self._receipts = self._received = 0
        with selectors.DefaultSelector() as selector:
            selector.register(self._sender, selectors.EVENT_READ)
            selector.register(self._receiver, selectors.EVENT_READ)
            while self._received < count or (self._confirmed and self._receipts < count):
                done = min(self._received, self._receipts) if self._confirmed else self._received
                together = min(self._together, count - self._sent)
                if together and self._sent - done + together <= self._window:
                    self._sender.sendall(self._frame * together)
                    self._sent += together
                    continue
                for key, _ in selector.select(30):
                    if key.fileobj is self._sender:
                        self._receipts += _frames(self._sender.recv(65536))
                    else:
                        self._on_messages(self._receiver.recv(262144))

    def close(self) -> None:
        """End both clients."""
        self._sender.close()
        self._receiver.close()

    def _on_messages(self, data: bytes) -> None:
        self._received += _frames(data)
        if not self._confirmed:
            return
        *frames, self._rest = (self._rest + data).split(b"\0")
        answers = []
        for frame in frames:
            found = _ACK.search(frame)
            assert found is not None, frame[:300]
            answers.append(b"ACK\nid:" + found[1] + b"\n\n\0")
        if answers:
            self._receiver.sendall(b"".join(answers))


def _frames(data: bytes) -> int:
    """The ends of frames in what has come; bodies have no NUL here."""
    if not data:
        raise RuntimeError("the broker closed a connection")
    assert b"ERROR\n" not in data, data[:300]
    return data.count(b"\0")


def rate(broker: Running, size: int, count: int, *, confirmed: bool, clock: bool) -> float:
    """Messages a second, of the broker's processor time or by the clock."""
    flow = Flow(broker.port, size, confirmed=confirmed)
    flow.run(count // 10)
    began, used = time.perf_counter(), broker.cpu()
    flow.run(count)
    passed, used = time.perf_counter() - began, broker.cpu() - used
    flow.close()
    return count / (passed if clock else max(used, 0.01))


def idle_memory(broker: Running, count: int) -> tuple[float, float]:
    """Memory of one idle connection, in kB, and of the broker with all of them, in MB."""
    before = broker.memory()
    clients = [connected(broker.port) for _ in range(count)]
    after = broker.memory()
    for client in clients:
        client.close()
    return (after - before) / count, after / 1e3


def measure(arguments: argparse.Namespace) -> dict[str, dict[str, list[float]]]:
    """All results, by what was measured and the broker."""
    found: dict[str, dict[str, list[float]]] = {}

    def keep(what: str, broker: Running, value: float) -> None:
        found.setdefault(what, {}).setdefault(broker.name, []).append(value)
        note(f"{broker.name}: {what}: {value:,.1f}")

    for _ in range(arguments.rounds):
        for start in available():
            with start() as started:
                broker = ready(started)
                for size in arguments.sizes:
                    count = min(arguments.messages, max(1_000, arguments.messages * 1_000 // max(size, 1_000)))
                    for confirmed in (False, True):
                        kind = "receipts and acknowledgements" if confirmed else "neither"
                        taken = rate(broker, size, count, confirmed=confirmed, clock=arguments.clock)
                        keep(f"{kind}, {size:,} B", broker, taken)
    for start in available():
        with start() as started:
            broker = ready(started)
            each, whole = idle_memory(broker, arguments.connections)
            keep(f"memory of one of {arguments.connections:,} idle connections", broker, each)
            keep(f"memory with {arguments.connections:,} idle connections", broker, whole)
    return found


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    add = parser.add_argument
    add("--messages", type=int, default=50_000, metavar="N", help="of each flow, fewer if they are large (%(default)s)")
    add("--sizes", type=int, nargs="+", default=[100, 10_000], metavar="BYTES", help="of bodies (%(default)s)")
    add("--connections", type=int, default=10_000, metavar="N", help="that are idle (%(default)s)")
    add("--rounds", type=int, default=3, metavar="N", help="of each flow, of which the median counts (%(default)s)")
    add("--clock", action="store_true", help="measure by the clock")
    add("--json", type=Path, metavar="FILE", help="write the figures to this file")
    arguments = parser.parse_args()
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    arguments.connections = min(arguments.connections, hard - 200)
    unit = "a second" if arguments.clock else "a second of the processor"
    figures = []
    for what, values in measure(arguments).items():
        memory = what.startswith("memory")
        kind = ("kB" if "one of" in what else "MB") if memory else unit
        medians = {broker: statistics.median(each) for broker, each in values.items()}
        peer = "Artemis" if "Artemis" in medians else ""
        limit = OF_MEMORY if memory and peer else None
        figures.append(Figure(what, medians["qmf-broker"], kind, peer, medians.get("Artemis"), at_most=limit))
    report(figures, arguments.json)


if __name__ == "__main__":
    main()
