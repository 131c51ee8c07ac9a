"""Programs that send messages to a broker and receive them, each a process: what the broker's benchmarks load it with.

They are qpidd's C++ programs `qpid-send` and `qpid-receive` where QMF_BENCH_QPID_PROGRAMS names their folder, and else
this file, with the messaging API of this project:

    python bench/broker_load.py send URL ADDRESS MESSAGES [--size N] [--capacity N] [--durable] [--tx N]
    python bench/broker_load.py receive URL ADDRESS MESSAGES [--capacity N] --ready ADDRESS

Both print their rate, from the first message that they have sent, or received, to the last.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Sequence
from pathlib import Path

from broker_peers import MeasuredBroker, new_queue

from qmf import messaging
from qmf.messaging import UNLIMITED

#: Seconds that a load may take.
TIMEOUT = 600
#: Messages that a receiver acknowledges together.
BATCH = 100
#: Messages on the way to a receiver.
CAPACITY = 1_000


def programs() -> str | None:
    """The folder of the C++ programs."""
    return os.environ.get("QMF_BENCH_QPID_PROGRAMS")


def clients() -> str:
    """Whose programs are used."""
    return "qpid-send and qpid-receive" if programs() else "our clients"


def send_command(
    url: str, address: str, count: int, *, size: int, capacity: int = CAPACITY, durable: bool = False, tx: int = 0
) -> list[str]:
    """A process that sends messages."""
    folder = programs()
    if folder is None:
        options = ["--size", str(size), "--capacity", str(capacity), *(["--durable"] if durable else [])]
        return [sys.executable, __file__, "send", url, address, str(count), *options, "--tx", str(tx)]
    options = ["--content-size", str(size), "--capacity", str(capacity), "--tx", str(tx)]
    return [*_cpp(folder, "qpid-send", url, address, count), *options, "--durable", "yes" if durable else "no"]


def receive_command(url: str, address: str, count: int, ready: str) -> list[str]:
    """A process that receives and acknowledges messages; it sends a message to `ready` when it begins."""
    folder = programs()
    if folder is None:
        return [sys.executable, __file__, "receive", url, address, str(count), "--ready", ready]
    options = ["--print-content", "no", "--timeout", str(TIMEOUT), "--ready-address", ready]
    more = ["--capacity", str(CAPACITY), "--ack-frequency", str(BATCH)]
    return [*_cpp(folder, "qpid-receive", url, address, count), *options, *more]


def _cpp(folder: str, name: str, url: str, address: str, count: int) -> list[str]:
    common = ["-b", url.removeprefix("amqp://"), "-a", address, "-m", str(count), "--report-total"]
    return [str(Path(folder) / name), *common, "--connection-options", "{protocol: amqp1.0}"]


class Load:
    """Processes that run side by side."""

    def __init__(self, commands: Sequence[Sequence[str]]) -> None:
        self._processes = [
            subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for command in commands
        ]

    def rates(self) -> list[float]:
        """The rate that each has printed; waits for their end.

        Raises:
            RuntimeError: one failed.
        """
        found = []
        for process in self._processes:
            output, errors = process.communicate(timeout=TIMEOUT)
            if process.returncode or errors:
                self.end()
                raise RuntimeError(f"{process.args!r} ended with {process.returncode}: {errors}")
            header, values = (line.split() for line in output.splitlines()[-2:])
            found.append(float(values[header.index("tp(m/s)")]))
        return found

    def end(self) -> None:
        """Kill those that run."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()
                process.communicate()


def flow(
    broker: MeasuredBroker,
    source: str,
    target: str,
    *,
    senders: int,
    receivers: int,
    sent: int,
    received: int,
    size: int,
) -> tuple[float, float]:
    """Messages flow through a broker.

    Args:
        broker: which.
        source, target: where receivers receive from, and senders send to.
        senders, receivers: their numbers.
        sent, received: messages of each of them.
        size: bytes of a message.

    Returns:
        seconds by the clock, from the first message that was received to the last, and the broker's processor time.
    """
    with new_queue(broker.url, f"ready-{uuid.uuid4().hex[:8]}") as ready:
        receiving = Load([receive_command(broker.url, source, received, ready)] * receivers)
        try:
            _await(broker.url, ready, receivers)
            before = broker.cpu()
            sending = Load([send_command(broker.url, target, sent, size=size)] * senders)
            try:
                rates = receiving.rates()
                sending.rates()
            finally:
                sending.end()
            return received / min(rates), broker.cpu() - before
        finally:
            receiving.end()


def _await(url: str, ready: str, count: int) -> None:
    """Wait for so many messages."""
    with messaging.Connection.establish(url) as connection:
        session = connection.session()
        receiver = session.receiver(ready, capacity=count)
        for _ in range(count):
            receiver.fetch(TIMEOUT)
            session.acknowledge()


# Our clients


def _send(options: argparse.Namespace) -> float:
    with messaging.Connection.establish(options.url) as connection:
        session = connection.session(transactional=bool(options.tx))
        sender = session.sender(options.address, capacity=options.capacity or UNLIMITED)
        message = messaging.Message(bytes(options.size), durable=options.durable)
        begin = time.perf_counter()
        for number in range(1, options.messages + 1):
            sender.send(message, sync=False, timeout=TIMEOUT)
            if options.tx and number % options.tx == 0:
                session.commit(TIMEOUT)
        if options.tx:
            session.commit(TIMEOUT)
        session.sync(TIMEOUT)
        return time.perf_counter() - begin


def _receive(options: argparse.Namespace) -> float:
    with messaging.Connection.establish(options.url) as connection:
        session = connection.session()
        receiver = session.receiver(options.address, capacity=min(options.messages, options.capacity or CAPACITY))
        session.sender(options.ready).send(messaging.Message(b""))
        receiver.fetch(TIMEOUT)
        begin = time.perf_counter()
        for number in range(1, options.messages):
            receiver.fetch(TIMEOUT)
            if number % BATCH == 0:
                session.acknowledge(sync=False)
        seconds = time.perf_counter() - begin
        session.acknowledge()
        return seconds


def main() -> None:
    """Send or receive."""
    options = argparse.ArgumentParser()
    options.add_argument("what", choices=("send", "receive"))
    options.add_argument("url")
    options.add_argument("address")
    options.add_argument("messages", type=int)
    options.add_argument("--size", type=int, default=0)
    options.add_argument("--capacity", type=int, default=0)
    options.add_argument("--durable", action="store_true")
    options.add_argument("--tx", type=int, default=0)
    options.add_argument("--ready")
    chosen = options.parse_args()
    seconds = (_send if chosen.what == "send" else _receive)(chosen)
    print(f"tp(m/s)\n{chosen.messages / max(seconds, 1e-6):.0f}")


if __name__ == "__main__":
    main()
