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
from qmf.hostagent.failures import Failures
from qmf.hostagent.settings import Settings
from qmf.hostagent.source import Machine

K = TypeVar("K")
R = TypeVar("R")
T = TypeVar("T", bound=ManagedObject)


class Registrar(Protocol):
    """What collectors use of the agent."""

    def add(self, obj: ManagedObject, /) -> object:
        """Make an object visible."""

    def remove(self, obj: ManagedObject, /) -> object:
        """Take an object away."""

    def raise_event(self, event: Event, /) -> object:
        """Tell consoles that something happened."""


@attrs.define
class Context:
    """What collectors share.

    Attributes:
        agent: takes objects and events.
        machine: where readings come from.
        settings: the operator's choices.
        failures: takes readings that failed.
        system: the object of the machine itself; None until the first sample has one.
    """

    agent: Registrar
    machine: Machine
    settings: Settings
    failures: Failures = attrs.field(factory=Failures)
    system: ManagedObject | None = None

    @contextmanager
    def one(self, what: str) -> Iterator[None]:
        """Bring one thing's reading into its object; what does not fit the model is reported, and the rest goes on."""
        try:
            yield
        except CallerError as error:
            self.failures.failed(f"{what} as the model has it", error)


class Collector(abc.ABC, Generic[R]):
    """Keeps the managed objects of one kind of thing true.

    Attributes:
        what: what it reads, for the log.
    """

    what: str

    def __init__(self, context: Context) -> None:
        self.context = context

    @abc.abstractmethod
    def read(self) -> R:
        """Ask the machine. Blocks; called in a worker thread, never twice at a time.

        Raises:
            OSError, psutil.Error, NotImplementedError: nothing could be read. What concerns only one object is not
                raised but reported to `Context.failures`, and that object is left out.
        """

    @abc.abstractmethod
    def apply(self, reading: R) -> None:
        """Add what is new, update what is there, remove what is gone. On the event loop's thread."""


class Objects(Generic[K, T]):
    """The managed objects of one collector, by what tells them apart."""

    def __init__(self, agent: Registrar) -> None:
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
        """Make a new object visible; returns it."""
        self._agent.add(obj)
        self._objects[key] = obj
        return obj

    def keep(self, keys: Iterable[K]) -> list[T]:
        """Take away every object whose key is not among `keys`; returns those."""
        wanted = set(keys)
        gone = [key for key in self._objects if key not in wanted]
        removed = [self._objects.pop(key) for key in gone]
        for obj in removed:
            self._agent.remove(obj)
        return removed
