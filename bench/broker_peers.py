"""The brokers that the benchmarks of the embedded broker compare: ours and a qpidd, each in a process of its own.

QMF_BENCH_QPIDD          URL of a qpidd that runs; its process is found by its port
QMF_BENCH_QPIDD_COMMAND  command that starts a qpidd for a benchmark that needs one of its own, such as
                         "qpidd --no-module-dir --load-module amqp.so --load-module linearstore.so --auth no
                         --interface 127.0.0.1 --port {port}"; options are appended
"""

from __future__ import annotations

import argparse
import contextlib
import os
import shlex
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

import attrs
import psutil
from figures import Figure, parser
from processes import qpidd

from qmf import messaging
from qmf.messaging import MessagingError

OURS, QPIDD = "qmf-broker", "qpidd"
#: Seconds between publications of the agent inside our broker.
INTERVAL = 10
#: Seconds that a broker has to start.
WAIT_LIMIT = 300.0

_PROCESS = str(Path(__file__).resolve().parent / "broker_process.py")


@attrs.frozen
class MeasuredBroker:
    """A broker that runs.

    Attributes:
        name: of its kind.
        url: that clients connect to.
        process: of the broker.
    """

    name: str
    url: str
    process: psutil.Process

    def cpu(self) -> float:
        """Seconds of processor time that it used so far."""
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def memory(self) -> float:
        """Its resident memory, in bytes."""
        return float(self.process.memory_info().rss)


#: Starts a broker, which ends with the block.
Start = Callable[[], contextlib.AbstractContextManager[MeasuredBroker]]


def brokers(
    folder: Path | None = None, *options: str
) -> Sequence[Callable[[], contextlib.AbstractContextManager[MeasuredBroker]]]:
    """Starts each broker; ours first.

    Args:
        folder: where they shall store messages, each in a folder of its own; None for brokers without a store.
        options: of a qpidd that is started for this benchmark.
    """
    own = () if folder is None else ("--data-dir", str(folder / OURS))
    found: list[Start] = [lambda: own_broker(*own)]
    if folder is not None and _command():
        store = str(folder / QPIDD)
        found.append(lambda: _started("--data-dir", store, "--store-dir", store, *options))
    elif folder is None and options and _command():
        found.append(lambda: _started("--no-data-dir", *options))
    elif folder is None and qpidd():
        found.append(_running)
    return found


def _command() -> str:
    return os.environ.get("QMF_BENCH_QPIDD_COMMAND", "")


@contextlib.contextmanager
def own_broker(*options: str) -> Iterator[MeasuredBroker]:
    """Ours, with options of `broker_process.py`."""
    command = [sys.executable, _PROCESS, "--management", str(INTERVAL), *options]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        if not url:
            raise RuntimeError(f"our broker ended with {process.wait()}")
        yield MeasuredBroker(OURS, url, psutil.Process(process.pid))
    finally:
        process.stdin.close()
        process.wait(WAIT_LIMIT)
        process.stdout.close()


@contextlib.contextmanager
def _running() -> Iterator[MeasuredBroker]:
    """The qpidd that runs already."""
    url = qpidd() or ""
    port = urlsplit(url).port or 5672
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if any(one.status == psutil.CONN_LISTEN and one.laddr.port == port for one in process.net_connections()):
                yield MeasuredBroker(QPIDD, url, process)
                return
    raise RuntimeError(f"no process that may be looked at listens at {url}")


@contextlib.contextmanager
def _started(*options: str) -> Iterator[MeasuredBroker]:
    """A qpidd for this benchmark."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [*shlex.split(_command().format(port=port)), *options]
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            if not _listens(port, process):
                output.seek(0)
                raise RuntimeError(f"{shlex.join(command)} does not listen: {output.read().decode()[-500:]}")
            yield MeasuredBroker(QPIDD, f"amqp://127.0.0.1:{port}", psutil.Process(process.pid))
        finally:
            process.terminate()
            process.wait(WAIT_LIMIT)


def _listens(port: int, process: subprocess.Popen[bytes]) -> bool:
    """Wait until a process listens; False when it ends before."""
    deadline = time.monotonic() + WAIT_LIMIT
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port)).close()
            return True
        time.sleep(0.005)
    return False


@contextlib.contextmanager
def new_queue(url: str, name: str, *, durable: bool = False, arguments: str = "") -> Iterator[str]:
    """A queue, until the block ends; `arguments` as `x-declare` takes them."""
    node = f"type: queue, durable: {durable}, x-declare: {{arguments: {{{arguments}}}}}"
    with messaging.Connection.establish(url) as connection:
        sender = connection.session().sender(f"{name}; {{create: always, node: {{{node}}}}}")
        sender.close()
        try:
            yield name
        finally:
            with contextlib.suppress(MessagingError):
                connection.session().sender(f"{name}; {{delete: always}}").close()


def beside(
    title: str,
    unit: str,
    values: Mapping[str, Sequence[float]],
    *,
    at_least: float | None = None,
) -> Figure:
    """A figure of ours, beside that of qpidd where there is one: medians.

    Args:
        title: of the figure.
        unit: of all values.
        values: by broker.
        at_least: see `Figure`.
    """
    median = {name: statistics.median(each) for name, each in values.items()}
    if QPIDD not in median:
        return Figure(title, median[OURS], unit)
    return Figure(title, median[OURS], unit, QPIDD, median[QPIDD], at_least=at_least)


def read_options(description: str, *, rounds: int = 3) -> argparse.ArgumentParser:
    """The options of these benchmarks: `rounds`, `processor` and `json`."""
    options = parser(description)
    options.add_argument(
        "--rounds", type=int, default=rounds, metavar="N", help="rounds per figure (default: %(default)s)"
    )
    options.add_argument(
        "--processor",
        action="store_true",
        help="by the broker's processor time: for a machine with other work",
    )
    return options
