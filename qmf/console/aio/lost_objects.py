"""Objects of agents that are gone: nobody has reported their end, so their state is unknown.

They are kept with the time, until they are received again, or until their agent is found again without having been
restarted.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Iterable

import attrs

from qmf.console.aio.notifications import Removal
from qmf.console.aio.objects.remote_object import RemoteObject

#: Objects kept; of more, the first ones are forgotten.
MAX_LOST = 10_000


@attrs.frozen
class LostObject:
    """An object whose agent is gone.

    Attributes:
        object: as last received.
        time: when its agent was found to be gone, by our clock, in nanoseconds since 1970.
        reason: why the agent was removed; None if it restarted and has not reported the object since.
    """

    object: RemoteObject
    time: int
    reason: Removal | None


class LostObjects:
    """The lost objects, by agent and object name."""

    def __init__(self, most: int = MAX_LOST) -> None:
        self._max_lost = most
        # Ordered: a plain dict looks for its oldest key past all that were removed.
        self._lost: collections.OrderedDict[tuple[str, str], LostObject] = collections.OrderedDict()
        self._names: dict[str, dict[str, None]] = {}

    def __len__(self) -> int:
        return len(self._lost)

    def add(self, objects: Iterable[RemoteObject], reason: Removal | None) -> None:
        """Keep objects whose agent is gone now."""
        now = time.time_ns()
        for item in objects:
            name = item.object_id.object_name
            self._lost[item.agent, name] = LostObject(item, now, reason)
            self._names.setdefault(item.agent, {})[name] = None
        while len(self._lost) > self._max_lost:
            self._forget(*next(iter(self._lost)))

    def on_received(self, item: RemoteObject) -> None:
        """An object was received: it exists, or its end was reported."""
        if self._lost:
            self._forget(item.agent, item.object_id.object_name)

    def agent_found(self, agent: str, epoch: int) -> None:
        """An agent is present again: objects that outlive restarts, and those of the same run, are not lost."""
        for lost in self._of_agent(agent):
            if lost.object.object_id.agent_epoch in (0, epoch):
                self._forget(agent, lost.object.object_id.object_name)

    def select(self, name: str | None, package: str | None, agent: str | None) -> list[LostObject]:
        """Those of a class, in any case of letters, and of an agent; None selects all."""
        lost = self._lost.values() if agent is None else self._of_agent(agent)
        return [item for item in lost if _matches(item.object, name, package)]

    def _of_agent(self, agent: str) -> list[LostObject]:
        return [self._lost[agent, name] for name in self._names.get(agent, ())]

    def _forget(self, agent: str, name: str) -> None:
        if self._lost.pop((agent, name), None) is not None:
            names = self._names[agent]
            del names[name]
            if not names:
                del self._names[agent]


def _matches(item: RemoteObject, name: str | None, package: str | None) -> bool:
    key = item.class_key
    if name is not None and (key is None or key.name.lower() != name.lower()):
        return False
    return package is None or (key is not None and key.package.lower() == package.lower())
