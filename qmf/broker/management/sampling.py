"""Statistics are sampled: read from the broker's counters when they are needed, so that messages are counted once only.

They are needed by the agent's publications and subscriptions, which wait in the agent's clock for their next time, and
by consoles' queries, which pass the agent's access hook. Both places sample first.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

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


class SampledObjects(Generic[K, M]):
    """The managed objects of one class, by what they represent."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._objects: dict[K, M] = {}
        #: What makes keys different that are the same otherwise.
        self._numbers = itertools.count(2)

    def get(self, represented: K) -> M | None:
        """The object that represents it, or None."""
        return self._objects.get(represented)

    def add(self, represented: K, obj: M, key: str | None = None) -> None:
        """Add an object to the agent, with a key as of `Agent.add`, and a number behind it if another object has that.

        When the agent refuses it, this is only logged.
        """
        obj.sample()
        try:
            try:
                self._agent.add(obj, key)
            except DuplicateObjectError as error:
                # Names that clients choose may be the same on two connections, or when they are cut for the schema.
                self._agent.add(obj, f"{error.key},{next(self._numbers)}")
        except CallerError as error:
            log.warning("an object is missing in the management: %s", error)
        else:
            self._objects[represented] = obj

    def remove(self, represented: K) -> M | None:
        """Remove an object from the agent, with its last statistics."""
        obj = self._objects.pop(represented, None)
        if obj is not None:
            obj.sample()
            self._agent.remove(obj)
        return obj

    def sample(self) -> None:
        """Update the statistics of all objects."""
        for obj in self._objects.values():
            obj.sample()


class StatisticsSampler:
    """Updates statistics, class by class."""

    def __init__(self) -> None:
        self._classes: dict[str, Callable[[], None]] = {}

    def add(self, name: str, sample: Callable[[], None]) -> None:
        """Register a class by its name in the schema; `sample` updates its objects."""
        self._classes[name.lower()] = sample

    def sample(self) -> None:
        """Update the objects of all classes."""
        for sample in self._classes.values():
            sample()

    def on_request(self, request: AccessRequest) -> None:
        """A console asks the agent for something: update the class that it queries."""
        if request.class_key is not None and request.action in (Action.QUERY, Action.SUBSCRIBE):
            sample = self._classes.get(request.class_key.name.lower())
            if sample is not None:
                sample()


class SamplingClock(SystemClock):
    """The agent's clock: updates all objects after each wait, since the agent publishes them next."""

    def __init__(self, sampler: StatisticsSampler) -> None:
        self._sampler = sampler

    async def sleep(self, seconds: float) -> None:
        """See `Clock`."""
        await super().sleep(seconds)
        try:
            self._sampler.sample()
        except Exception:
            # A bug; it must not stop the publications for good.
            log.exception("the broker's statistics could not be read")
