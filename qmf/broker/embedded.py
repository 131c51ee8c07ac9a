"""The broker in a background thread, for programs without an event loop."""

from __future__ import annotations

import socket
from collections.abc import Sequence
from typing import Any, Self

from qmf._closable import Closable
from qmf._service_thread import ServiceThread
from qmf.broker.nodes.counters import BrokerCounters
from qmf.broker.server import Broker
from qmf.errors import CallerError


class EmbeddedBroker(Closable):
    """A `Broker` on a loop of its own, in a daemon thread. Methods may be called from any thread."""

    def __init__(self, host: str = "127.0.0.1", port: int = 0, **options: Any) -> None:
        """Make a broker, which `start` starts.

        Args:
            host, port, options: as of `Broker`; by default any free port. With an empty host it does not listen, and
                clients come by `connect` only.
        """
        self._broker = Broker(host, port, **options)
        self._running: ServiceThread[Broker] | None = None

    @property
    def url(self) -> str:
        """URL that clients connect to; known once started."""
        return self._broker.url

    @property
    def port(self) -> int:
        """TCP port; with port 0 the actual one, once started."""
        return self._broker.port

    @property
    def mqtt_urls(self) -> Sequence[str]:
        """URLs of the ports of MQTT; see `Broker.mqtt_urls`."""
        return self._broker.mqtt_urls

    @property
    def stomp_url(self) -> str | None:
        """URL of the port for STOMP; see `Broker.stomp_url`."""
        return self._broker.stomp_url

    @property
    def ws_url(self) -> str | None:
        """URL of the port for WebSocket; see `Broker.ws_url`."""
        return self._broker.ws_url

    @property
    def counters(self) -> BrokerCounters:
        """Totals of the broker; read them, but don't write."""
        return self._broker.counters

    def start(self) -> None:
        """Listen; returns when clients can connect.

        Raises:
            ListenError: as `Broker.start`.
        """
        if self._running is None:
            self._running = ServiceThread("qmf-broker", lambda: self._broker, Broker.start)

    def connect(self) -> socket.socket:
        """A socket that is connected to the broker, without its port: one of a pair within this process.

        Raises:
            CallerError: the broker is not started.
        """
        if self._running is None:
            raise CallerError("the broker is not started")
        near, far = socket.socketpair()
        self._running.run(self._broker.serve(far))
        return near

    def close(self) -> None:
        """Close the broker and end its thread. A second call does nothing."""
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def __enter__(self) -> Self:
        self.start()
        return self
