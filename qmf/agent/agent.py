"""The agent: makes a program's objects visible on the bus.

Puts the parts of this room together and owns their life: `identity` (who), `objects` (what), `publisher` and `events`
(telling), `requests` (being asked). One agent lives once: make, start, close.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from qmf.agent.checks import copied
from qmf.agent.clock import Clock, SystemClock
from qmf.agent.discovery import Discovery
from qmf.agent.events import EventQueue
from qmf.agent.identity import make_identity
from qmf.agent.methods import Methods
from qmf.agent.model import Event, ManagedObject
from qmf.agent.objects import ObjectStore, schema_of
from qmf.agent.outbox import Outbox
from qmf.agent.publisher import Publisher
from qmf.agent.queries import Queries
from qmf.agent.requests import Requests
from qmf.agent.tally import AgentStatistics, Tally
from qmf.bus.base import Binding, Bus, BusEvent, Connected, Disconnected, ExchangeKind, LinkLost, Subscription
from qmf.errors import CallerError
from qmf.protocol import AgentInfo, BodyForm, EventData, ObjectId, direct_exchange, topic_exchange
from qmf.schema import TYPES, ClassSchema, EventSchema, Severity

_log = logging.getLogger("qmf.agent")

#: Key on the topic exchange under which consoles ask all agents.
CONSOLE_KEY = "console.#"

#: Seconds that `close` gives to the last publication.
CLOSE_TIMEOUT = 5.0


class Agent:
    """Publishes managed objects and events, and answers consoles.

    `add`, `remove`, `raise_event`, `register` and all accessors of objects may be called from any thread, before the
    start and while there is no connection; everything else belongs to the event loop's thread.
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
            method_timeout: seconds after which an ``async`` method is cancelled, or None for never.
            clock: where the time comes from; for tests.

        Raises:
            CallerError: an argument is invalid, or `state_dir` cannot be written.
        """
        if not 0 < interval < math.inf:
            raise CallerError(f"the interval of an agent must be a positive number of seconds, not {interval!r}")
        if max_calls < 1:
            raise CallerError(f"an agent must be able to run at least one method, not {max_calls!r}")
        facts = copied(attributes or {}, TYPES["map"], "the attributes of an agent")
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
        )
        self._domain = domain
        self._tally = Tally()
        self._store = ObjectStore(self.name, self.epoch, self._clock.time_ns)
        self._bus = _make_bus(url_or_bus)
        self._opened = False
        self._outbox = Outbox(self._bus, self.name, form, self._tally)
        self._events = EventQueue(self._outbox, self._identity, domain, self._tally)
        self._publisher = Publisher(self._store, self._outbox, self._identity, domain, self._clock, self._tally)
        discovery = Discovery(self._identity, self._store, self._outbox, self._clock, self._tally)
        queries = Queries(self._store, self._outbox, self._tally)
        methods = Methods(self._store, self._outbox, self._tally, limit=max_calls, timeout=method_timeout)
        self._requests = Requests(discovery, queries, methods, self._outbox, self._tally)
        self._subscriptions: list[Subscription] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._unwatch: Callable[[], None] | None = None
        self._started = self._closed = False

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
        """All objects, in the order in which they were added."""
        return tuple(self._store.all())

    @property
    def statistics(self) -> AgentStatistics:
        """What the agent counted about itself up to now."""
        return self._tally.snapshot(
            events_dropped=self._events.dropped, deletions_dropped=self._store.deletions_dropped
        )

    def register(self, *items: type[ManagedObject] | type[Event] | ClassSchema | EventSchema) -> None:
        """Make classes known to consoles before the first object or event of theirs.

        `add` and `raise_event` do it, too.

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

    def raise_event(self, event: Event, *, severity: Severity | int | None = None) -> None:
        """Tell consoles that something happened. Events go out at once and in order, after a reconnect where need be.

        Args:
            event: what happened.
            severity: instead of the one that the schema gives its class.

        Raises:
            ConstraintError: a value does not fit its argument.
            CallerError: no such severity.
        """
        schema = event._qmf_schema_
        if severity is None:
            severity = Severity.NOTICE if schema.severity is None else schema.severity
        try:
            level = Severity(severity)
        except ValueError as error:
            raise CallerError(f"a severity is 0 (emerg) to 7 (debug), not {severity!r}") from error
        self._store.register((schema,))
        self._events.put(
            EventData(
                values=event._qmf_values(),
                class_key=schema.key,
                timestamp=self._clock.time_ns(),
                severity=int(level),
            )
        )

    async def start(self, timeout: float = 10.0) -> None:
        """Connect, listen to consoles, and send the first heartbeat. Objects follow an interval later.

        Args:
            timeout: seconds for connecting.

        Raises:
            ConnectError, AuthenticationError: no connection.
            LinkError: the broker refused a subscription or the heartbeat.
            CallerError: the agent was started or closed before.
        """
        if self._started or self._closed:
            raise CallerError(f"agent {self.name} was started or closed before; make a new one")
        self._started = True
        self._unwatch = self._bus.watch(self._on_bus_event)
        try:
            if not self._bus.connected:
                self._opened = True
                await self._bus.open(timeout)
            await self._subscribe()
            await self._publisher.heartbeat(confirm=True)
        except BaseException:
            await self.close()
            raise
        self._spawn(self._events.run())
        self._spawn(self._publisher.run())

    async def close(self) -> None:
        """Publish what is pending, stop, and close the bus if `start` opened it. A second call does nothing.

        Methods that still run are cancelled, and their callers told. Objects are not reported as deleted: the agent
        ends, not what it managed. QMF has no goodbye; consoles notice by missing heartbeats.
        """
        if self._closed:
            return
        self._closed = True
        if self._unwatch is not None:
            self._unwatch()
        for subscription in self._subscriptions:
            await subscription.close()
        await self._requests.close()
        tasks, self._tasks = self._tasks, set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self._events.flush()
                await self._publisher.publish(heartbeat=False)
        except TimeoutError:
            _log.warning("agent %s closes without its last publication: the broker takes nothing", self.name)
        finally:
            if self._opened:
                await self._bus.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def _subscribe(self) -> None:
        topic = topic_exchange(self._domain)
        for binding in (
            Binding(direct_exchange(self._domain), self.name, ExchangeKind.DIRECT),
            Binding(topic, CONSOLE_KEY),
            Binding(topic, self._identity.direct_subject),
        ):
            self._subscriptions.append(await self._bus.subscribe(binding, self._requests.deliver))

    def _on_bus_event(self, event: BusEvent) -> None:
        if isinstance(event, Connected) and event.again:
            _log.info("agent %s is connected again", self.name)
            self._events.wake()
            self._spawn(self._publisher.announce())
        elif isinstance(event, Disconnected):
            level = logging.INFO if event.retry is not None else logging.WARNING
            _log.log(level, "agent %s lost its connection: %s", self.name, event.reason)
        elif isinstance(event, LinkLost) and not event.reopened:
            _log.warning("agent %s cannot use %r: %s", self.name, event.address, event.description or event.condition)

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _make_bus(url_or_bus: str | Bus) -> Bus:
    if isinstance(url_or_bus, Bus):
        return url_or_bus
    # Programs that bring their own bus do not pay for loading the AMQP engine.
    from qmf.bus.amqp import AmqpBus

    return AmqpBus(url_or_bus)
