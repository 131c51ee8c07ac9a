"""The agent: makes the objects of a program visible on the bus.

`Agent` is the public class; `AgentCore` connects the parts of this room. One agent lives once: make, start, close.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self, TypeVar

from qmf._arguments import arguments_of
from qmf._closable import AsyncClosable
from qmf._service_thread import ServiceThread
from qmf.agent.core import AgentCore
from qmf.agent.layout import object_state
from qmf.agent.metrics import AgentStatistics
from qmf.agent.model.arguments import Event
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.objects.object_store import ManagedObjectStore, schema_of
from qmf.agent.options import AgentArguments
from qmf.agent.providers import Handler, Provider
from qmf.bus.base import Bus
from qmf.errors import CallerError
from qmf.protocol import AgentInfo, ObjectId
from qmf.schema import ClassSchema, EventSchema, Severity

P = TypeVar("P", bound=Provider | Handler)


class Agent(AsyncClosable):
    """Publishes managed objects and events, and answers consoles.

    `add`, `remove`, `raise_event`, `register` and all accessors of objects may be called from any thread, before the
    start and while there is no connection; everything else belongs to the event loop's thread. A program without an
    event loop uses `run_in_thread`.
    """

    @arguments_of(AgentArguments)
    def __init__(self, arguments: AgentArguments) -> None:
        """Make an agent; with `state_dir` this counts as its start.

        The keyword arguments are described in `AgentOptions`; `vendor` and `product` are required.

        Args:
            url_or_bus: the broker's URL, or a bus. A bus that is open already stays open when the agent closes.

        Raises:
            CallerError: an argument is invalid, or `state_dir` cannot be written.
        """
        self._core = AgentCore(arguments.url_or_bus, arguments)
        self._core.store.agent = self

    @classmethod
    def run_in_thread(cls, url_or_bus: str | Bus, *, timeout: float = 10.0, **options: Any) -> AgentThread:
        """Make and start an agent on an event loop in a thread of its own, for programs without one.

        Methods of objects are called in that thread.

        Args:
            url_or_bus, options: as for `Agent`; a bus must not be in use in another loop.
            timeout: seconds for connecting.

        Returns:
            the thread with the agent; close it at the end, or use it in a ``with`` block.

        Raises:
            ConnectError, AuthenticationError, LinkError, CallerError: as `Agent` and `start`.
        """
        return AgentThread("qmf-agent", lambda: cls(url_or_bus, **options), lambda agent: agent.start(timeout))

    @property
    def name(self) -> str:
        """``vendor:product:instance``."""
        return self._core.identity.name

    @property
    def epoch(self) -> int:
        """Number of this start."""
        return self._core.identity.epoch

    @property
    def info(self) -> AgentInfo:
        """Name, epoch and attributes of the agent now, as in heartbeats."""
        return self._core.info()

    @property
    def connected(self) -> bool:
        """True while the bus can send."""
        return self._core.bus.connected

    @property
    def objects(self) -> tuple[ManagedObject, ...]:
        """All objects that were added, in that order; not those of providers."""
        return tuple(self._core.store.all())

    @property
    def statistics(self) -> AgentStatistics:
        """Counts of messages, calls, events and losses up to now."""
        return self._core.statistics

    def register(self, *items: type[ManagedObject] | type[Event] | ClassSchema | EventSchema) -> None:
        """Make schemas of classes known to consoles before their first object or event.

        `add`, `provide` and `raise_event` do it, too.

        Args:
            items: generated classes, or schemas.
        """
        self._core.store.register(schema_of(item) for item in items)

    def add(self, obj: ManagedObject, key: str | None = None, *, created: int | None = None) -> ObjectId:
        """Make an object visible. Queries find it at once; it is published at the next interval.

        Args:
            obj: an object that is in no agent.
            key: last part of its id, instead of its index properties or, without any, of a serial number.
            created: since when there is what the object stands for, in ns since 1970; None for now.

        Returns:
            its id: ``package:class:key`` with this agent's name and epoch.

        Raises:
            DuplicateObjectError: another object has the id.
            CallerError: the object is in an agent already, or its key refers to an object that is in none.
        """
        return self._core.store.add(obj, key, created)

    def remove(self, obj: ManagedObject) -> None:
        """Remove an object. Its current values are published as its last ones at the next interval.

        Raises:
            CallerError: the object is not in this agent.
        """
        self._core.store.remove(obj)

    def fill(self, cls: type[ManagedObject], fill: Callable[[], object]) -> None:
        """Have objects of a class added only when somebody looks at them: for what comes and goes unseen mostly.

        What is to be published at the next interval, or at that of a subscription, has to be added by then.

        Args:
            cls: the generated class.
            fill: called on the event loop before a query, a call or a subscription looks at objects of the class; adds
                those that are missing (`add`).
        """
        self._core.sources.fill(cls, fill)

    def provide(self, cls: type[ManagedObject], handler: Provider | Handler) -> None:
        """Provide the objects of a class on demand instead of storing them (see `qmf.agent.providers`).

        Args:
            cls: the generated class.
            handler: a `Provider`, or a function from a `ProviderQuery` to pages.

        Raises:
            CallerError: the class has a provider already.
        """
        self._core.sources.provide(cls, handler)

    def provider(self, cls: type[ManagedObject]) -> Callable[[P], P]:
        """`provide` as a decorator of the handler."""

        def decorate(handler: P) -> P:
            self.provide(cls, handler)
            return handler

        return decorate

    def raise_event(self, event: Event, *, severity: Severity | int | None = None) -> None:
        """Send an event to consoles. Events are sent at once and in order; without connection, after the reconnect.

        Args:
            event: an event of a generated class.
            severity: 0 (emerg) to 7 (debug); None for the severity in the schema.

        Raises:
            ConstraintError: a value does not fit its argument.
            CallerError: the severity is not 0 to 7.
        """
        self._core.raiser.raise_event(event, severity)

    async def start(self, timeout: float = 10.0) -> None:
        """Connect, subscribe to requests, and send the first heartbeat. Objects follow an interval later.

        If the broker cannot be reached, this returns as well, and the agent goes on trying in the background, with
        warnings in the log; `connected` is False until then. With ``wait=False`` it raises `ConnectError` instead.

        Args:
            timeout: seconds for connecting.

        Raises:
            ConnectError: with ``wait=False``, there is no connection in time. In any case, a broker that is connected
                does not answer in time.
            AuthenticationError: the broker refused the user or the password.
            LinkError: the broker refused a subscription or the heartbeat.
            CallerError: the agent was started or closed before.
        """
        await self._core.start(timeout)

    async def wait_connected(self) -> None:
        """Return as soon as the agent is connected for the first time, at once after a `start` that did connect.

        Raises:
            CallerError: the agent is not started, or closed; or is closed meanwhile.
        """
        await self._core.wait_connected()

    async def publish(self) -> bool:
        """Publish all changes and a heartbeat now instead of at the end of the interval.

        Returns:
            False if there is no connection, or it was lost meanwhile: the changes are published later.
        """
        return await self._core.publisher.publish()

    async def close(self) -> None:
        """Publish pending changes and a last heartbeat, stop, and close the bus if `start` opened it.

        Methods that still run are cancelled, and their callers get an error; subscriptions are cancelled. Objects are
        not published as deleted: the agent ends, not what it managed. A second call does nothing.
        """
        await self._core.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self


def agent_of(obj: ManagedObject) -> Agent:
    """The agent that an object was added to: for methods that raise events, or add and remove objects.

    Raises:
        CallerError: the object is in no agent; that of a provider is in none, either.
    """
    store = object_state.owner(obj)
    if isinstance(store, ManagedObjectStore) and isinstance(store.agent, Agent):
        return store.agent
    raise CallerError(f"{obj!r} is in no agent")


class AgentThread(ServiceThread[Agent]):
    """A running agent in a thread, made by `Agent.run_in_thread`.

    The thread is a daemon: a program that forgets to close it still ends.
    """

    @property
    def agent(self) -> Agent:
        """The agent. Any thread may add, change and remove objects and raise events without waiting for the network."""
        return self.service
