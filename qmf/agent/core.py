"""The parts of an agent put together, and their life on the bus: start, what the bus tells, close."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

from qmf.agent.agent_identity import AgentIdentity
from qmf.agent.clock import Clock
from qmf.agent.metrics import AgentMetrics, AgentStatistics
from qmf.agent.objects.object_sources import ObjectSources
from qmf.agent.objects.object_store import ManagedObjectStore
from qmf.agent.publishing.change_publisher import ChangePublisher
from qmf.agent.publishing.event_queue import EventQueue
from qmf.agent.publishing.event_rate_limiter import EventLimit
from qmf.agent.publishing.raising import EventRaiser
from qmf.agent.publishing.writing import ObjectWriter
from qmf.agent.requests.access import Access, AccessControl
from qmf.agent.requests.call_audit import METHOD_CALLED, CallAudit, CallAuditor
from qmf.agent.requests.discovery_handler import DiscoveryHandler
from qmf.agent.requests.dispatcher import RequestDispatcher
from qmf.agent.requests.method_handler import MethodHandler
from qmf.agent.requests.query_handler import QueryHandler
from qmf.agent.requests.subscription_handler import SubscriptionHandler, SubscriptionLimits
from qmf.agent.sending.message_sender import MessageSender
from qmf.agent.sending.sequence_numbers import SequenceNumbers
from qmf.bus.base import Binding, Bus, BusEvent, Connected, Disconnected, ExchangeKind, LinkLost, Subscription
from qmf.errors import CallerError, ConnectError, NetworkError
from qmf.protocol import BodyForm, direct_exchange, topic_exchange

_log = logging.getLogger("qmf.agent")

#: Key on the topic exchange under which consoles ask all agents.
CONSOLE_KEY = "console.#"

#: Seconds that `close` gives to the last publication and the goodbye.
CLOSE_TIMEOUT = 5.0


class AgentCore:
    """One agent behind its public face; see `Agent` for the arguments. Belongs to the event loop's thread."""

    def __init__(
        self,
        bus: Bus,
        identity: AgentIdentity,
        clock: Clock,
        *,
        domain: str,
        form: BodyForm,
        max_calls: int,
        method_timeout: float | None,
        debug: bool,
        access: Access | None,
        audit: CallAudit | None,
        publish_data: bool,
        publish_events: bool,
        numbering: bool,
        goodbye: bool,
        event_limit: EventLimit | None,
        subscription_limits: SubscriptionLimits | None,
    ) -> None:
        self._bus = bus
        self._identity = identity
        self._domain = domain
        self._goodbye = goodbye
        metrics = self._metrics = AgentMetrics()
        self.store = ManagedObjectStore(identity.name, identity.epoch, clock.time_ns)
        self.sources = ObjectSources(self.store, clock)
        sender = MessageSender(bus, identity.name, form, metrics)
        access_control = AccessControl(access)
        # Events count by themselves: they may be raised in any thread.
        numbers, event_numbers = (SequenceNumbers(), SequenceNumbers()) if numbering else (None, None)
        self.events = EventQueue(sender, identity, domain, clock, metrics, limit=event_limit, numbers=event_numbers)
        self.raiser = EventRaiser(self.store, self.events, clock, form, publish=publish_events)
        writer = ObjectWriter(self.store, form)
        self.publisher = ChangePublisher(
            self.store, writer, sender, identity, domain, clock, metrics, data=publish_data, numbers=numbers
        )
        auditor = None if audit is None else CallAuditor(audit, self.events.put, clock)
        if auditor is not None:
            self.store.register((METHOD_CALLED,))
        self.subscriptions = SubscriptionHandler(
            self.sources, sender, access_control, clock, metrics, limits=subscription_limits, interval=identity.interval
        )
        self._requests = RequestDispatcher(
            DiscoveryHandler(identity, self.store, sender, access_control, clock, metrics),
            QueryHandler(self.sources, writer, sender, access_control, metrics),
            MethodHandler(
                self.sources, sender, access_control, metrics, limit=max_calls, timeout=method_timeout, auditor=auditor
            ),
            self.subscriptions,
            sender,
            metrics,
            debug=debug,
        )
        self._bindings: list[Subscription] = []
        self._tasks: set[asyncio.Task[Any]] = set()
        self._unwatch: Callable[[], None] | None = None
        self._opened = self._started = self._closed = False

    @property
    def statistics(self) -> AgentStatistics:
        """What was counted up to now."""
        return self._metrics.snapshot(
            events_dropped=self.events.dropped,
            events_suppressed=self.events.suppressed,
            deletions_dropped=self.store.deletions_dropped,
        )

    async def start(self, timeout: float) -> None:
        """See `Agent.start`."""
        if self._started or self._closed:
            raise CallerError(f"agent {self._identity.name} was started or closed before; make a new one")
        self._started = True
        self._unwatch = self._bus.watch(self._on_bus_event)
        deadline = asyncio.get_running_loop().time() + timeout
        silent = "granted no subscription"
        try:
            if not self._bus.connected:
                self._opened = True
                await self._bus.open(timeout)
            async with asyncio.timeout_at(deadline):
                await self._subscribe()
                silent = "took no message"
                await self.publisher.heartbeat(confirm=True)
        except TimeoutError:
            self._goodbye = False
            await self.close()
            raise ConnectError(self._bus.url, f"the broker {silent} within {timeout:g} s") from None
        except BaseException:
            self._goodbye = False
            await self.close()
            raise
        self._spawn(self.events.run())
        self._spawn(self.publisher.run())

    async def close(self) -> None:
        """See `Agent.close`."""
        if self._closed:
            return
        self._closed = True
        if self._unwatch is not None:
            self._unwatch()
        for binding in self._bindings:
            await binding.close()
        await self._requests.close()
        tasks, self._tasks = self._tasks, set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT):
                await self._finish()
        except TimeoutError:
            _log.warning("agent %s closes without its last publication: the broker takes nothing", self._identity.name)
        finally:
            if self._opened:
                await self._bus.close()

    async def _finish(self) -> None:
        await self.subscriptions.close()
        if not self._started:
            return
        await self.events.flush(confirmed=True)
        await self.publisher.publish(heartbeat=False)
        if self._goodbye and self._bus.connected:
            try:
                await self.publisher.heartbeat(confirm=True, goodbye=True)
            except NetworkError as error:
                _log.info("agent %s could not say goodbye: %s", self._identity.name, error)

    async def _subscribe(self) -> None:
        topic = topic_exchange(self._domain)
        for binding in (
            Binding(direct_exchange(self._domain), self._identity.name, ExchangeKind.DIRECT),
            Binding(topic, CONSOLE_KEY),
            Binding(topic, self._identity.direct_subject),
        ):
            self._bindings.append(await self._bus.subscribe(binding, self._requests.deliver))

    def _on_bus_event(self, event: BusEvent) -> None:
        if isinstance(event, Connected) and event.again:
            _log.info("agent %s is connected again", self._identity.name)
            self.events.wake()
            self._spawn(self.publisher.announce())
        elif isinstance(event, Disconnected):
            level = logging.INFO if event.retry is not None else logging.WARNING
            _log.log(level, "agent %s lost its connection: %s", self._identity.name, event.reason)
        elif isinstance(event, LinkLost) and not event.reopened:
            _log.warning(
                "agent %s cannot use %r: %s", self._identity.name, event.address, event.description or event.condition
            )

    def _spawn(self, work: Coroutine[Any, Any, object]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def make_bus(url_or_bus: str | Bus) -> Bus:
    """The bus itself, or one for a URL."""
    if isinstance(url_or_bus, Bus):
        return url_or_bus
    # Programs that bring their own bus do not pay for loading the AMQP engine.
    from qmf.bus.client.amqp_bus import AmqpBus

    return AmqpBus(url_or_bus)
