"""A thread that sends the notifications of one integration, one after the other."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from qmf.errors import QmfError
from qmf.pipeline.notifying.notification import AlertNotification, NotificationOutcome
from qmf.pipeline.notifying.receivers.base import NotificationSender, RefusedError

_LOGGER = logging.getLogger(__name__)

#: Called with what came of a notification, and the error or remark.
Finish = Callable[[AlertNotification, NotificationOutcome, str], None]


class Worker:
    """Starts its thread when it is made, until `close`. The dispatcher bounds what waits here."""

    def __init__(self, name: str, sender: NotificationSender, finish: Finish) -> None:
        self._sender = sender
        self._finish = finish
        self._queue: queue.SimpleQueue[AlertNotification | None] = queue.SimpleQueue()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"notify {name}", daemon=True)
        self._thread.start()

    def put(self, notification: AlertNotification) -> None:
        """Send it after those before."""
        self._queue.put(notification)

    def close(self) -> None:
        """Drop what is not being sent, and wait for what is; nobody is told what came of it."""
        self._closing.set()
        self._queue.put(None)
        self._thread.join()
        self._sender.close()

    def _run(self) -> None:
        while (notification := self._queue.get()) is not None and not self._closing.is_set():
            outcome, text = self._send(notification)
            self._finish(notification, outcome, text)

    def _send(self, notification: AlertNotification) -> tuple[NotificationOutcome, str]:
        try:
            return NotificationOutcome.DELIVERED, self._sender.send(notification) or ""
        except RefusedError as error:
            return NotificationOutcome.REFUSED, str(error)
        except QmfError as error:
            return NotificationOutcome.UNREACHABLE, str(error)
        except Exception as error:  # a bug must not end notifying for good
            _LOGGER.exception("a notification failed")
            return NotificationOutcome.UNREACHABLE, f"{type(error).__name__}: {error}"
