"""Incoming links of federation: messages of another broker, which are accepted there when they are stored here."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from operator import methodcaller
from typing import TYPE_CHECKING, cast

import attrs

from qmf.broker.client_info import ClientInfo
from qmf.broker.federation.addressed_messages import AddressedMessages, DeadLettersMissing
from qmf.broker.federation.definitions import Domain, LinkDefinition
from qmf.broker.federation.duplicate_ids import without_own_id
from qmf.broker.federation.local_nodes import NodeUnusable, open_target
from qmf.broker.federation.peer_connector import LinkFailed, LinkServices
from qmf.broker.federation.peer_links import KEPT_FOR, BrokerLink
from qmf.broker.federation.peer_nodes import QPIDD, remote_source
from qmf.broker.federation.peer_session import PeerSession
from qmf.broker.federation.repeated_messages import RepeatedMessages
from qmf.broker.federation.tracing import LinkTrace, UnforwardedMessages
from qmf.broker.nodes.link_memory import LinkMemory
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.observed_clients import ClientLink
from qmf.broker.nodes.observed_definitions import RouteMeasure
from qmf.broker.nodes.recorder import NotStored
from qmf.broker.nodes.router import Node
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.publisher import Publisher
from qmf.broker.operations.publishing import reject
from qmf.broker.protocols.amqp.conditions import outcome_of
from qmf.broker.protocols.amqp.incoming import CREDIT_WINDOW
from qmf.broker.protocols.amqp.remembering import AmqpMemory, RememberingIncomingLink
from qmf.broker.protocols.amqp.tagged import window_of
from qmf.broker.refusal import Reason, Refusal
from qmf.bus.client.failures import NetworkFailure
from qmf.bus.client.network_connection import NetworkConnection
from qmf.bus.engine.events import ConfirmedBatch, Delivery, DeliveryBatch
from qmf.bus.engine.link import Link
from qmf.bus.engine.resumption import LINK_RESUMPTION
from qmf.bus.engine.values import Outcome, Terminus
from qmf.bus.transport import AmqpTransport
from qmf.errors import DecodeError

if TYPE_CHECKING:
    from qmf.broker.federation.peer_agent import PeerAgent

log = logging.getLogger("qmf.broker.federation")

#: Seconds that the other broker has to say what waits at a source.
ANSWER_TIMEOUT = 5.0


class PullingLink(RememberingIncomingLink):
    """This broker's end of an incoming link, which returns what it cannot publish now to its source.

    What goes in a circle it rejects: the source drops it, unless its queue there has an alternate exchange.

    Where the link can be resumed, its memory has the delivery tags of what was accepted. Elsewhere it has the ids of
    the last messages, by which those that come again on a later connection are known.
    """

    def __init__(
        self,
        transport: AmqpTransport,
        link: Link,
        publisher: Publisher,
        node: Node | None,
        *,
        origin: ClientInfo,
        on_refused: Callable[[Refusal], None],
        trace: LinkTrace,
        unforwarded: UnforwardedMessages,
        memory: AmqpMemory,
        suppress: bool = False,
        addressed: AddressedMessages | None = None,
        window: int = CREDIT_WINDOW,
    ) -> None:
        """Make an end for a link that is granted.

        Args:
            on_refused: called when a message could not be published, and is returned.
            trace: decides which messages are published.
            unforwarded: counts the others.
            memory: of the link, over its connections.
            addressed: without a node, gives each message the address to which it goes.
            suppress: the peer does not resume links; a message that comes again by its id is not published.
        """
        self.memory = memory
        resumable = link.joined = link.resumption is not None
        super().__init__(
            transport,
            link,
            publisher,
            node,
            origin=origin,
            window=window_of(transport, window) if resumable else window,
            change=methodcaller("after_broker", trace.added) if trace.added else None,
        )
        self._on_refused = on_refused
        self._trace = trace
        self._unforwarded = unforwarded
        self._addressed = addressed
        #: A message was returned: those behind it are as well, so that they stay in order.
        self._returning = False
        #: Messages that are on the way to the disk; what is called when there are none.
        self._storing = 0
        self._on_all_settled: Callable[[], None] | None = None
        #: What the peer may send again, since it does not resume links; None if it does.
        self._repeated = RepeatedMessages(memory) if suppress else None
        if suppress:
            self._singly = True

    def outcome(self, refusal: Refusal | None) -> tuple[Outcome, str, str]:
        """See `IncomingLink`. What is malformed is rejected; what another time may be published is not."""
        if refusal is None or refusal.reason not in (Reason.FULL, Reason.UNAUTHORIZED, Reason.NOT_FOUND):
            return outcome_of(refusal)
        if not self._returning:
            self._returning = True
            self._on_refused(refusal)
        return Outcome.RELEASED, "", ""

    def choose(
        self, deliveries: Iterable[tuple[int | None, bytes]], message_format: int = 0
    ) -> Iterable[tuple[int | None, bytes]]:
        """See `IncomingLink`. What goes in a circle is rejected, and what was accepted is accepted once more.

        What is left comes without the ids that links have given.
        """
        deliveries = super().choose(deliveries, message_format)
        chosen: list[tuple[int | None, bytes]] = []
        if self._returning:
            self._return(tag for tag, _ in deliveries)
            return chosen
        for tag, data in deliveries:
            if reason := self._trace.refusal(data, message_format):
                self._unforwarded.add(reason)
                counters = self._registry.counters
                counters.received += 1
                counters.rejected += 1
                self._settle(Delivery(self.link, tag, data), Refusal(Reason.CIRCULAR, reason))
            elif self._repeated is not None and self._repeated.has(tag, data, message_format):
                self._settle(Delivery(self.link, tag, data))
            elif self._addressed is not None:
                try:
                    own = without_own_id(data, message_format)
                    chosen.append((tag, self._addressed.readdress(own, message_format)))
                except DecodeError as error:
                    self._settle(Delivery(self.link, tag, data), reject(self._registry, error))
            else:
                chosen.append((tag, without_own_id(data, message_format)))
        return chosen

    def _return(self, tags: Iterable[int | None]) -> None:
        """Give messages back to their source."""
        for tag in tags:
            if tag is not None:
                self._transport.engine.decisions.settle(self.link, tag, Outcome.RELEASED)
        self._transport.flush_soon()

    def _publish_all(self, messages: Sequence[Message], tags: Sequence[int | None], node: Node | None) -> None:
        """See `IncomingLink`. Where a queue may have no room, one by one: nothing overtakes what is returned."""
        if len(messages) <= 1 or self._has_room(messages, node):
            self._publish_in_parts(messages, tags, node)
            return
        for place, message in enumerate(messages):
            if self._returning:
                self._return(tags[place:])
                return
            super()._publish_all([message], tags[place : place + 1], node)

    def _publish_in_parts(self, messages: Sequence[Message], tags: Sequence[int | None], node: Node | None) -> None:
        """Publish messages that have room, those that are not stored in parts: the peer sends while the next is done.

        What is stored is one unit. It has no outcome, and gives no credit, before it is on the disk.
        """
        part = max(self._window // 2, 1)  # after which there is credit
        if len(messages) <= part or (messages[0].durable and self._registry.recorder is not None):
            super()._publish_all(messages, tags, node)
            return
        for start in range(0, len(messages), part):
            super()._publish_all(messages[start : start + part], tags[start : start + part], node)
            self._transport.write_meanwhile()

    def _has_room(self, messages: Sequence[Message], node: Node | None) -> bool:
        """True if the queues of the first message would take as many, as large as the largest of them."""
        count, size = len(messages), len(messages) * max(len(message.data) for message in messages)
        return all(queue.has_room(count, size) for queue in self._registry.targets(node, messages[0]))

    def when_settled(self, callback: Callable[[], None]) -> None:
        """Call something when the messages that were published have their outcomes."""
        self._on_all_settled = callback
        self._see_whether_settled()

    def _see_whether_settled(self) -> None:
        if not self._storing and self._on_all_settled is not None:
            self._on_all_settled()
            self._on_all_settled = None

    def _on_all_stored(self, events: Sequence[Delivery], refused: Mapping[int, str], error: NotStored | None) -> None:
        super()._on_all_stored(events, refused, error)
        self._storing -= len(events) - len(refused)
        self._see_whether_settled()

    def on_published(self, events: Sequence[Delivery]) -> None:
        self._storing += len(events)
        if self._repeated is None:
            super().on_published(events)
        else:
            self._repeated.begin({event.delivery_tag: (self, event) for event in events})

    def _settle(self, event: Delivery, refusal: Refusal | None = None, transaction: bytes | None = None) -> None:
        if self._repeated is not None:
            self._repeated.end(event.delivery_tag, accepted=refusal is None)
        super()._settle(event, refusal, transaction)


class IncomingBrokerLink(BrokerLink):
    """A link from another broker to a node of this one."""

    def __init__(self, definition: LinkDefinition, domain: Domain, services: LinkServices, who: str = "") -> None:
        super().__init__(definition, domain, services, who)
        self._pulling: PullingLink | None = None
        #: Of a link whose messages go to the nodes of their addresses.
        self._addressed: AddressedMessages | None = None
        #: What was accepted of each broker at which the domain's URLs lead, by its container id.
        self._memories: dict[str, AmqpMemory] = {}
        #: What the other broker was told that was accepted, when the link was asked for the last time.
        self._listed: list[int] = []
        #: When the other broker was asked what waits at the source, and what had passed then; until it answers.
        self._asked: tuple[float, int] | None = None
        #: The other broker does not answer flows.
        self._silent = False
        #: Its agent, where that is asked instead; and a connection on which it does not answer.
        self._agent: PeerAgent | None = None
        self._unasked: NetworkConnection | None = None

    def check(self) -> None:
        self._open_target()

    def remove(self) -> None:
        super().remove()
        memories = self._operations.registry.memories
        for name in memories.names(self._memory_name("")):
            memories.remove(name)

    def _memory_name(self, peer: str) -> str:
        return f"{self.definition.container} {peer}"

    def _memory(self, network: NetworkConnection) -> AmqpMemory:
        """What was accepted of the broker of a connection."""
        peer = network.peer.container
        if self.durable:
            return cast(AmqpMemory, self._operations.registry.memories.find(self._memory_name(peer)))
        return self._memories.setdefault(peer, LinkMemory())

    def measure(self) -> RouteMeasure:
        """See `PeerRoute`. The other broker is asked, and its answer is there in the next call."""
        network, link, now = self._network, self._link, self._loop.time()
        if network is None or link is None or self._pulling is None:
            self._asked, self._silent = None, False
            self.lag.forget()
            return RouteMeasure()
        if self._asked is not None and link.available is not None:
            at, passed = self._asked
            self.lag.measure(at, passed + link.available, link.available)
            self._asked = None
        elif self._asked is not None and now - self._asked[0] > ANSWER_TIMEOUT:
            self._asked, self._silent = None, True
            self.lag.forget()
        if self._asked is None:
            link.available = None
            if self._ask_agent(link) if self._silent else network.engine.ask_state(link):
                self._asked = now, self.transfers
                network.transport.flush_soon()
        return RouteMeasure(self.lag.waiting, self.lag.behind(now, self.transfers))

    def _ask_agent(self, link: Link) -> bool:
        """Ask the agent of the other broker what waits at the source; its answer is `Link.available`.

        Returns:
            False if there is none, or it has not answered on this connection.
        """
        network = self._network
        if network is None or network.peer.product != QPIDD or network is self._unasked:
            return False
        self._tasks.spawn(self._read_depth(network, link))
        return True

    async def _read_depth(self, network: NetworkConnection, link: Link) -> None:
        # The protocol of agents takes long to import, and most links never need it.
        from qmf.broker.federation.peer_agent import PeerAgent, PeerRefusal

        try:
            if self._agent is None:
                self._agent = PeerAgent(network)
                await self._agent.open()
            for queue in self.source_queues():
                if (depth := await self._agent.depth_of(queue)) is not None:
                    link.available = depth
                    return
            reason = "it has no such queue"
        except (PeerRefusal, NetworkFailure) as error:
            reason = str(error)
        self._unasked = network
        log.info("%s: what waits at the source is not known: %s", self._who, reason)

    def source_queues(self) -> Sequence[str]:
        """Names that the queue may have in which messages wait at a qpidd: that of an exchange has one by the link."""
        definition = self.definition
        subscription = f"{definition.container}_{definition.name}"
        return (subscription,) if definition.peer_type == "topic" else (definition.source, subscription)

    async def attach_links(self, network: NetworkConnection) -> None:
        if LINK_RESUMPTION not in network.peer.capabilities:  # what comes again is known when it is stored
            stored = asyncio.Event()
            self._memory(network).when_stored(stored.set)
            await stored.wait()
        await super().attach_links(network)

    def lose(self, failure: NetworkFailure) -> None:
        agent, self._agent = self._agent, None
        if agent is not None:
            agent.lose(failure)
        super().lose(failure)

    def _open_target(self) -> tuple[Publisher, Node | None]:
        definition = self.definition
        if definition.by_address:
            try:
                self._addressed = AddressedMessages(self._operations, definition.principal, definition.dead_letters)
            except DeadLettersMissing as error:
                raise NodeUnusable(str(error)) from error
            return self._addressed.publisher, None
        publisher, node = open_target(definition, self._operations)
        self.nodes = (node,)
        return publisher, node

    def on_delivery(self, delivery: Delivery) -> None:
        if self._pulling is not None:
            self._pulling.on_delivery(delivery)

    def on_deliveries(self, batch: DeliveryBatch) -> None:
        if self._pulling is not None:
            self._pulling.on_deliveries(batch.deliveries)

    def on_confirmed(self, batch: ConfirmedBatch) -> None:
        if self._pulling is not None:
            self._pulling.on_confirmed(batch.delivery_tags)

    def _request(self, network: NetworkConnection) -> Link:
        definition = self.definition
        try:
            self.check()
            source = self.source_terminus(network.peer.product)
        except (NodeUnusable, OperationRefused) as error:
            raise LinkFailed(str(error)) from error
        memory = self._memory(network)
        self._listed = memory.accepted
        known: dict[int, Outcome | None] = dict.fromkeys(self._listed, Outcome.ACCEPTED)
        resumption = self._resumption(network, {**known, **dict.fromkeys(memory.storing)})
        return network.engine.links.attach(
            definition.name,
            is_sender=False,
            terminus=source if resumption is None else attrs.evolve(source, timeout=KEPT_FOR),
            own_terminus=Terminus(definition.target),
            unsettled=True,
            resumption=resumption,
        )

    def source_terminus(self, product: str) -> Terminus:
        """The source at the other broker, which is a product.

        Raises:
            NodeUnusable: it does not have what the link asks for.
        """
        return remote_source(self.definition, product)

    def _begin(self, network: NetworkConnection, link: Link, session: PeerSession) -> ClientLink:
        try:
            publisher, node = self._open_target()
        except (NodeUnusable, OperationRefused) as error:
            raise LinkFailed(str(error)) from error
        memory = self._memory(network)
        if link.resumption is not None:
            # What was stored since it was asked comes again: it was not listed.
            memory.confirm([tag for tag in self._listed if tag not in link.resumption.unsettled])
        pulling = self._pulling = PullingLink(
            network.transport,
            link,
            publisher,
            node,
            origin=session.info,
            on_refused=self._on_refused,
            trace=self._trace(network),
            unforwarded=self.unforwarded,
            memory=memory,
            addressed=self._addressed,
            suppress=LINK_RESUMPTION not in network.peer.capabilities,
            window=min(self.definition.window or CREDIT_WINDOW, CREDIT_WINDOW),
        )
        pulling.begin()
        return pulling

    def _finish(self) -> None:
        pulling, self._pulling = self._pulling, None
        if pulling is not None:
            pulling.end()

    def _on_refused(self, refusal: Refusal) -> None:
        if refusal.reason is Reason.FULL:
            target = self.definition.target or "the node of a message"
            drop = partial(self.drop, f"no room in {target!r}: {refusal.description}")
            if self._pulling is not None:  # what is not accepted on this connection would come again on the next one
                self._pulling.when_settled(drop)
        else:
            self._loop.call_soon(self.fail, refusal.description)
