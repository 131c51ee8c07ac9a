"""Brokers as processes with data folders, which can be killed and begin again at the same port."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from support.processes import Process, command

from qmf.client import BrokerAgent
from qmf.messaging import Connection


class Life:
    """A broker with a data folder.

    Attributes:
        url: where it is, once it was started.
    """

    def __init__(self, folder: Path, *options: str) -> None:
        self.url = ""
        self._words = (*options, "--data-dir", str(folder))
        self._port = 0
        self._process: Process | None = None

    def start(self) -> Life:
        """Begin a life."""
        self._process = Process(command("qmf-broker"), "--port", str(self._port), *self._words)
        self.url = self._process.wait_for("Listening on").split()[-1]
        self._port = int(self.url.rpartition(":")[2])
        return self

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it."""
        process, self._process = self._process, None
        if process is not None:
            process.end(number)

    def kill(self) -> None:
        """End it at once."""
        self.end(signal.SIGKILL)

    def create(self, kind: str, name: str, login: Mapping[str, Any] | None = None, **properties: Any) -> None:
        """Create something durable."""
        with Connection.establish(self.url, **(login or {})) as connection:
            BrokerAgent(connection).create(kind, name, {**properties, "durable": True}, True)

    def __enter__(self) -> Life:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.end()
