"""When statistics are read: whenever somebody is about to look, so that counting costs messages nothing more.

Three look: the agent's publications and subscriptions, which wait for their time through the agent's clock; and
consoles' queries, which pass its access hook. Both are used as places to read the counters first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from qmf.agent import AccessRequest, Action, Agent, ManagedObject, SystemClock
from qmf.errors import CallerError

log = logging.getLogger("qmf.broker")


class SampledObject(ManagedObject):
    """Base of managed objects whose statistics are read. Stands behind the generated class."""

    __slots__ = ()

    def sample(self) -> None:
        """Bring the statistics up to date; without any there is nothing to do."""


K = TypeVar("K", bound=Hashable)
M = TypeVar("M", bound=SampledObject)


class ObjectTable(Generic[K, M]):
    """The managed objects of one class, by what they describe."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._objects: dict[K, M] = {}

    def get(self, thing: K) -> M | None:
        """What describes it."""
        return self._objects.get(thing)

    def add(self, thing: K, obj: M, key: str | None = None) -> None:
        """Make an object visible, under a key as of `Agent.add`. One that cannot be is left out, and logged."""
        obj.sample()
        try:
            self._agent.add(obj, key)
        except CallerError as error:
            # Names of clients' making, cut to what the model holds, can be equal.
            log.warning("management does not show an object: %s", error)
        else:
            self._objects[thing] = obj

    def remove(self, thing: K) -> M | None:
        """Take an object away, with its statistics of this moment."""
        obj = self._objects.pop(thing, None)
        if obj is not None:
            obj.sample()
            self._agent.remove(obj)
        return obj

    def sample(self) -> None:
        """Bring all up to date."""
        for obj in self._objects.values():
            obj.sample()


class Sampler:
    """Reads the counters of the objects, class by class."""

    def __init__(self) -> None:
        self._classes: dict[str, Callable[[], None]] = {}

    def add(self, name: str, sample: Callable[[], None]) -> None:
        """Care for the objects of a class, called `name` in the schema; `sample` brings them up to date."""
        self._classes[name.lower()] = sample

    def sample(self) -> None:
        """Bring everything up to date."""
        for sample in self._classes.values():
            sample()

    def access(self, request: AccessRequest) -> bool:
        """The agent's access hook: allows everything, and brings up to date what is asked for."""
        if request.class_key is not None and request.action in (Action.QUERY, Action.SUBSCRIBE):
            sample = self._classes.get(request.class_key.name.lower())
            if sample is not None:
                sample()
        return True


class SamplingClock(SystemClock):
    """The agent's clock: who waited looks at the objects next, so they are brought up to date before."""

    def __init__(self, sampler: Sampler) -> None:
        self._sampler = sampler

    async def sleep(self, seconds: float) -> None:
        """See `Clock`."""
        await super().sleep(seconds)
        try:
            self._sampler.sample()
        except Exception:
            # A bug, which shall not end publishing for good.
            log.exception("the broker's statistics could not be read")
