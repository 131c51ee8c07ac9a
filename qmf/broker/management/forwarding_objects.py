"""What the broker forwards as managed objects and events of the package ``qmf.forwarding``."""

from __future__ import annotations

from qmf.agent import Agent
from qmf.broker.management.callers import answers_refusals, current_principal
from qmf.broker.management.events import RaisingObserver
from qmf.broker.management.sampling import SampledObject, SampledObjects, StatisticsSampler
from qmf.broker.management.values import lstr, sstr
from qmf.broker.nodes.observed_definitions import MessageRelay, NodeLink
from qmf.broker.operations.forwarding import QUEUE_LINK, RELAY
from qmf.broker.operations.operations import Operations
from qmf.models.forwarding import agent as model

CLASSES = (model.Relay, model.QueueLink)
EVENTS = (model.DeadLettered, model.QueueLinkChanged)

_NS = 1_000_000_000


class ManagedRelay(model.Relay, SampledObject):
    """What forwards messages to a domain."""

    def __init__(self, relay: MessageRelay, operations: Operations) -> None:
        super().__init__(
            name=sstr(relay.name),
            domain=sstr(relay.domain_name),
            durable=relay.durable,
            transmissionQueue=sstr(relay.queue.name),
            deadLetters=sstr(relay.dead_letters),
        )
        self._relay = relay
        self._operations = operations

    def sample(self) -> None:
        relay = self._relay
        self.state, self.lastError = sstr(relay.state_name), lstr(relay.reason)
        self.since = round(relay.since * _NS)
        self.received.set(relay.counters.received)
        self.forwarded.set(relay.forwarded)
        self.retried.set(relay.retried)
        self.deadLettered.set(relay.dead_lettered)
        self.waiting.set(relay.queue.contents.depth.count)

    @answers_refusals
    def pause(self) -> None:
        self._operations.forwarding.pause(current_principal(), RELAY, self._relay.name)

    @answers_refusals
    def resume(self) -> None:
        self._operations.forwarding.resume(current_principal(), RELAY, self._relay.name)

    @answers_refusals
    def retryDeadLetters(self, count: int) -> model.RelayRetryDeadLettersResult:
        moved = self._operations.forwarding.retry_dead_letters(current_principal(), self._relay.name, count)
        return model.RelayRetryDeadLettersResult(moved=moved)


class ManagedQueueLink(model.QueueLink, SampledObject):
    """A link within the broker."""

    def __init__(self, link: NodeLink, operations: Operations) -> None:
        wanted = link.wanted
        super().__init__(
            name=sstr(link.name),
            source=sstr(wanted.source),
            target=sstr(wanted.target),
            mode=wanted.mode.value,
            selector=lstr(wanted.selector),
            durable=link.durable,
            maxCount=wanted.max_count,
            maxSize=wanted.max_size,
            maxRate=wanted.max_rate,
            creator=sstr(wanted.user),
        )
        self._link = link
        self._operations = operations

    def sample(self) -> None:
        link = self._link
        self.state, self.lastError = sstr(link.state_name), lstr(link.reason)
        self.since = round(link.since * _NS)
        self.passed.set(link.passed)
        self.octets.set(link.octets)
        self.skipped.set(link.skipped)

    @answers_refusals
    def pause(self) -> None:
        self._operations.forwarding.pause(current_principal(), QUEUE_LINK, self._link.name)

    @answers_refusals
    def resume(self) -> None:
        self._operations.forwarding.resume(current_principal(), QUEUE_LINK, self._link.name)


class ForwardingPublisher(RaisingObserver):
    """Adds the objects to the broker's agent and removes them, and raises the events."""

    def __init__(self, agent: Agent, sampler: StatisticsSampler, operations: Operations) -> None:
        """Make the publisher, and add objects for what exists; `sampler`: updates the objects from now on."""
        super().__init__(agent)
        self._operations = operations
        self._relays = SampledObjects[MessageRelay, ManagedRelay](agent, sampler, "Relay")
        self._queue_links = SampledObjects[NodeLink, ManagedQueueLink](agent, sampler, "QueueLink")
        relays, queue_links = operations.forwarding.relays, operations.forwarding.queue_links
        if relays is not None:
            agent.register(*CLASSES, *EVENTS)
        for relay in relays or ():
            self.on_relay_declared(relay)
        for link in queue_links or ():
            self.on_queue_link_declared(link)

    def on_relay_declared(self, relay: MessageRelay) -> None:
        self._relays.add(relay, ManagedRelay(relay, self._operations), sstr(relay.name))

    def on_relay_deleted(self, relay: MessageRelay) -> None:
        self._relays.remove(relay)

    def on_queue_link_declared(self, link: NodeLink) -> None:
        # With the first one: to others, the agent of a broker has the classes of qpidd's.
        self._agent.register(*CLASSES, *EVENTS)
        self._queue_links.add(link, ManagedQueueLink(link, self._operations), sstr(link.name))

    def on_queue_link_deleted(self, link: NodeLink) -> None:
        self._queue_links.remove(link)

    def on_queue_link_changed(self, link: NodeLink) -> None:
        self._raise(model.QueueLinkChanged(name=sstr(link.name), state=sstr(link.state_name), reason=lstr(link.reason)))

    def on_dead_letter(self, domain: str, address: str, reason: str) -> None:
        self._raise(model.DeadLettered(domain=sstr(domain), address=lstr(address), reason=lstr(reason)))
