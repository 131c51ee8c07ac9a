"""Start of the embedded broker with a million stored messages, beside qpidd with its linearstore.

The messages lie in 10 durable queues. The time runs from the start of the process until a client is connected and has
read a message of the last queue.

    python bench/broker_start.py [--messages N] [--rounds N] [--processor] [--folder DIR] [--json FILE]

The qpidd is that of QMF_BENCH_QPIDD_COMMAND: see broker_peers.py.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from pathlib import Path

from broker_load import Load, clients, send_command
from broker_peers import MeasuredBroker, beside, brokers, read_options
from figures import Figure, note, report

from qmf import messaging
from qmf.client import BrokerAgent

QUEUES = [f"stored-{number}" for number in range(10)]
SIZE = 100
#: Messages of a transaction while the store is filled.
BATCH = 1_000
#: Senders at the same time.
SENDERS = 2
TIMEOUT = 120


def fill(broker: MeasuredBroker, messages: int) -> None:
    """Store messages, as many in each queue."""
    node = "type: queue, durable: True, x-declare: {arguments: {qpid.max_size: 2000000000}}"
    with messaging.Connection.establish(broker.url) as connection:
        for name in QUEUES:
            connection.session().sender(f"{name}; {{create: always, node: {{{node}}}}}").close()
    each = messages // len(QUEUES)
    for first in range(0, len(QUEUES), SENDERS):
        names = QUEUES[first : first + SENDERS]
        load = Load([send_command(broker.url, name, each, size=SIZE, durable=True, tx=BATCH) for name in names])
        try:
            load.rates()
        finally:
            load.end()


def first_message(broker: MeasuredBroker) -> None:
    """Read a message, and leave it where it is."""
    with messaging.Connection.establish(broker.url) as connection:
        receiver = connection.session().receiver(f"{QUEUES[-1]}; {{mode: browse}}", capacity=1)
        content = receiver.fetch(TIMEOUT).content
        if len(content) != SIZE:
            raise RuntimeError(f"{broker.name} has a message with {content!r}")


def depth(broker: MeasuredBroker) -> int:
    """Messages of all queues."""
    with messaging.Connection.establish(broker.url) as connection:
        agent = BrokerAgent(connection, TIMEOUT)
        found = [agent.getQueue(name) for name in QUEUES]
        return sum(int(queue.getAttributes()["msgDepth"]) for queue in found if queue is not None)


def main() -> None:
    """Measure and report."""
    options = read_options("Start of the embedded broker with stored messages.", rounds=2)
    options.add_argument("--messages", type=int, default=1_000_000, metavar="N", help="default: %(default)s")
    options.add_argument("--folder", type=Path, help="where the stores lie (default: the folder for temporary files)")
    arguments = options.parse_args()
    note(f"clients: {clients()}")
    starts: dict[str, list[float]] = {}
    memory: dict[str, list[float]] = {}
    filled: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory(dir=arguments.folder) as name:
        for start in brokers(Path(name)):
            with start() as broker:
                begin = time.perf_counter()
                fill(broker, arguments.messages)
                filled[broker.name] = [arguments.messages / (time.perf_counter() - begin)]
                note(f"{broker.name}: filled with {filled[broker.name][0]:,.0f} messages a second")
            for _ in range(arguments.rounds):
                begin = time.perf_counter()
                with contextlib.ExitStack() as stack:
                    broker = stack.enter_context(start())
                    first_message(broker)
                    clock, used = time.perf_counter() - begin, broker.cpu()
                    if (found := depth(broker)) != arguments.messages:
                        raise RuntimeError(f"{broker.name} has {found:,} messages after its start")
                    starts.setdefault(broker.name, []).append(used if arguments.processor else clock)
                    memory.setdefault(broker.name, []).append(broker.memory() / 1e6)
                note(f"{broker.name}: started in {clock:.1f} s, {used:.1f} s of the processor")
    title = f"{arguments.messages:,} stored messages"
    figures: list[Figure] = [
        beside(f"start with {title}", "s of the processor" if arguments.processor else "s", starts),
        beside(f"memory with {title}", "MB", memory),
        beside(f"store {title}, by the clock", "/s", filled),
    ]
    report(figures, arguments.json)


if __name__ == "__main__":
    main()
