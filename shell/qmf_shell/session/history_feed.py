"""Follows the latest state in a lake, while a recorder writes to it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

from qmf.console.aio import ChangeKind
from qmf.views.objects import ObjectKey, ObjectView
from qmf_shell.session.backend import GoneObject, ObjectChanges, ObjectFeed


class HistoryFeed(ObjectFeed):
    """The changes from one reading of the objects to the next; see `ObjectFeed`."""

    def __init__(self, read: Callable[[], Sequence[ObjectView]], interval: float) -> None:
        """Make a feed, which has read nothing yet.

        Args:
            read: reads the objects as they are now.
            interval: seconds between readings.
        """
        self._read = read
        self._interval = interval
        self._due = 0.0
        self._known: dict[ObjectKey, ObjectView] = {}

    @property
    def complete(self) -> bool:
        """See `ObjectFeed.complete`."""
        return True

    @property
    def failures(self) -> Mapping[str, str]:
        return {}

    def take(self) -> ObjectChanges:
        if time.monotonic() < self._due:
            return ObjectChanges()
        self._due = time.monotonic() + self._interval
        now = {item.identity.key: item for item in self._read()}
        before, self._known = self._known, now
        changed = [item for key, item in now.items() if key not in before or dict(before[key].values) != item.values]
        gone = [GoneObject(key, ChangeKind.LEFT, time.time_ns()) for key in before if key not in now]
        return ObjectChanges(changed, gone)

    def close(self) -> None:
        self._known.clear()
