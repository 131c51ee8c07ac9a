"""The core of an agent: makes its parts, connects them, and starts and closes them with the bus."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TypeGuard

from qmf._background_tasks import BackgroundTasks
from qmf.agent.agent_start import make_identity
from qmf.agent.metrics import AgentMetrics, AgentStatistics
from qmf.agent.objects.object_sources import ObjectSources
from qmf.agent.objects.object_store import ManagedObjectStore
from qmf.agent.options import AgentOptions
from qmf.agent.publishing.change_publisher import ChangePublisher
from qmf.agent.publishing.event_queue import EventQueue
from qmf.agent.publishing.event_raiser import EventRaiser
from qmf.agent.publishing.object_writer import ObjectWriter
from qmf.agent.requests.access import AccessControl
from qmf.agent.requests.call_audit import METHOD_CALLED, CallAuditor
from qmf.agent.requests.discovery_handler import DiscoveryHandler
from qmf.agent.requests.dispatcher import RequestDispatcher
from qmf.agent.requests.method_handler import MethodHandler
from qmf.agent.requests.query_handler import QueryHandler
from qmf.agent.requests.subscription_handler import ANNOUNCEMENT, VERSION, SubscriptionHandler
from qmf.agent.sending.message_sender import MessageSender, SequenceNumbers
from qmf.bus.backoff import Backoff
from qmf.bus.base import Binding, Bus, BusEvent, Connected, Disconnected, ExchangeKind, LinkLost, Subscription
from qmf.bus.waiting import open_when_there
from qmf.codec.types import UInt32
from qmf.errors import AuthenticationError, CallerError, ConnectError, NetworkError
from qmf.protocol import AgentInfo, direct_exchange, topic_exchange

_log = logging.getLogger("qmf.agent")

#: Binding key on the topic exchange for requests to all agents.
CONSOLE_KEY = "console.#"

#: Seconds that `close` waits for the last publication and the last heartbeat.
CLOSE_TIMEOUT = 5.0


class AgentCore:
    """One agent behind its public class. Belongs to the event loop's thread."""

    def __init__(self, url_or_bus: str | Bus, options: AgentOptions) -> None:
        self.bus = bus = make_bus(url_or_bus)
        limits = options.subscription_limits
        announced = {} if limits is None else {ANNOUNCEMENT: UInt32(VERSION)}
        self.identity = identity = make_identity(options, announced)
        self._options = options
        clock = self._clock = options.clock
        metrics = self._metrics = AgentMetrics()
        self.store = ManagedObjectStore(identity.name, identity.epoch, clock.time_ns)
        self.sources = ObjectSources(self.store, clock)
        sender = MessageSender(bus, identity.name, options.form, metrics)
        access = AccessControl(options.access)
        # Events have numbers of their own: they may be raised in any thread.
        numbers, event_numbers = (SequenceNumbers(), SequenceNumbers()) if options.numbering else (None, None)
        self.events = EventQueue(
            sender, identity, options.domain, clock, metrics, limit=options.event_limit, numbers=event_numbers
        )
        self.raiser = EventRaiser(self.store, self.events, clock, options.form, publish=options.publish_events)
        writer = ObjectWriter(self.store, options.form)
        self.publisher = ChangePublisher(
            self.store,
            writer,
            sender,
            identity,
            options.domain,
            clock,
            metrics,
            data=options.publish_data,
            numbers=numbers,
        )
        self.subscriptions = SubscriptionHandler(
            self.sources,
            writer,
            sender,
            access,
            clock,
            metrics,
            limits=limits,
            interval=options.interval,
            domain=options.domain,
        )
        self._dispatcher = self._make_dispatcher(writer, sender, access)
        self._bindings: list[Subscription] = []
        self._tasks = BackgroundTasks()
        self._unwatch: Callable[[], None] | None = None
        #: Consoles can use the agent.
        self._joined = False
        #: Set when that is so, and when the agent closes.
        self._joined_or_closed = asyncio.Event()
        self._opened = self._started = self._closed = False

    def _make_dispatcher(self, writer: ObjectWriter, sender: MessageSender, access: AccessControl) -> RequestDispatcher:
        """What answers requests."""
        options, metrics = self._options, self._metrics
        auditor = None
        if options.audit is not None:
            auditor = CallAuditor(options.audit, self.events.put, self._clock)
            self.store.register((METHOD_CALLED,))
        return RequestDispatcher(
            DiscoveryHandler(self.identity, self.store, sender, access, self._clock, metrics),
            QueryHandler(self.sources, writer, sender, access, metrics),
            MethodHandler(
                self.sources,
                sender,
                access,
                metrics,
                limit=options.max_calls,
                timeout=options.method_timeout,
                threads=options.method_threads,
                auditor=auditor,
            ),
            self.subscriptions,
            sender,
            metrics,
            debug=options.debug,
        )

    def info(self) -> AgentInfo:
        """Name, epoch and attributes of the agent now, as in heartbeats."""
        return self.identity.info(self._clock.time_ns(), self.store.schema_updated)

    @property
    def statistics(self) -> AgentStatistics:
        """The counts up to now."""
        return self._metrics.snapshot(
            active_subscriptions=self.subscriptions.count,
            events_dropped=self.events.dropped,
            events_suppressed=self.events.suppressed,
            deletions_dropped=self.store.deletions_dropped,
        )

    async def start(self, timeout: float) -> None:
        """See `Agent.start`."""
        if self._started or self._closed:
            raise CallerError(f"agent {self.identity.name} was started or closed before; make a new one")
        self._started = True
        self._unwatch = self.bus.watch(self._on_bus_event)
        deadline = asyncio.get_running_loop().time() + timeout
        try:
            if not self.bus.connected:
                self._opened = True
                await self.bus.open(timeout)
            await self._join(deadline - asyncio.get_running_loop().time())
        except BaseException as error:
            if self._options.wait and not self.bus.connected and _may_come(error):
                self._tasks.spawn(self._join_later(error, timeout))
                return
            await self.close()
            raise

    async def wait_connected(self) -> None:
        """See `Agent.wait_connected`."""
        if not self._started or self._closed:
            raise CallerError(f"agent {self.identity.name} is not started, or closed")
        await self._joined_or_closed.wait()
        if self._closed:
            raise CallerError(f"agent {self.identity.name} was closed")

    async def _join(self, timeout: float) -> None:
        """Subscribe to requests on the open bus, send the first heartbeat, and publish from then on.

        Raises:
            ConnectError: the broker does not answer in time.
            LinkError, DisconnectedError: it refused, or is gone.
        """
        missing = "granted no subscription"
        try:
            async with asyncio.timeout(timeout):
                await self._subscribe()
                missing = "accepted no message"
                await self.publisher.heartbeat(confirm=True)
        except TimeoutError:
            raise ConnectError(self.bus.url, f"the broker {missing} within {timeout:g} s") from None
        self._joined = True
        self._joined_or_closed.set()
        self._tasks.spawn(self.events.run())
        self._tasks.spawn(self.publisher.run())

    async def _join_later(self, failure: ConnectError, timeout: float) -> None:
        """Join as soon as the broker is there; a broker that refuses, or ends meanwhile, is tried again."""
        await open_when_there(self.bus, timeout, failure=failure, refusals=True)
        for wait in Backoff().delays():
            try:
                await self._join(timeout)
            except NetworkError as error:
                _log.warning("agent %s: %s; trying again in %.1f s", self.identity.name, error, wait)
                await self._unsubscribe()
                await asyncio.sleep(wait)
            else:
                _log.info("agent %s is connected", self.identity.name)
                return

    async def close(self) -> None:
        """See `Agent.close`."""
        if self._closed:
            return
        self._closed = True
        self._joined_or_closed.set()
        if self._unwatch is not None:
            self._unwatch()
        await self._unsubscribe()
        await self._dispatcher.close()
        await self._tasks.cancel()
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self._finish()
        except TimeoutError:
            _log.warning("agent %s closes without its last publication: the broker accepts nothing", self.identity.name)
        finally:
            if self._opened:
                await self.bus.close()

    async def _finish(self) -> None:
        await self.subscriptions.close()
        if not self._joined:
            return
        await self.events.flush(confirmed=True)
        await self.publisher.publish(heartbeat=False)
        if self._options.goodbye and self.bus.connected:
            try:
                await self.publisher.heartbeat(confirm=True, goodbye=True)
            except NetworkError as error:
                _log.info("agent %s could not send its last heartbeat: %s", self.identity.name, error)

    async def _unsubscribe(self) -> None:
        while self._bindings:
            await self._bindings.pop().close()

    async def _subscribe(self) -> None:
        topic = topic_exchange(self._options.domain)
        direct = direct_exchange(self._options.domain)
        bindings = (
            *(Binding(direct, name, ExchangeKind.DIRECT) for name in (self.identity.name, *self._options.aliases)),
            Binding(topic, CONSOLE_KEY),
            Binding(topic, self.identity.direct_subject),
        )
        self._bindings.extend(await self.bus.subscribe_all(bindings, self._dispatcher.deliver))

    def _on_bus_event(self, event: BusEvent) -> None:
        if isinstance(event, Connected) and event.again and self._joined:
            _log.info("agent %s is connected again", self.identity.name)
            self.events.wake()
            self._tasks.spawn(self.publisher.announce())
        elif isinstance(event, Disconnected):
            level = logging.INFO if event.retry is not None else logging.WARNING
            _log.log(level, "agent %s lost its connection: %s", self.identity.name, event.reason)
        elif isinstance(event, LinkLost) and not event.reopened:
            _log.warning(
                "agent %s cannot use %r: %s", self.identity.name, event.address, event.description or event.condition
            )


def _may_come(error: BaseException) -> TypeGuard[ConnectError]:
    """True for the error of a broker that may be reachable later; a refused password stays refused."""
    return isinstance(error, ConnectError) and not isinstance(error, AuthenticationError)


def make_bus(url_or_bus: str | Bus) -> Bus:
    """The bus itself, or one for a URL."""
    if isinstance(url_or_bus, Bus):
        return url_or_bus
    # Programs with a bus of their own need not load the AMQP engine.
    from qmf.bus.client.amqp_bus import AmqpBus

    return AmqpBus(url_or_bus)
