"""Brokers whose process is killed: at-least-once loses no durable message.

Artemis is started by the test itself, with a journal, where QMF_TEST_ARTEMIS names one. For qpidd,
QMF_TEST_QPIDD_COMMAND is the command that runs one with a message store in the foreground; ``{port}`` and ``{folder}``
stand for its port and a folder for its data.
"""

from __future__ import annotations

import os
import random
import shlex
import signal
import subprocess
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from support.flow import Flow

from scripts.brokers import create_artemis, free_port, wait_for_amqp
from scripts.fetching import Unavailable

pytestmark = [pytest.mark.slow, pytest.mark.soak]

MESSAGES, KILLS = int(os.environ.get("QMF_SOAK_MESSAGES", "100000")), int(os.environ.get("QMF_SOAK_KILLS", "100"))


class Broker:
    """A broker as a process of its own, in a process group of its own."""

    def __init__(self, command: list[str], port: int, folder: Path) -> None:
        self.url = f"amqp://127.0.0.1:{port}"
        self.kills = 0
        self._command = command
        self._port = port
        self._log = folder / "broker.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until clients can connect."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        wait_for_amqp(self._port, self._check)

    def kill(self) -> None:
        """End the process without giving it time for anything."""
        process, self._process = self._process, None
        if process is not None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(20)
            self.kills += 1

    def _check(self) -> None:
        assert self._process is not None
        if self._process.poll() is not None:
            raise Unavailable(f"the broker ended: {self._log.read_text(errors='replace')[-1000:]}")


def command_of(name: str, folder: Path, port: int) -> list[str]:
    if name == "artemis" and os.environ.get("QMF_TEST_ARTEMIS"):
        try:
            return create_artemis(folder, port)
        except Unavailable as error:
            pytest.skip(f"no artemis: {error}")
    if name == "qpidd" and (command := os.environ.get("QMF_TEST_QPIDD_COMMAND")):
        return shlex.split(command.format(port=port, folder=folder))
    pytest.skip(f"the environment names no {name} that can be killed")


@pytest.mark.parametrize("name", ["artemis", "qpidd"])
def test_at_least_once_loses_nothing_when_brokers_are_killed(name: str, tmp_path: Path) -> None:
    port = free_port()
    broker = Broker(command_of(name, tmp_path, port), port, tmp_path)
    chance = random.Random(5)

    restarts: list[Future[None]] = []

    def restart() -> None:
        time.sleep(chance.uniform(0, 0.1))
        broker.kill()
        broker.start()

    broker.start()
    try:
        with ThreadPoolExecutor(1) as pool:
            flow = Flow(
                broker.url,
                "killed; {create: always, node: {type: queue, durable: True}}",
                MESSAGES,
                interruptions=KILLS,
                interrupt=lambda: restarts.append(pool.submit(restart)),  # messages flow meanwhile
                ready=lambda: all(item.done() for item in restarts),
                timeout=300,
            )
            flow.run()
        for item in restarts:
            item.result()
        kills = broker.kills
    finally:
        broker.kill()
    duplicates = flow.seen.total() - len(flow.seen)
    print(f"{name}: {MESSAGES} messages, {kills} kills, {duplicates} duplicates")
    assert flow.seen.keys() == set(range(MESSAGES))
    assert kills == KILLS
