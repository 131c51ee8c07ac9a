"""What 10,000 idle connections cost the embedded broker: memory of each, and the time to open it, beside qpidd.

Each has a session and no links. Both brokers need as many open files, and the clients too: where the limit is lower,
fewer connections are made. The qpidd is started with a higher `--max-connections`.

    python bench/broker_connections.py [--connections N] [--rounds N] [--processor] [--json FILE]

The qpidd is that of QMF_BENCH_QPIDD_COMMAND: see broker_peers.py.
"""

from __future__ import annotations

import resource
import socket
import time

from broker_peers import MeasuredBroker, beside, brokers, read_options
from figures import Figure, note, report

from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import ConnectionOpened
from qmf.bus.engine.values import ConnectionSettings

#: Files that a broker or this program opens besides connections.
SPARE = 200
#: Seconds in which the memory is looked at, and the idle connections use the processor.
IDLE = 5.0
SETTINGS = ConnectionSettings("idle", hostname="127.0.0.1")


def raise_limit(wanted: int) -> int:
    """Allow as many open files as possible, here and in processes that are started; returns the connections to make."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = wanted + SPARE if hard == resource.RLIM_INFINITY else min(hard, wanted + SPARE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    return most - SPARE


def connect(port: int) -> socket.socket:
    """A connection that was opened, with a session."""
    made = socket.create_connection(("127.0.0.1", port))
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    engine = Engine(SETTINGS)
    opened = False
    while not opened:
        while data := engine.output():
            made.sendall(data)
        data = made.recv(65536)
        if not data:
            raise RuntimeError("the broker closed a connection")
        engine.feed(data)
        while (event := engine.next_event()) is not None:
            opened = opened or isinstance(event, ConnectionOpened)
    engine.free()
    return made


def measure(broker: MeasuredBroker, count: int) -> tuple[float, float, float, float]:
    """kB, ms by the clock and ms of the broker's processor for a connection; percent of a core while all are idle."""
    port = int(broker.url.rpartition(":")[2])
    connect(port).close()  # loads what a first connection needs
    before, used, began = broker.memory(), broker.cpu(), time.perf_counter()
    connections: list[socket.socket] = []
    try:
        for _ in range(count):
            connections.append(connect(port))
        clock, processor = time.perf_counter() - began, broker.cpu() - used
        began, used = time.perf_counter(), broker.cpu()
        time.sleep(IDLE)
        idle = (broker.cpu() - used) / (time.perf_counter() - began) * 100
        return (broker.memory() - before) / count / 1e3, clock / count * 1e3, processor / count * 1e3, idle
    finally:
        for connection in connections:
            connection.close()


def main() -> None:
    """Measure and report."""
    options = read_options("Idle connections of the embedded broker.", rounds=1)
    options.add_argument("--connections", type=int, default=10_000, metavar="N", help="default: %(default)s")
    arguments = options.parse_args()
    count = raise_limit(arguments.connections)
    memory: dict[str, list[float]] = {}
    opening: dict[str, list[float]] = {}
    idle: dict[str, list[float]] = {}
    for start in brokers(None, "--max-connections", "65000"):
        for _ in range(arguments.rounds):
            with start() as broker:
                size, clock, processor, share = measure(broker, count)
            note(f"{broker.name}: {size:.1f} kB, opened in {clock:.2f} ms, of the processor {processor:.2f} ms")
            memory.setdefault(broker.name, []).append(size)
            opening.setdefault(broker.name, []).append(processor if arguments.processor else clock)
            idle.setdefault(broker.name, []).append(share)
    unit = "ms of the processor" if arguments.processor else "ms"
    figures: list[Figure] = [
        beside(f"memory of one of {count:,} idle connections", "kB", memory),
        beside("open one", unit, opening),
        beside("processor while all are idle", "% of a core", idle),
    ]
    report(figures, arguments.json)


if __name__ == "__main__":
    main()
