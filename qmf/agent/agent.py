"""The agent: makes a program's objects visible on the bus.

`Agent` is the face; `core` puts the parts of this room together and owns their life. One agent lives once: make, start,
close.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from qmf.agent.agent_identity import make_identity
from qmf.agent.agent_thread import AgentThread, in_thread
from qmf.agent.clock import Clock, SystemClock
from qmf.agent.core import AgentCore, make_bus
from qmf.agent.layout.checks import checked_copy
from qmf.agent.metrics import AgentStatistics
from qmf.agent.model.arguments import Event
from qmf.agent.model.managed_object import ManagedObject
from qmf.agent.objects.object_store import schema_of
from qmf.agent.providers import Handler, Provider
from qmf.agent.publishing.event_rate_limiter import EventLimit
from qmf.agent.requests.access import Access
from qmf.agent.requests.call_audit import CallAudit
from qmf.agent.requests.subscription_handler import ANNOUNCEMENT, VERSION, SubscriptionLimits
from qmf.bus.base import Bus
from qmf.codec.types import UInt32
from qmf.errors import CallerError
from qmf.protocol import AgentInfo, BodyForm, ObjectId
from qmf.schema import TYPES, ClassSchema, EventSchema, Severity

P = TypeVar("P", bound=Provider | Handler)

_EVENT_LIMIT = EventLimit()
_SUBSCRIPTION_LIMITS = SubscriptionLimits()


class Agent:
    """Publishes managed objects and events, and answers consoles.

    `add`, `remove`, `raise_event`, `register` and all accessors of objects may be called from any thread, before the
    start and while there is no connection; everything else belongs to the event loop's thread. A program without an
    event loop uses `run_in_thread`.
    """

    def __init__(
        self,
        url_or_bus: str | Bus,
        *,
        vendor: str,
        product: str,
        instance: str | None = None,
        domain: str = "default",
        interval: float = 10.0,
        attributes: Mapping[str, object] | None = None,
        state_dir: str | Path | None = None,
        epoch: int | None = None,
        form: BodyForm = BodyForm.DATA010,
        max_calls: int = 16,
        method_timeout: float | None = None,
        debug: bool = False,
        access: Access | None = None,
        audit: CallAudit | None = None,
        publish_data: bool = True,
        publish_events: bool = True,
        numbering: bool = True,
        goodbye: bool = True,
        event_limit: EventLimit | None = _EVENT_LIMIT,
        subscription_limits: SubscriptionLimits | None = _SUBSCRIPTION_LIMITS,
        clock: Clock | None = None,
    ) -> None:
        """Make an agent; with `state_dir` this counts as its start.

        Args:
            url_or_bus: the broker's URL, or a bus. A bus that is open already stays open when the agent closes.
            vendor, product: name of the kind of agent, e.g. ``example.org``, ``mail``; without ``:``.
            instance: tells agents of one kind apart. None: a new uuid, kept in `state_dir` where there is one.
            domain: part of the exchanges' names.
            interval: seconds between publications, and between heartbeats. Consoles hear it rounded up to seconds.
            attributes: facts about the agent that consoles can select agents by, e.g. ``{"site": "lab"}``.
            state_dir: folder that remembers how often the agent was started; for one agent at a time.
            epoch: number of this start, instead of counting; 1 to 4294967295, different at each start.
            form: how message bodies are encoded; every peer understands the default.
            max_calls: methods that run at the same time; more calls wait.
            method_timeout: seconds after which a caller is told that a method took too long, or None for never. An
                ``async`` method is cancelled then; the result of another one is dropped.
            debug: send tracebacks to consoles, in the value ``traceback`` of exceptions. They tell about the inside of
                the program, so never where strangers can call.
            access: decides on queries, method calls, property changes and subscriptions. None allows all.
            audit: raise an event for each method call and property change, with who asked for it; None for no events.
            publish_data: tell changes of objects without being asked. Without, consoles query or subscribe.
            publish_events: send events; without, `raise_event` only checks them.
            numbering: number what is sent without being asked for, so that our consoles notice losses.
            goodbye: send a last heartbeat that says so when the agent closes; other consoles see a heartbeat.
            event_limit: how many events of a class and severity go out before further ones are held back; None for all.
            subscription_limits: what subscriptions consoles of ours may have; None for none.
            clock: where the time comes from; for tests.

        Raises:
            CallerError: an argument is invalid, or `state_dir` cannot be written.
        """
        if not 0 < interval < math.inf:
            raise CallerError(f"the interval of an agent must be a positive number of seconds, not {interval!r}")
        if max_calls < 1:
            raise CallerError(f"an agent must be able to run at least one method, not {max_calls!r}")
        if method_timeout is not None and not method_timeout > 0:
            raise CallerError(f"the time limit of methods must be a positive number of seconds, not {method_timeout!r}")
        facts = checked_copy(attributes or {}, TYPES["map"], "the attributes of an agent")
        assert isinstance(facts, dict)
        self._clock = clock or SystemClock()
        self._identity = make_identity(
            vendor=vendor,
            product=product,
            instance=instance,
            interval=interval,
            attributes=facts,
            state_dir=None if state_dir is None else Path(state_dir),
            epoch=epoch,
            now=self._clock.time_ns(),
            extras={} if subscription_limits is None else {ANNOUNCEMENT: UInt32(VERSION)},
        )
        self._bus = make_bus(url_or_bus)
        self._core = AgentCore(
            self._bus,
            self._identity,
            self._clock,
            domain=domain,
            form=form,
            max_calls=max_calls,
            method_timeout=method_timeout,
            debug=debug,
            access=access,
            audit=audit,
            publish_data=publish_data,
            publish_events=publish_events,
            numbering=numbering,
            goodbye=goodbye,
            event_limit=event_limit,
            subscription_limits=subscription_limits,
        )
        self._store = self._core.store

    @classmethod
    def run_in_thread(cls, url_or_bus: str | Bus, *, timeout: float = 10.0, **options: Any) -> AgentThread:
        """Make and start an agent on an event loop in a thread of its own, for programs without one.

        Methods of objects are called in that thread.

        Args:
            url_or_bus, options: as for `Agent`; a bus must not be in use in another loop.
            timeout: seconds for connecting.

        Returns:
            a handle with the agent; close it at the end, or use it in a ``with`` block.

        Raises:
            ConnectError, AuthenticationError, LinkError, CallerError: as `Agent` and `start`.
        """
        return in_thread(lambda: cls(url_or_bus, **options), timeout)

    @property
    def name(self) -> str:
        """``vendor:product:instance``."""
        return self._identity.name

    @property
    def epoch(self) -> int:
        """Number of this start."""
        return self._identity.epoch

    @property
    def info(self) -> AgentInfo:
        """What the agent says of itself now."""
        return self._identity.info(self._clock.time_ns(), self._store.schema_updated)

    @property
    def connected(self) -> bool:
        """True while the bus can send."""
        return self._bus.connected

    @property
    def objects(self) -> tuple[ManagedObject, ...]:
        """All objects that were added, in that order; not those of providers."""
        return tuple(self._store.all())

    @property
    def statistics(self) -> AgentStatistics:
        """What the agent counted about itself up to now."""
        return self._core.statistics

    def register(self, *items: type[ManagedObject] | type[Event] | ClassSchema | EventSchema) -> None:
        """Make classes known to consoles before the first object or event of theirs.

        `add`, `provide` and `raise_event` do it, too.

        Args:
            items: generated classes, or schemas.
        """
        self._store.register(schema_of(item) for item in items)

    def add(self, obj: ManagedObject, key: str | None = None) -> ObjectId:
        """Make an object visible. Consoles hear of it at the next publication, and find it at once.

        Args:
            obj: an object that no agent has.
            key: last part of its id, instead of its index properties or, without any, of a serial number.

        Returns:
            its id: ``package:class:key`` with this agent's name and epoch.

        Raises:
            DuplicateObjectError: another object has the id.
            CallerError: an agent has the object, or its key refers to an object that no agent has.
        """
        return self._store.add(obj, key)

    def remove(self, obj: ManagedObject) -> None:
        """Take an object away. Consoles hear its values of this moment at the next publication.

        Raises:
            CallerError: the agent does not have it.
        """
        self._store.remove(obj)

    def provide(self, cls: type[ManagedObject], handler: Provider | Handler) -> None:
        """QueryAnswer for a class on demand, without objects that wait to be asked for (see `qmf.agent.providers`).

        Args:
            cls: the generated class.
            handler: a `Provider`, or a function from a `ProviderQuery` to pages.

        Raises:
            CallerError: the class has a provider already.
        """
        self._core.sources.provide(cls, handler)

    def provider(self, cls: type[ManagedObject]) -> Callable[[P], P]:
        """`provide` as a decorator of the handler."""

        def take(handler: P) -> P:
            self.provide(cls, handler)
            return handler

        return take

    def raise_event(self, event: Event, *, severity: Severity | int | None = None) -> None:
        """Tell consoles that something happened. Events go out at once and in order, after a reconnect where need be.

        Args:
            event: what happened.
            severity: instead of the one that the schema gives its class.

        Raises:
            ConstraintError: a value does not fit its argument.
            CallerError: no such severity.
        """
        self._core.raiser.raise_event(event, severity)

    async def start(self, timeout: float = 10.0) -> None:
        """Connect, listen to consoles, and send the first heartbeat. Objects follow an interval later.

        Args:
            timeout: seconds for connecting.

        Raises:
            ConnectError, AuthenticationError: no connection.
            LinkError: the broker refused a subscription or the heartbeat.
            CallerError: the agent was started or closed before.
        """
        await self._core.start(timeout)

    async def publish(self) -> bool:
        """Publish what changed, and a heartbeat, now instead of at the end of the interval.

        Returns:
            False if there is no connection, or it was lost on the way: nothing is lost, it is published later.
        """
        return await self._core.publisher.publish()

    async def close(self) -> None:
        """Publish what is pending, say goodbye, stop, and close the bus if `start` opened it; once is enough.

        Methods that still run are cancelled, and their callers told; so are subscribers. Objects are not reported as
        deleted: the agent ends, not what it managed.
        """
        await self._core.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
