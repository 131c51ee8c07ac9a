"""Consumers as processes: signals, and kills at any moment."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.waiting import wait_until

from qmf.broker import EmbeddedBroker
from qmf.messaging import Connection, Empty

PROGRAM = """
import sys, time
from pathlib import Path
from qmf.messaging import Connection, Consumer, Retry
url, log, hold = sys.argv[1:]

def handle(message):
    if message.content % 7 == 3 and not message.properties.get("qmf.attempts"):
        raise ValueError("the first time")
    if hold == "hold":
        Path(log).write_text("begun")
        while not Path(log + ".go").exists():
            time.sleep(0.01)
    with open(log, "a") as file:
        file.write(f"{message.content}\\n")

with Connection.establish(url, timeout=20) as connection:
    work = "work; {node: {type: queue}}"
    Consumer(connection, work, handle, concurrency=4, retry=Retry(delay=0.01), dead_letters="dead").run()
print("ended")
"""


@pytest.fixture
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(queues=["work", "dead"]) as broker:
        yield broker


def start(broker: EmbeddedBroker, log: Path, hold: str = "") -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, broker.url, str(log), hold],
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        text=True,
    )


def send(broker: EmbeddedBroker, count: int) -> None:
    with Connection.establish(broker.url, timeout=10) as connection:
        sender = connection.session().sender("work")
        for number in range(count):
            sender.send(number, sync=False)


def left(broker: EmbeddedBroker, name: str) -> list[object]:
    with Connection.establish(broker.url, timeout=10) as connection:
        receiver = connection.session().receiver(f"{name}; {{mode: browse}}", capacity=100)
        found: list[object] = []
        try:
            while True:
                found.append(receiver.fetch(timeout=0).content)
        except Empty:
            return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_lets_the_handlers_end(broker: EmbeddedBroker, tmp_path: Path, number: signal.Signals) -> None:
    log = tmp_path / "log"
    send(broker, 1)
    process = start(broker, log, "hold")
    try:
        wait_until(log.exists, timeout=30)
        process.send_signal(number)
        assert process.poll() is None
        (tmp_path / "log.go").touch()
        output, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (output, process.returncode) == ("ended\n", 0)
    assert log.read_text() == "begun0\n"
    assert left(broker, "work") == []


@pytest.mark.slow
def test_a_second_signal_returns_the_messages(broker: EmbeddedBroker, tmp_path: Path) -> None:
    log = tmp_path / "log"
    send(broker, 1)
    process = start(broker, log, "hold")
    try:
        wait_until(log.exists, timeout=30)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (output, process.returncode) == ("ended\n", 0)
    assert left(broker, "work") == [0]


@pytest.mark.slow
def test_nothing_is_lost_when_it_is_killed_again_and_again(broker: EmbeddedBroker, tmp_path: Path) -> None:
    log, count, kills = tmp_path / "log", 400, 5
    log.touch()
    send(broker, count)

    def handled() -> set[int]:
        return {int(line) for line in log.read_text().splitlines()}

    def kill_after(share: int) -> None:
        process = start(broker, log)
        try:
            wait_until(lambda: len(handled()) >= share or process.poll() is not None, timeout=60)
        finally:
            process.kill()
        process.communicate(timeout=30)

    for kill in range(1, kills + 1):
        kill_after(kill * count // (kills + 2))
    process = start(broker, log)
    try:
        wait_until(lambda: handled() == set(range(count)), timeout=60)
        process.terminate()
        process.communicate(timeout=30)
    finally:
        process.kill()
    assert process.returncode == 0
    assert (left(broker, "work"), left(broker, "dead")) == ([], [])
