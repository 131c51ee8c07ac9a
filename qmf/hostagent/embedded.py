"""`EmbeddedHostAgent`: a host agent in a thread of its own, for programs without an event loop."""

from __future__ import annotations

from typing import Self

from qmf._closable import Closable
from qmf._service_thread import ServiceThread
from qmf.errors import CallerError
from qmf.hostagent.agent import HostAgent
from qmf.hostagent.settings import DEFAULT_INTERVAL, Settings


class EmbeddedHostAgent(Closable):
    """A host agent in a background thread, from `start` to `close`. Any thread may call; one at a time.

    Args:
        url: the broker's URL.
        interval: seconds from sample to sample.
        settings: all settings; `interval` is then ignored.

    Raises:
        SettingError: the interval is out of bounds.
    """

    def __init__(self, url: str, interval: float = DEFAULT_INTERVAL, *, settings: Settings | None = None) -> None:
        self._url = url
        self._settings = settings or Settings(interval=interval)
        self._running: ServiceThread[HostAgent] | None = None

    def start(self) -> str:
        """Take the first sample and connect.

        Returns:
            the agent's name, ``vendor:product:instance``. Its objects can be queried now.

        Raises:
            ConnectError: no connection; names the URL and the reason. The thread has ended.
            CallerError: the URL or the instance name is invalid, and the thread has ended; or it is started already.
        """
        if self._running is not None:
            raise CallerError("the host agent is started already")
        self._running = ServiceThread(
            "qmf-host-agent", lambda: HostAgent(self._url, self._settings, wait=False), HostAgent.start
        )
        return self._running.service.name

    def close(self) -> None:
        """Leave the bus and end the thread. A second call does nothing."""
        running, self._running = self._running, None
        if running is not None:
            running.close()

    def __enter__(self) -> Self:
        self.start()
        return self
