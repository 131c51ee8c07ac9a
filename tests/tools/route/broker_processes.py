"""Brokers as processes for the examples of the manual: ours, and those that QMF_TEST_QPIDD_COMMAND starts."""

from __future__ import annotations

import os
import shlex
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from support.processes import command, running
from support.waiting import wait_until

from qmf.client import BrokerAgent
from qmf.errors import QmfError

OURS, QPIDD = "qmf-broker", "qpidd"
QPIDD_COMMAND = os.environ.get("QMF_TEST_QPIDD_COMMAND", "")
#: The kinds that there are.
KINDS = (OURS, *((QPIDD,) if QPIDD_COMMAND else ()))


def start_brokers(kinds: Sequence[str], folder: Path, stack: ExitStack) -> list[str]:
    """Start brokers, which end with the stack; host and port of each."""
    starting = [_start(kind, folder / str(number), stack) for number, kind in enumerate(kinds, 1)]
    return [place() for place in starting]


def _start(kind: str, folder: Path, stack: ExitStack) -> Callable[[], str]:
    """Start a broker; what waits until it can be asked, and returns where it is."""
    folder.mkdir()
    if kind == OURS:
        process = stack.enter_context(
            running(command("qmf-broker"), "--port", "0", "--data-dir", str(folder), "--mgmt-pub-interval", "3600")
        )
        return lambda: f"localhost:{process.wait_for('Listening on').rpartition(':')[2]}"
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    stack.enter_context(running(*shlex.split(QPIDD_COMMAND.format(port=port, folder=folder))))
    return lambda: _answering(f"localhost:{port}")


def _answering(place: str) -> str:
    def answers() -> bool:
        try:
            with BrokerAgent.connect(place, timeout=5) as agent:
                return agent.getBroker() is not None
        except QmfError:
            return False

    wait_until(answers, f"{place} answers")
    return place
