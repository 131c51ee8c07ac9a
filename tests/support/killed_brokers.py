"""Brokers of others as processes that a test kills, and starts again."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from scripts.brokers import create_artemis, free_port, wait_for_amqp
from scripts.fetching import Unavailable


class KilledBroker:
    """A broker as a process of its own, in a process group of its own, with a journal or a store.

    Attributes:
        url: where it is, in each of its lives.
        kills: how often it was killed.
    """

    def __init__(self, name: str, folder: Path) -> None:
        """Make one that does not run yet; the test is skipped if there is none.

        Args:
            name: artemis, if QMF_TEST_ARTEMIS names one; or qpidd, if QMF_TEST_QPIDD_COMMAND runs one with a store in
                the foreground: ``{port}`` and ``{folder}`` stand for its port and a folder for its data.
            folder: for its files.
        """
        self._port = free_port()
        self.url = f"amqp://127.0.0.1:{self._port}"
        self.kills = 0
        self._command = _command_of(name, folder, self._port)
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


def _command_of(name: str, folder: Path, port: int) -> list[str]:
    if name == "artemis" and os.environ.get("QMF_TEST_ARTEMIS"):
        try:
            return create_artemis(folder, port)
        except Unavailable as error:
            pytest.skip(f"no artemis: {error}")
    if name == "qpidd" and (command := os.environ.get("QMF_TEST_QPIDD_COMMAND")):
        return shlex.split(command.format(port=port, folder=folder))
    pytest.skip(f"the environment names no {name} that can be killed")
