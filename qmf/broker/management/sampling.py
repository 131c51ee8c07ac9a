"""Statistics are sampled: read from the broker's counters when they are needed, so that messages are counted once only.

They are needed by the agent's publications and subscriptions, which wait in the agent's clock for their next time, and
by consoles' queries, which pass the agent's access hook. Both places sample first.

Objects of what clients have are made when they are needed, too (`deferral`): most clients come and go unseen.
"""

from __future__ import annotations

import itertools
import logging
import time
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

from qmf.agent import AccessRequest, Action, Agent, DuplicateObjectError, ManagedObject, SystemClock
from qmf.errors import CallerError

log = logging.getLogger("qmf.broker")


class SampledObject(ManagedObject):
    """Base of managed objects with sampled statistics; named after the generated class among the bases."""

    __slots__ = ()

    def sample(self) -> None:
        """Update the statistics. This one has none."""


K = TypeVar("K", bound=Hashable)
M = TypeVar("M", bound=SampledObject)

#: Makes an object, and gives it with its key, or None for the key of its index properties.
Make = Callable[[], tuple[M, str | None] | None]


class SampledObjects(Generic[K, M]):
    """The managed objects of one class, by what they represent; updated by a sampler."""

    def __init__(self, agent: Agent, sampler: StatisticsSampler, name: str) -> None:
        """Make those of a class, which has none yet; `name`: of the class in the schema."""
        sampler.classes[name.lower()] = self
        self._agent = agent
        self._objects: dict[K, M] = {}
        #: Those that wait to be made: since when, in ns since 1970, and what makes them; the oldest first.
        self._waiting: dict[K, tuple[int, Make[M]]] = {}
        #: What makes keys different that are the same otherwise.
        self._numbers = itertools.count(2)

    @property
    def waiting(self) -> int:
        """Number of the objects that wait to be made."""
        return len(self._waiting)

    def get(self, represented: K) -> M | None:
        """The object that represents it, or None; one that waits is made."""
        if (waiting := self._waiting.pop(represented, None)) is not None:
            self._make(represented, *waiting)
        return self._objects.get(represented)

    def get_made(self, represented: K) -> M | None:
        """The object that represents it; None without one, and for one that waits."""
        return self._objects.get(represented)

    def add_later(self, represented: K, make: Make[M]) -> None:
        """Add an object when it is needed; it has the time of now.

        Args:
            represented: what it represents, until it is removed.
            make: makes it, and gives it with its key, as of `add`; None if there is to be none.
        """
        self._waiting[represented] = time.time_ns(), make

    def fill(self) -> None:
        """Make all objects that wait."""
        self.make_some(self.waiting)

    def make_some(self, count: int, until: int | None = None) -> int:
        """Make some of the objects that wait, the oldest ones.

        Args:
            count: how many at most.
            until: only those that wait since then or longer, in ns since 1970; None for all.

        Returns:
            how many were made.
        """
        number = 0
        while number < count and self._waiting:
            represented = next(iter(self._waiting))
            since, make = self._waiting[represented]
            if until is not None and since > until:
                break
            del self._waiting[represented]
            self._make(represented, since, make)
            number += 1
        return number

    def _make(self, represented: K, since: int, make: Make[M]) -> None:
        if (made := make()) is not None:
            self.add(represented, *made, created=since)

    def add(self, represented: K, obj: M, key: str | None = None, *, created: int | None = None) -> None:
        """Add an object to the agent, as by `Agent.add`, with a number behind its key if another object has that.

        When the agent refuses it, this is only logged.
        """
        obj.sample()
        try:
            try:
                self._agent.add(obj, key, created=created)
            except DuplicateObjectError as error:
                # Names that clients choose may be the same on two connections, or when they are cut for the schema.
                self._agent.add(obj, f"{error.key},{next(self._numbers)}", created=created)
        except CallerError as error:
            log.warning("an object is missing in the management: %s", error)
        else:
            self._objects[represented] = obj

    def remove(self, represented: K) -> M | None:
        """Remove an object from the agent, with its last statistics; one that waits is never made."""
        self._waiting.pop(represented, None)
        obj = self._objects.pop(represented, None)
        if obj is not None:
            obj.sample()
            self._agent.remove(obj)
        return obj

    def sample(self) -> None:
        """Update the statistics of all objects; those that wait have none yet."""
        for obj in self._objects.values():
            obj.sample()


class StatisticsSampler:
    """Updates statistics, class by class.

    Attributes:
        classes: by name in the schema, in lower case.
    """

    def __init__(self) -> None:
        self.classes: dict[str, SampledObjects[Any, Any]] = {}

    def sample(self) -> None:
        """Update the objects of all classes."""
        for objects in self.classes.values():
            objects.sample()

    def on_request(self, request: AccessRequest) -> None:
        """A console asks the agent for something: update the class that it queries."""
        if request.class_key is not None and request.action in (Action.QUERY, Action.SUBSCRIBE):
            objects = self.classes.get(request.class_key.name.lower())
            if objects is not None:
                objects.sample()


class SamplingClock(SystemClock):
    """The agent's clock: updates all objects after each wait, since the agent publishes them next.

    Attributes:
        prepare: what is called before, to make objects that wait; may be replaced.
    """

    def __init__(self, sampler: StatisticsSampler) -> None:
        self._sampler = sampler
        self.prepare: Callable[[], None] = lambda: None

    async def sleep(self, seconds: float) -> None:
        """See `Clock`."""
        await super().sleep(seconds)
        try:
            self.prepare()
            self._sampler.sample()
        except Exception:
            # A bug; it must not stop the publications for good.
            log.exception("the broker's statistics could not be read")
