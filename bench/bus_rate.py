"""Raw messages a second: our bus and proton's own reactor, through our broker and, where one is named, through a qpidd.

One process sends to a topic exchange and receives the same messages on a second connection, with a bounded number of
them on the way, so that nothing is dropped; the broker is another process. Sizes are those of a method call (300 B), an
event message (4 kB) and a part of a big answer (64 kB). "latency" has one message on the way. CPU is of the client per
message, and of the broker where it is ours. The four combinations take turns, each figure is the median of the rounds.

    python bench/bus_rate.py [--rounds N] [--json FILE]

QMF_BENCH_QPIDD=HOST:PORT adds a real qpidd.
"""

from __future__ import annotations

import asyncio
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import attrs
import psutil
from figures import Figure, parser, report
from proton import Described, Event, Message, symbol
from proton.handlers import MessagingHandler
from proton.reactor import Container, Filter

from qmf.bus import AmqpBus, Binding, ReceivedMessage
from qmf.codec import Message as OurMessage
from qmf.codec import Section, encode_message

EXCHANGE = "amq.topic"
KEY = "bench.rate"
#: Messages that a receiver may have undone, of both pairs.
PREFETCH = 200


@attrs.frozen
class Case:
    """What to send.

    Attributes:
        name: for the table.
        size: bytes of the body.
        count: messages of one round.
        window: messages on the way.
    """

    name: str
    size: int
    count: int
    window: int


CASES = (
    Case("300 B", 300, 20_000, 200),
    Case("4 kB", 4_096, 20_000, 200),
    Case("64 kB", 65_536, 2_000, 50),
    Case("300 B, latency", 300, 2_000, 1),
)


@attrs.frozen
class Figures:
    """What one round measured: seconds of the clock, of the client's processor and of the broker's."""

    wall: float
    client: float
    broker: float | None


class OurPair:
    """Sends and receives with `AmqpBus`."""

    def __init__(self, url: str, case: Case) -> None:
        self._url = url
        self._case = case
        self._got = 0
        self._room = asyncio.Event()
        self._done = asyncio.Event()

    async def run(self) -> None:
        """One round."""
        case = self._case
        out, into = AmqpBus(self._url), AmqpBus(self._url)
        await out.open()
        await into.open()
        await into.subscribe(Binding(EXCHANGE, KEY), self._received, prefetch=PREFETCH)
        data = encode_message(OurMessage(to=EXCHANGE, subject=KEY, section=Section.DATA, body=bytes(case.size)))
        for number in range(case.count):
            while number - self._got >= case.window:
                self._room.clear()
                await self._room.wait()
            await out.send(data)
        await self._done.wait()
        await out.close()
        await into.close()

    def _received(self, received: ReceivedMessage) -> None:
        received.settle()
        self._got += 1
        self._room.set()
        if self._got == self._case.count:
            self._done.set()


class _KeyFilter(Filter):
    def __init__(self) -> None:
        name = "apache.org:legacy-amqp-topic-binding:string"
        super().__init__({symbol("key"): Described(symbol(name), KEY)})


class ProtonPair(MessagingHandler):
    """Sends and receives with proton's reactor, as its examples do."""

    def __init__(self, url: str, case: Case) -> None:
        super().__init__(prefetch=PREFETCH)
        self._url = url
        self._case = case
        self._sent = self._got = 0
        self._message = Message(address=EXCHANGE, subject=KEY, body=bytes(case.size), inferred=True)

    def on_start(self, event: Event) -> None:
        """See proton."""
        self._out = event.container.connect(self._url)
        self._into = event.container.connect(self._url)
        event.container.create_receiver(self._into, EXCHANGE, options=_KeyFilter())

    def on_link_opened(self, event: Event) -> None:
        """See proton."""
        if event.link is not None and event.link.is_receiver:
            self._sender = event.container.create_sender(self._out, EXCHANGE)

    def on_sendable(self, event: Event) -> None:  # noqa: ARG002
        """See proton."""
        self._fill()

    def on_message(self, event: Event) -> None:  # noqa: ARG002
        """See proton."""
        self._got += 1
        if self._got == self._case.count:
            self._out.close()
            self._into.close()
        else:
            self._fill()

    def _fill(self) -> None:
        case = self._case
        while self._sender.credit and self._sent < case.count and self._sent - self._got < case.window:
            self._sender.send(self._message)
            self._sent += 1


def measure(pair: str, url: str, case: Case, broker: psutil.Process | None) -> Figures:
    """One round."""
    before = None if broker is None else _cpu(broker)
    wall, client = time.perf_counter(), time.process_time()
    if pair == "qmf":
        asyncio.run(_ours(url, case))
    else:
        Container(ProtonPair(url, case)).run()
    wall, client = time.perf_counter() - wall, time.process_time() - client
    return Figures(wall, client, None if broker is None or before is None else _cpu(broker) - before)


async def _ours(url: str, case: Case) -> None:
    await OurPair(url, case).run()


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


@contextmanager
def our_broker() -> Iterator[tuple[str, psutil.Process]]:
    """`qmf-broker` in a process of its own."""
    command = [sys.executable, "-P", "-m", "qmf.broker", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[-1], psutil.Process(process.pid)
        finally:
            process.terminate()


def main() -> None:
    """Measure and print."""
    options = parser("Raw message rates beside proton's own reactor.")
    options.add_argument("--rounds", type=int, default=3, metavar="N", help="rounds per figure (default: %(default)s)")
    arguments = options.parse_args()
    rows: list[Figure] = []
    with our_broker() as (url, process):
        brokers: list[tuple[str, str, psutil.Process | None]] = [("qmf-broker", url, process)]
        if qpidd := os.environ.get("QMF_BENCH_QPIDD"):
            brokers.append(("qpidd", qpidd if "://" in qpidd else f"amqp://{qpidd}", None))
        for case in CASES:
            for name, address, pid in brokers:
                rounds: dict[str, list[Figures]] = {"qmf": [], "proton": []}
                for _ in range(arguments.rounds):
                    for pair, figures in rounds.items():
                        figures.append(measure(pair, address, case, pid))
                rows += _figures(case, name, rounds)
    report(rows, arguments.json)


def _figures(case: Case, broker: str, rounds: dict[str, list[Figures]]) -> list[Figure]:
    rate = {pair: case.count / statistics.median(one.wall for one in figures) for pair, figures in rounds.items()}
    used = {
        pair: statistics.median(one.client for one in figures) / case.count * 1e6 for pair, figures in rounds.items()
    }
    where = f"{case.name}, {broker}"
    made = [
        Figure(f"messages of {where}", rate["qmf"], "messages/s", "proton's reactor", rate["proton"]),
        Figure(f"  processor time, {where}: both ends", used["qmf"], "µs/message", "proton's reactor", used["proton"]),
    ]
    ours = [one.broker for one in rounds["qmf"] if one.broker is not None]
    if ours:
        spent = statistics.median(ours) / case.count * 1e6
        made.append(Figure(f"  processor time, {where}: the broker", spent, "µs/message"))
    return made


if __name__ == "__main__":
    main()
