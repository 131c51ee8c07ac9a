"""What all collectors have in common: reading in a worker thread, applying on the event loop.

psutil blocks, and managed objects belong to the event loop's thread. So each collector has two halves: `read` only asks
psutil and returns plain values, `apply` brings these into managed objects and never blocks.
"""

from __future__ import annotations

import abc
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

import attrs

from qmf.agent import Event, ManagedObject
from qmf.errors import CallerError
from qmf.hostagent.failures import ReadingFailures
from qmf.hostagent.machine import Machine
from qmf.hostagent.settings import Settings

K = TypeVar("K")
R = TypeVar("R")
T = TypeVar("T", bound=ManagedObject)


class ObjectRegistry(Protocol):
    """The methods of the agent that collectors use."""

    def add(self, obj: ManagedObject, /) -> object:
        """Publish an object."""

    def remove(self, obj: ManagedObject, /) -> object:
        """Delete an object."""

    def raise_event(self, event: Event, /) -> object:
        """Publish an event."""


@attrs.define
class CollectorContext:
    """The objects that all collectors share.

    Attributes:
        agent: publishes objects and events.
        machine: the source of readings.
        settings: the operator's settings.
        failures: records readings that failed.
        system: the object of the machine itself; None until the first sample has one.
    """

    agent: ObjectRegistry
    machine: Machine
    settings: Settings
    failures: ReadingFailures = attrs.field(factory=ReadingFailures)
    system: ManagedObject | None = None

    @contextmanager
    def reporting_invalid_values(self, what: str) -> Iterator[None]:
        """Context of updating the object of `what`: a value that does not fit the model is reported, not raised."""
        try:
            yield
        except CallerError as error:
            self.failures.on_failure(f"{what} as the model has it", error)


class Collector(abc.ABC, Generic[R]):
    """Keeps the managed objects of one kind of thing up to date.

    Attributes:
        what: the subject of its readings, for the log.
    """

    what: str

    def __init__(self, context: CollectorContext) -> None:
        self.context = context

    @abc.abstractmethod
    def read(self) -> R:
        """Read the machine. Blocks; called in a worker thread, by one call at a time.

        Raises:
            OSError, psutil.Error, NotImplementedError: nothing could be read. An error of one object only is not
                raised but recorded in `CollectorContext.failures`, and that object is left out.
        """

    @abc.abstractmethod
    def apply(self, reading: R) -> None:
        """Add new objects, update known ones, remove those that are gone. On the event loop's thread."""


class ObjectsByKey(Generic[K, T]):
    """The managed objects of one collector, by a key."""

    def __init__(self, agent: ObjectRegistry) -> None:
        self._agent = agent
        self._objects: dict[K, T] = {}

    def __len__(self) -> int:
        return len(self._objects)

    def get(self, key: K) -> T | None:
        """The object with this key, or None."""
        return self._objects.get(key)

    def values(self) -> Collection[T]:
        """All objects, oldest first."""
        return self._objects.values()

    def add(self, key: K, obj: T) -> T:
        """Publish a new object; returns it."""
        self._agent.add(obj)
        self._objects[key] = obj
        return obj

    def keep(self, keys: Iterable[K]) -> list[T]:
        """Delete every object whose key is not in `keys`; returns the deleted ones."""
        wanted = set(keys)
        gone = [key for key in self._objects if key not in wanted]
        removed = [self._objects.pop(key) for key in gone]
        for obj in removed:
            self._agent.remove(obj)
        return removed
