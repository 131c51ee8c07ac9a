"""One client of the broker: which links it may have, what it sends, what it receives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from qmf.broker.links.filters import read_filters
from qmf.broker.links.links import IncomingLink, LinkRefused, OutgoingLink
from qmf.broker.links.sasl import SaslEngine
from qmf.broker.nodes.queues import OverflowPolicy, Queue
from qmf.broker.nodes.registry import DefaultExchange, NameInUse, Node, NodeRegistry
from qmf.broker.observer import ClientInfo
from qmf.bus.engine.engine import Engine
from qmf.bus.engine.events import (
    Closed,
    CreditChanged,
    Delivery,
    EngineEvent,
    Failed,
    LinkDetached,
    LinkRequested,
    Opened,
    Settled,
)
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Terminus
from qmf.bus.transport import AmqpTransport

log = logging.getLogger("qmf.broker")

#: Links per connection. Consoles and agents have fewer than ten.
LINKS = 1_000


class Connection:
    """A connection that a client made.

    Attributes:
        ended: done when the connection is gone.
        transport: the client's end of it.
        peer: who the client is, once it has opened the connection.
    """

    def __init__(
        self,
        registry: NodeRegistry,
        engine: Engine,
        *,
        open_timeout: float,
        on_start: Callable[[Connection], None],
        on_end: Callable[[Connection], None],
    ) -> None:
        """Args:

        open_timeout: seconds that the client has for its handshakes.
        on_start: called once, when the client is connected; never when its TLS handshake fails.
        on_end: called once after that, when the connection is gone.
        """
        self.ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.transport = AmqpTransport(engine, self, throttle=True)
        self.peer: ClientInfo | None = None
        self._registry = registry
        self._open_timeout = open_timeout
        self._on_start = on_start
        self._on_end = on_end
        self._address = "unknown"
        self._timer: asyncio.TimerHandle | None = None
        self._failed = False
        self._outgoing: dict[Link, OutgoingLink] = {}
        self._incoming: dict[Link, IncomingLink] = {}
        #: Queues that live as long as the link that made them.
        self._owned: dict[Link, Queue] = {}

    def __str__(self) -> str:
        return f"{self._container or 'client'} at {self._address}"

    @property
    def _container(self) -> str:
        return "" if self.peer is None else self.peer.container

    def close(self, condition: str, description: str) -> None:
        """Tell the client that it is over. `ended` is done when it has gone."""
        if self._timer is not None:
            self.transport.abort()  # one that has not said who it is would not answer either
            return
        self.transport.engine.close(condition, description)
        self.transport.flush_soon()

    # Owner of the transport

    def made(self) -> None:
        """See `TransportOwner`."""
        self._on_start(self)
        self._address = self.transport.peer
        self._timer = asyncio.get_running_loop().call_later(self._open_timeout, self._too_late)

    def writable(self) -> None:
        """See `TransportOwner`."""
        for outgoing in self._outgoing.values():
            if len(outgoing.queue):
                outgoing.queue.dispatch()

    def handle(self, event: EngineEvent) -> None:
        """See `TransportOwner`."""
        match event:
            case Delivery():
                if (incoming := self._incoming.get(event.link)) is not None:
                    incoming.arrived(event)
            case Settled():
                if (outgoing := self._outgoing.get(event.link)) is not None:
                    outgoing.settled(event)
            case CreditChanged():
                if (outgoing := self._outgoing.get(event.link)) is not None:
                    outgoing.queue.dispatch()
                    self.transport.engine.drained(event.link)
            case LinkRequested():
                self._on_link(event.link)
            case LinkDetached():
                self._forget(event.link)
            case Opened():
                self._opened()
                self._introduced(event)
            case Closed():
                log.debug("closed: %s %s", self, event.description)
            case Failed():
                self._failure(f"{event.condition}: {event.description}")

    def lost(self, error: Exception | None) -> None:
        """See `TransportOwner`."""
        if self._timer is not None:
            self._failure("it hung up before it had opened", logging.INFO)
        self._opened()
        if error is not None:
            log.debug("lost: %s: %s", self, error)
        for link in [*self._outgoing, *self._incoming]:
            self._forget(link)
        if self.peer is not None:
            self._registry.observer.disconnected(self)
        self.ended.set_result(None)
        self._on_end(self)

    # Details

    def _opened(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _introduced(self, event: Opened) -> None:
        engine = self.transport.engine
        mechanism = engine.mechanism or ""
        anonymous = "anonymous" if mechanism == "ANONYMOUS" else ""
        user = engine.user if isinstance(engine, SaslEngine) else anonymous
        self.peer = ClientInfo(self._address, event.container, user, mechanism, event.properties)
        log.debug("connected: %s", self)
        self._registry.observer.connected(self)

    def _too_late(self) -> None:
        self._timer = None
        self._failure(f"no AMQP open within {self._open_timeout:g} s")
        self.transport.abort()

    def _failure(self, reason: str, level: int = logging.WARNING) -> None:
        """Once per connection, however much garbage follows."""
        if not self._failed:
            self._failed = True
            self._registry.counters.failures += 1
            log.log(level, "dropped %s: %s", self, reason)

    def _on_link(self, link: Link) -> None:
        try:
            if len(self._outgoing) + len(self._incoming) >= LINKS:
                raise LinkRefused("amqp:resource-limit-exceeded", f"a connection may have {LINKS} links")
            if link.sending:
                self._start_outgoing(link)
            else:
                self._start_incoming(link)
        except LinkRefused as refusal:
            log.info("refused link %r of %s: %s", link.name, self, refusal.description)
            self.transport.engine.refuse_link(link, refusal.condition, refusal.description)
        self.transport.flush_soon()

    def _start_outgoing(self, link: Link) -> None:
        """The client wants to receive."""
        source = link.source
        if source is None:
            raise LinkRefused("amqp:invalid-field", "a receiving link needs a source")
        if source.dynamic:
            queue = self._own(link, exclusive=True)
            source = Terminus(queue.name, dynamic=True)
        else:
            target = self._find(source.address or "")
            if source.browse and isinstance(target, Queue):
                raise LinkRefused("amqp:not-implemented", f"queue {target.name!r} cannot be browsed, only consumed")
            if isinstance(target, Queue):
                queue, source = target, Terminus(source.address)
            else:
                queue, source = self._subscribe(link, source, target)
        if queue.exclusive and queue.consumers:
            raise LinkRefused("amqp:resource-locked", f"queue {queue.name!r} belongs to another link")
        self.transport.engine.accept_link(link, source=source, target=link.target)
        outgoing = self._outgoing[link] = OutgoingLink(self.transport, link, queue)
        queue.add(outgoing)
        self._registry.observer.attached(self, outgoing)
        queue.dispatch()

    def _subscribe(self, link: Link, source: Terminus, target: Node) -> tuple[Queue, Terminus]:
        if isinstance(target, DefaultExchange | Queue):
            raise LinkRefused("amqp:not-allowed", "the default exchange cannot be subscribed to")
        try:
            match, applied = read_filters(source.filters)
        except ValueError as error:
            raise LinkRefused("amqp:invalid-field", str(error)) from error
        queue = self._own(link, exclusive=True)
        self._registry.bind(target, queue, match, self)
        return queue, Terminus(source.address, filters=applied)

    def _start_incoming(self, link: Link) -> None:
        """The client wants to send."""
        target = link.target
        if target is None:
            raise LinkRefused("amqp:invalid-field", "a sending link needs a target")
        if target.coordinator:
            raise LinkRefused("amqp:not-implemented", "there are no transactions here")
        node: Node | None = None
        if target.dynamic:
            node = self._own(link, exclusive=False)
            target = Terminus(node.name, dynamic=True)
        elif target.address is not None:
            node = self._find(target.address)
        self.transport.engine.accept_link(link, source=link.source, target=target)
        incoming = self._incoming[link] = IncomingLink(
            self.transport, link, self._registry, node, relay=target.address is None
        )
        self._registry.observer.attached(self, incoming)

    def _find(self, address: str) -> Node:
        target = self._registry.find(address)
        if target is None:
            raise LinkRefused(
                "amqp:not-found", f"no exchange or queue {address!r}; queues are named when the broker is started"
            )
        return target

    def _own(self, link: Link, *, exclusive: bool) -> Queue:
        """A queue that ends with the link, named as qpidd names it (QMF2.md 1.2)."""
        name = f"{self._container}_{link.name}"
        overflow = OverflowPolicy.DROP_OLDEST if exclusive else OverflowPolicy.REFUSE
        try:
            queue = self._registry.declare(name, overflow=overflow, exclusive=exclusive, client=self)
        except NameInUse as error:
            raise LinkRefused(
                "amqp:resource-locked", f"queue {name!r} exists: container id and link name are used by another link"
            ) from error
        self._owned[link] = queue
        return queue

    def _forget(self, link: Link) -> None:
        registry = self._registry
        if (incoming := self._incoming.pop(link, None)) is not None:
            registry.observer.detached(self, incoming)
        if (outgoing := self._outgoing.pop(link, None)) is not None:
            registry.observer.detached(self, outgoing)
            outgoing.end()
        if (queue := self._owned.pop(link, None)) is not None:
            registry.delete(queue, self)
