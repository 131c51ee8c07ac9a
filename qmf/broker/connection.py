"""One client of the broker: which links it may have, what it sends, what it receives."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from qmf.broker.filters import read_filters
from qmf.broker.links import Feed, Intake, Refusal
from qmf.broker.nodes import DefaultExchange, Directory, NameTaken, Target
from qmf.broker.observer import Peer
from qmf.broker.queues import Overflow, Queue
from qmf.broker.sasl import GuardedEngine
from qmf.bus.engine import Engine
from qmf.bus.link import Link
from qmf.bus.values import (
    Closed,
    CreditChanged,
    EngineEvent,
    Failed,
    Incoming,
    LinkDetached,
    LinkRequested,
    Node,
    Opened,
    Settled,
)
from qmf.bus.wire import Wire

log = logging.getLogger("qmf.broker")

#: Links per connection. Consoles and agents have fewer than ten.
LINKS = 1_000


class Connection:
    """A connection that a client made.

    Attributes:
        ended: done when the connection is gone.
        wire: the client's end of it.
        peer: who the client is, once it has opened the connection.
    """

    def __init__(
        self,
        directory: Directory,
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
        self.wire = Wire(engine, self, throttle=True)
        self.peer: Peer | None = None
        self._directory = directory
        self._open_timeout = open_timeout
        self._on_start = on_start
        self._on_end = on_end
        self._address = "unknown"
        self._timer: asyncio.TimerHandle | None = None
        self._failed = False
        self._feeds: dict[Link, Feed] = {}
        self._intakes: dict[Link, Intake] = {}
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
            self.wire.abort()  # one that has not said who it is would not answer either
            return
        self.wire.engine.close(condition, description)
        self.wire.touch()

    # Owner of the wire

    def made(self) -> None:
        """See `Owner`."""
        self._on_start(self)
        self._address = self.wire.peer
        self._timer = asyncio.get_running_loop().call_later(self._open_timeout, self._too_late)

    def writable(self) -> None:
        """See `Owner`."""
        for feed in self._feeds.values():
            if len(feed.queue):
                feed.queue.dispatch()

    def handle(self, event: EngineEvent) -> None:
        """See `Owner`."""
        match event:
            case Incoming():
                if (intake := self._intakes.get(event.link)) is not None:
                    intake.arrived(event)
            case Settled():
                if (feed := self._feeds.get(event.link)) is not None:
                    feed.settled(event)
            case CreditChanged():
                if (feed := self._feeds.get(event.link)) is not None:
                    feed.queue.dispatch()
                    self.wire.engine.drained(event.link)
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
        """See `Owner`."""
        if self._timer is not None:
            self._failure("it hung up before it had opened", logging.INFO)
        self._opened()
        if error is not None:
            log.debug("lost: %s: %s", self, error)
        for link in [*self._feeds, *self._intakes]:
            self._forget(link)
        if self.peer is not None:
            self._directory.observer.disconnected(self)
        self.ended.set_result(None)
        self._on_end(self)

    # Details

    def _opened(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _introduced(self, event: Opened) -> None:
        engine = self.wire.engine
        mechanism = engine.mechanism or ""
        anonymous = "anonymous" if mechanism == "ANONYMOUS" else ""
        user = engine.user if isinstance(engine, GuardedEngine) else anonymous
        self.peer = Peer(self._address, event.container, user, mechanism, event.properties)
        log.debug("connected: %s", self)
        self._directory.observer.connected(self)

    def _too_late(self) -> None:
        self._timer = None
        self._failure(f"no AMQP open within {self._open_timeout:g} s")
        self.wire.abort()

    def _failure(self, reason: str, level: int = logging.WARNING) -> None:
        """Once per connection, however much garbage follows."""
        if not self._failed:
            self._failed = True
            self._directory.counters.failures += 1
            log.log(level, "dropped %s: %s", self, reason)

    def _on_link(self, link: Link) -> None:
        try:
            if len(self._feeds) + len(self._intakes) >= LINKS:
                raise Refusal("amqp:resource-limit-exceeded", f"a connection may have {LINKS} links")
            if link.sending:
                self._start_feed(link)
            else:
                self._start_intake(link)
        except Refusal as refusal:
            log.info("refused link %r of %s: %s", link.name, self, refusal.description)
            self.wire.engine.refuse_link(link, refusal.condition, refusal.description)
        self.wire.touch()

    def _start_feed(self, link: Link) -> None:
        """The client wants to receive."""
        source = link.source
        if source is None:
            raise Refusal("amqp:invalid-field", "a receiving link needs a source")
        if source.dynamic:
            queue = self._own(link, exclusive=True)
            source = Node(queue.name, dynamic=True)
        else:
            target = self._find(source.address or "")
            if source.browse and isinstance(target, Queue):
                raise Refusal("amqp:not-implemented", f"queue {target.name!r} cannot be browsed, only consumed")
            if isinstance(target, Queue):
                queue, source = target, Node(source.address)
            else:
                queue, source = self._subscribe(link, source, target)
        if queue.exclusive and queue.consumers:
            raise Refusal("amqp:resource-locked", f"queue {queue.name!r} belongs to another link")
        self.wire.engine.accept_link(link, source=source, target=link.target)
        feed = self._feeds[link] = Feed(self.wire, link, queue)
        queue.add(feed)
        self._directory.observer.attached(self, feed)
        queue.dispatch()

    def _subscribe(self, link: Link, source: Node, target: Target) -> tuple[Queue, Node]:
        if isinstance(target, DefaultExchange | Queue):
            raise Refusal("amqp:not-allowed", "the default exchange cannot be subscribed to")
        try:
            match, applied = read_filters(source.filters)
        except ValueError as error:
            raise Refusal("amqp:invalid-field", str(error)) from error
        queue = self._own(link, exclusive=True)
        self._directory.bind(target, queue, match, self)
        return queue, Node(source.address, filters=applied)

    def _start_intake(self, link: Link) -> None:
        """The client wants to send."""
        target = link.target
        if target is None:
            raise Refusal("amqp:invalid-field", "a sending link needs a target")
        if target.coordinator:
            raise Refusal("amqp:not-implemented", "there are no transactions here")
        node: Target | None = None
        if target.dynamic:
            node = self._own(link, exclusive=False)
            target = Node(node.name, dynamic=True)
        elif target.address is not None:
            node = self._find(target.address)
        self.wire.engine.accept_link(link, source=link.source, target=target)
        intake = self._intakes[link] = Intake(self.wire, link, self._directory, node, relay=target.address is None)
        self._directory.observer.attached(self, intake)

    def _find(self, address: str) -> Target:
        target = self._directory.find(address)
        if target is None:
            raise Refusal(
                "amqp:not-found", f"no exchange or queue {address!r}; queues are named when the broker is started"
            )
        return target

    def _own(self, link: Link, *, exclusive: bool) -> Queue:
        """A queue that ends with the link, named as qpidd names it (QMF2.md 1.2)."""
        name = f"{self._container}_{link.name}"
        overflow = Overflow.DROP_OLDEST if exclusive else Overflow.REFUSE
        try:
            queue = self._directory.declare(name, overflow=overflow, exclusive=exclusive, client=self)
        except NameTaken as error:
            raise Refusal(
                "amqp:resource-locked", f"queue {name!r} exists: container id and link name are used by another link"
            ) from error
        self._owned[link] = queue
        return queue

    def _forget(self, link: Link) -> None:
        directory = self._directory
        if (intake := self._intakes.pop(link, None)) is not None:
            directory.observer.detached(self, intake)
        if (feed := self._feeds.pop(link, None)) is not None:
            directory.observer.detached(self, feed)
            feed.end()
        if (queue := self._owned.pop(link, None)) is not None:
            directory.delete(queue, self)
