"""The brokers that bench/mqtt.py compares: the embedded one, and mosquitto and Artemis where they are."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from scripts.brokers import ARTEMIS_VERSION, CACHE, create_artemis, free_port

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


def program(command: list[str], name: str, port: int) -> Iterator[Running]:
    """A broker that was started, once it listens; it is ended with the iterator."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        for _ in range(1200):
            with contextlib.suppress(OSError):
                socket.create_connection(("127.0.0.1", port)).close()
                break
            time.sleep(0.05)
        else:
            raise RuntimeError(f"{name} does not listen")
        yield Running(name, port, psutil.Process(process.pid))
    finally:
        process.terminate()
        process.wait(60)


@contextlib.contextmanager
def embedded() -> Iterator[Running]:
    """The embedded broker."""
    port = free_port()
    command = [sys.executable, "-m", "qmf.broker", "--port", "0", "--mqtt-port", str(port), "--no-management"]
    yield from program(command, "qmf-broker", port)


@contextlib.contextmanager
def mosquitto(path: str) -> Iterator[Running]:
    """Mosquitto, which stores nothing."""
    port = free_port()
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "mosquitto.conf"
        config.write_text(MOSQUITTO.format(port=port))
        yield from program([path, "-c", str(config)], "mosquitto", port)


@contextlib.contextmanager
def artemis() -> Iterator[Running]:
    """Artemis, which stores nothing; its process becomes the one of Java."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="qmf-artemis-") as folder:
        yield from program(create_artemis(Path(folder), port, "--disable-persistence"), "Artemis", port)


def available() -> list[Callable[[], contextlib.AbstractContextManager[Running]]]:
    """What starts the brokers that are there."""
    found: list[Callable[[], contextlib.AbstractContextManager[Running]]] = [embedded]
    path = shutil.which("mosquitto", path="/usr/sbin:/usr/bin:/usr/local/sbin:/usr/local/bin")
    if path is not None:
        found.append(lambda: mosquitto(path))
    if (CACHE / f"apache-artemis-{ARTEMIS_VERSION}").exists():
        found.append(artemis)
    return found
