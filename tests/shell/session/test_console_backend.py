"""The backend over a real broker: lost and refused connections."""

from __future__ import annotations

import threading

import pytest
from qmf_shell.session.console_backend import BackendCallbacks, ConsoleBackend

from qmf.broker import EmbeddedBroker
from qmf.errors import ConnectError, DisconnectedError

pytestmark = pytest.mark.slow


def test_a_lost_connection_is_reported() -> None:
    lost = threading.Event()
    callbacks = BackendCallbacks(on_change=lost.set)
    with (
        EmbeddedBroker() as broker,
        ConsoleBackend(broker.url, timeout=0.2, callbacks=callbacks, objects=False) as live,
    ):
        before = live.status
        lost.clear()
        broker.close()
        assert lost.wait(10)
        after = live.status
        assert (before.connected, after.connected) == (True, False)
        assert after.reason
        with pytest.raises(DisconnectedError):
            live.objects([("qmf.host", "memory")])


def test_a_refused_connection() -> None:
    with EmbeddedBroker() as broker:
        url = broker.url
    with (
        pytest.raises(ConnectError, match="refused"),
        ConsoleBackend(url, timeout=5, callbacks=BackendCallbacks(), objects=False),
    ):
        pass
