"""The watchers of a bus."""

from __future__ import annotations

import logging
from collections.abc import Callable

from qmf.bus.base import BusEvent, BusWatcher

log = logging.getLogger("qmf.bus")


class BusWatchers:
    """Notifies watchers; an error of one does not keep the event from the others."""

    def __init__(self) -> None:
        self._watchers: dict[object, BusWatcher] = {}

    def add(self, watcher: BusWatcher) -> Callable[[], None]:
        """See `Bus.watch`."""
        key = object()
        self._watchers[key] = watcher

        def stop() -> None:
            self._watchers.pop(key, None)

        return stop

    def notify(self, event: BusEvent) -> None:
        """Call each watcher with the event."""
        for watcher in list(self._watchers.values()):
            try:
                watcher(event)
            except Exception:
                log.exception("a watcher of the bus failed with %s", event)
