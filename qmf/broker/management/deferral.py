"""When objects of what clients have are made, besides the moment in which a console looks at them.

Ten thousand clients that connect within seconds have 180,000 objects. Making these takes longer than all the rest that
a broker does for the clients, and mostly nobody sees them before the clients are gone. So an object waits, as an entry
in a table, until a query, a call or a subscription looks at its class. Each interval, those are made that wait for

* the publication, where a console listens to those of their class, or follows objects at intervals;
* longer than an interval, so that what stays is there when somebody asks for it.

Some are made at once, the rest a few at a time, while the broker serves its clients.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Any

from qmf._background_tasks import BackgroundTasks
from qmf.broker.management.sampling import SampledObjects
from qmf.schema import ClassKey

#: Objects that are made in one turn of the loop; about 2 ms.
AT_ONCE = 25
#: Those that are made before a publication, so that it has them: about 20 ms.
BEFORE_PUBLICATION = 250
#: Seconds between two turns that make objects: clients come first.
PAUSE = 0.01


class ObjectDeferral:
    """Makes the objects of a broker that wait. Belongs to the loop's thread."""

    def __init__(
        self,
        deferred: Mapping[ClassKey, SampledObjects[Any, Any]],
        *,
        heard: Callable[[ClassKey], bool],
        followed: Callable[[], bool],
    ) -> None:
        """Make none yet.

        Args:
            deferred: objects of each class.
            heard: whether somebody listens to publications of a class.
            followed: whether somebody follows objects at intervals.
        """
        self._deferred = deferred
        self._by_name = {key.name: objects for key, objects in deferred.items()}
        self._heard = heard
        self._followed = followed
        #: When the last interval ended, ns since 1970.
        self._last = 0
        #: Until when those have to wait that are to be made now, by class.
        self._until: dict[ClassKey, int] = {}
        self._tasks = BackgroundTasks()
        self._making = False

    def on_interval(self) -> None:
        """The agent publishes next."""
        now = time.time_ns()
        followed = self._followed()
        self._until = {key: now if followed or self._heard(key) else self._last for key in self._deferred}
        self._last = now
        if self._make(BEFORE_PUBLICATION) == BEFORE_PUBLICATION and not self._making:
            self._making = True
            self._tasks.spawn(self._make_rest())

    def is_large(self, name: str) -> bool:
        """Whether many objects of a class wait, by its name in any case: to be made in several turns (`make_all`)."""
        found = self._by_name.get(name.lower())
        return found is not None and found.waiting > AT_ONCE

    async def make_all(self, name: str) -> None:
        """Make all objects of a class that wait now; lets others have their turns meanwhile."""
        objects, now = self._by_name[name.lower()], time.time_ns()
        while objects.make_some(AT_ONCE, now) == AT_ONCE:  # noqa: ASYNC110 - others have their turns
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Make no more."""
        await self._tasks.cancel()

    async def _make_rest(self) -> None:
        try:
            while self._make(AT_ONCE) == AT_ONCE:  # noqa: ASYNC110 - as above
                await asyncio.sleep(PAUSE)
        finally:
            self._making = False

    def _make(self, count: int) -> int:
        """Make some of those that are to be made now; gives how many."""
        number = 0
        for key, until in self._until.items():
            number += self._deferred[key].make_some(count - number, until)
        return number
