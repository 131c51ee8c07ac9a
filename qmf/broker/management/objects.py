"""Publishes a managed object for everything that a broker has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable
from functools import partial
from typing import Any, TypeVar

from qmf.agent import Agent, ManagedObject
from qmf.broker.management.administration import Administration
from qmf.broker.management.client_objects import ConnectionLinks, ManagedConnection, ManagedSession
from qmf.broker.management.link_objects import ManagedIncoming, ManagedOutgoing, ManagedSubscription
from qmf.broker.management.memory import ManagedMemory
from qmf.broker.management.node_objects import (
    BROKER,
    ManagedBinding,
    ManagedBroker,
    ManagedExchange,
    ManagedQueue,
    ManagedQueuePolicy,
    ManagedSystem,
    ManagedTopic,
    ManagedTopicPolicy,
    ManagedVhost,
)
from qmf.broker.management.peer_objects import ManagedBridge, ManagedDomain, ManagedLink
from qmf.broker.management.sampling import SampledObject, SampledObjects, StatisticsSampler
from qmf.broker.management.setup import BrokerSetup
from qmf.broker.management.values import sstr
from qmf.broker.nodes.bindings import Binding, BindingSpec
from qmf.broker.nodes.exchanges import DefaultExchange, Exchange
from qmf.broker.nodes.observed_clients import BrokerClient, ClientLink, ClientSession
from qmf.broker.nodes.observed_definitions import PeerBridge, PeerDomain, PeerLink, PeerRoute
from qmf.broker.nodes.observer import BrokerObserver
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.topics import NodePolicy, PolicyKind, Topic
from qmf.broker.operations.operations import Operations
from qmf.broker.process_control import ProcessControl
from qmf.models.broker import agent as model

#: All classes that consoles can query, whether or not there are objects.
CLASSES = (
    model.System,
    model.Memory,
    model.Broker,
    model.Vhost,
    model.Exchange,
    model.Queue,
    model.Binding,
    model.Connection,
    model.Session,
    model.Subscription,
    model.Incoming,
    model.Outgoing,
    model.Domain,
    model.Link,
    model.Bridge,
    model.Topic,
    model.QueuePolicy,
    model.TopicPolicy,
)

_BindingKey = tuple[Exchange | DefaultExchange, Queue, str]
_L = TypeVar("_L", ManagedIncoming, ManagedOutgoing)


class ObjectPublisher(BrokerObserver):
    """Adds objects to the broker's agent, and removes them, as what they represent comes and goes.

    Attributes:
        deferred: objects that are made when they are needed, by class (`deferral`).
    """

    def __init__(self, agent: Agent, sampler: StatisticsSampler, operations: Operations, listening: str) -> None:
        """Make the publisher; it adds no object yet.

        Args:
            sampler: updates the objects from now on.
            listening: host and port that the broker listens on.
        """
        self._agent = agent
        self._sampler = sampler
        self._registry = operations.registry
        self._federation = operations.forwarding.federation
        self._administration = Administration(operations)
        self._listening = listening
        self._exchanges = SampledObjects[Exchange | DefaultExchange, ManagedExchange](agent, sampler, "Exchange")
        self._queues = SampledObjects[Queue, ManagedQueue](agent, sampler, "Queue")
        #: By exchange, queue and binding key.
        self._bindings = SampledObjects[_BindingKey, ManagedBinding](agent, sampler, "Binding")
        self._connections = SampledObjects[ClientSession, ManagedConnection](agent, sampler, "Connection")
        self._sessions = SampledObjects[tuple[ClientSession, Hashable], ManagedSession](agent, sampler, "Session")
        self._subscriptions = SampledObjects[ClientLink, ManagedSubscription](agent, sampler, "Subscription")
        self._incoming = SampledObjects[ClientLink, ManagedIncoming](agent, sampler, "Incoming")
        self._outgoing = SampledObjects[ClientLink, ManagedOutgoing](agent, sampler, "Outgoing")
        self._domains = SampledObjects[PeerDomain, ManagedDomain](agent, sampler, "Domain")
        self._peer_links = SampledObjects[PeerLink, ManagedLink](agent, sampler, "Link")
        self._bridges = SampledObjects[PeerBridge, ManagedBridge](agent, sampler, "Bridge")
        self._routes = SampledObjects[PeerRoute, SampledObject](agent, sampler, "Route")
        self._topics = SampledObjects[Topic, ManagedTopic](agent, sampler, "Topic")
        self._queue_policies = SampledObjects[NodePolicy, ManagedQueuePolicy](agent, sampler, "QueuePolicy")
        self._topic_policies = SampledObjects[NodePolicy, ManagedTopicPolicy](agent, sampler, "TopicPolicy")
        #: The most receivers that queues have had whose objects wait.
        self._highs: dict[Queue, int] = {}
        #: The links of each client.
        self._links: dict[ClientSession, ConnectionLinks] = {}
        #: Objects that are made when they are needed, since most of them come and go unseen.
        self.deferred: dict[type[ManagedObject], SampledObjects[Any, Any]] = {
            model.Queue: self._queues,
            model.Binding: self._bindings,
            model.Connection: self._connections,
            model.Session: self._sessions,
            model.Subscription: self._subscriptions,
            model.Incoming: self._incoming,
            model.Outgoing: self._outgoing,
        }
        #: Numbers of the senders to exchanges that have some.
        self._producers: Counter[Exchange | DefaultExchange] = Counter()
        for cls, objects in self.deferred.items():
            agent.fill(cls, objects.fill)

    def publish_existing(self, process: ProcessControl | None, setup: BrokerSetup) -> None:
        """Add objects for what exists from the start. Called once, before all other methods.

        Args:
            process: what consoles may change in the process of the broker; None for nothing.
        """
        registry = self._registry
        system = ManagedSystem(setup.system_id)
        broker = ManagedBroker(system, registry, process, setup, self._administration)
        vhost = self._vhost = ManagedVhost(broker, sstr(setup.tag))
        self._tag = setup.tag
        self._add_single("System", system)
        self._add_single("Memory", ManagedMemory(BROKER))
        self._add_single("Broker", broker)
        if setup.access is not None:
            # Imported here, so that a broker without access control does not load it.
            from qmf.broker.management.access_object import ManagedAccess
            from qmf.broker.management.acl_object import ManagedAcl

            self._add_single("Access", ManagedAccess(setup.access))
            self._add_single("Acl", ManagedAcl(broker, setup.access, setup.connection_limits))
        if setup.certificate is not None:
            from qmf.broker.management.certificate_object import ManagedCertificate  # as above

            self._add_single("Certificate", ManagedCertificate(self._agent, setup.certificate))
        self._add_single("Vhost", vhost)
        # Object ids leave out the virtual host, as qpidd's do: it is always the same.
        exchanges: list[Exchange | DefaultExchange] = [registry.default_exchange, *registry.exchanges]
        for exchange in exchanges:
            self._exchanges.add(exchange, ManagedExchange(vhost, exchange), exchange.name)
        for queue in registry.queues:
            self._add_queue(queue, creator="")
        for exchange in registry.exchanges:  # a store may have had bindings
            for binding in exchange.all_bindings():
                self._add_binding(exchange, binding)
        self._queues.fill()
        self._bindings.fill()
        for topic in registry.topics.topics:
            self.on_topic_declared(topic)
        for policy in registry.topics.policies:
            self.on_policy_declared(policy)
        if self._federation is not None:
            for domain in self._federation.domains:
                self.on_domain_declared(domain)
            for link in (*self._federation.links, *self._federation.route_links):
                self.on_link_declared(link)
            for bridge in self._federation.bridges:
                self.on_bridge_declared(bridge)
            for route in self._federation.routes:
                self.on_route_declared(route)

    def _add_single(self, name: str, obj: SampledObject) -> None:
        """Add the only object of a class."""
        SampledObjects[str, SampledObject](self._agent, self._sampler, name).add("", obj)

    def connection(self, client: ClientSession) -> ManagedConnection | None:
        """The object of a client's connection, if there is one."""
        return self._connections.get(client)

    def queue(self, queue: Queue) -> ManagedQueue | None:
        """The object of a queue, if there is one."""
        return self._queues.get(queue)

    def on_connected(self, client: ClientSession) -> None:
        links = self._links[client] = ConnectionLinks()
        self._connections.add_later(client, partial(self._make_connection, client, links))

    def on_disconnected(self, client: ClientSession) -> None:
        self._connections.remove(client)
        del self._links[client]

    def on_exchange_declared(self, exchange: Exchange, client: BrokerClient | None) -> None:  # noqa: ARG002
        alternate = self._alternate(exchange.settings.alternate)
        self._exchanges.add(exchange, ManagedExchange(self._vhost, exchange, alternate), exchange.name)

    def on_exchange_deleted(self, exchange: Exchange, client: BrokerClient | None) -> None:  # noqa: ARG002
        for binding in exchange.all_bindings():
            self._remove_binding(exchange, binding.queue, binding.spec.key)
        self._exchanges.remove(exchange)

    def on_queue_declared(self, queue: Queue, client: BrokerClient | None) -> None:
        self._add_queue(queue, creator="" if client is None else client.info.user)

    def on_queue_deleted(self, queue: Queue, client: BrokerClient | None) -> None:  # noqa: ARG002
        self._bindings.remove((self._registry.default_exchange, queue, queue.name))
        for exchange in self._registry.exchanges:
            self._remove_bindings(exchange, queue)
        self._queues.remove(queue)
        self._highs.pop(queue, None)

    def on_bound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:  # noqa: ARG002
        if (binding := exchange.binding(queue, spec.key)) is not None:
            self._add_binding(exchange, binding)

    def on_unbound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:  # noqa: ARG002
        self._remove_binding(exchange, queue, spec.key)

    def on_topic_declared(self, topic: Topic) -> None:
        self._topics.add(topic, ManagedTopic(topic, self._exchanges.get(topic.exchange)))

    def on_topic_deleted(self, topic: Topic) -> None:
        self._topics.remove(topic)

    def on_policy_declared(self, policy: NodePolicy) -> None:
        if policy.kind is PolicyKind.QUEUE:
            self._queue_policies.add(policy, ManagedQueuePolicy(policy))
        else:
            self._topic_policies.add(policy, ManagedTopicPolicy(policy))

    def on_policy_deleted(self, policy: NodePolicy) -> None:
        self._queue_policies.remove(policy)
        self._topic_policies.remove(policy)

    def on_domain_declared(self, domain: PeerDomain) -> None:
        self._domains.add(domain, ManagedDomain(domain))

    def on_domain_deleted(self, domain: PeerDomain) -> None:
        self._domains.remove(domain)

    def on_link_declared(self, link: PeerLink) -> None:
        delete = partial(self._administration.delete, link.kind, link.name, {})
        managed = ManagedLink(self._vhost, link, self._connections.get, delete, self._administration)
        self._peer_links.add(link, managed, sstr(link.name))

    def on_link_deleted(self, link: PeerLink) -> None:
        self._peer_links.remove(link)

    def on_bridge_declared(self, bridge: PeerBridge) -> None:
        link = self._peer_links.get(bridge.link)
        if link is None:
            return
        delete = partial(self._administration.delete, bridge.kind, bridge.name, {})
        self._bridges.add(bridge, ManagedBridge(link, bridge, delete), sstr(f"{link.name},{bridge.name}"))
        link.bridges.add(bridge)

    def on_bridge_deleted(self, bridge: PeerBridge) -> None:
        self._bridges.remove(bridge)
        if (link := self._peer_links.get(bridge.link)) is not None:
            link.bridges.discard(bridge)

    def on_route_declared(self, route: PeerRoute) -> None:
        # Imported here, so that a broker without routes does not load it. Consoles see the class with the first one.
        from qmf.broker.management.route_objects import ManagedRoute

        self._routes.add(route, ManagedRoute(self._tag, route), sstr(f"{route.ends.link},{route.name}"))

    def on_route_deleted(self, route: PeerRoute) -> None:
        self._routes.remove(route)

    def on_attached(self, client: ClientSession, link: ClientLink) -> None:
        links = self._links.get(client)
        if links is None:
            return
        if links.add(link):
            self._sessions.add_later((client, link.session), partial(self._make_session, client, link.session))
        if (queue := link.queue) is None:
            self._incoming.add_later(link, partial(self._make_link, ManagedIncoming, client, link))
            self._count_producer(link, 1)
            return
        self._outgoing.add_later(link, partial(self._make_link, ManagedOutgoing, client, link))
        self._subscriptions.add_later(link, partial(self._make_subscription, client, link, queue))
        if (queue_object := self._queues.get_made(queue)) is not None:
            queue_object.sample_consumers()
        else:
            self._highs[queue] = max(self._highs.get(queue, 0), queue.delivery.receiver_count)

    def on_detached(self, client: ClientSession, link: ClientLink) -> None:
        links = self._links.get(client)
        if links is None:
            return
        if link.queue is None:
            self._incoming.remove(link)
            self._count_producer(link, -1)
        self._outgoing.remove(link)
        self._subscriptions.remove(link)
        if links.remove(link):
            self._sessions.remove((client, link.session))

    def _count_producer(self, link: ClientLink, change: int) -> None:
        if (exchange := link.exchange) is None:
            return
        self._producers[exchange] += change
        if (exchange_object := self._exchanges.get(exchange)) is not None:
            exchange_object.producerCount.set(self._producers[exchange])
        if not self._producers[exchange]:
            del self._producers[exchange]

    def _alternate(self, name: str) -> ManagedExchange | None:
        found = self._registry.exchange(name) if name else None
        return self._exchanges.get(found) if isinstance(found, Exchange) else None

    def _add_queue(self, queue: Queue, *, creator: str) -> None:
        self._queues.add_later(queue, partial(self._make_queue, queue, creator))
        self._add_binding(self._registry.default_exchange, self._registry.default_binding(queue))

    def _add_binding(self, exchange: Exchange | DefaultExchange, binding: Binding) -> None:
        if (source := self._exchanges.get(exchange)) is None:
            return
        source.sample_bindings()
        if (target := self._queues.get_made(binding.queue)) is not None:
            target.count_binding(1)
        key = (exchange, binding.queue, binding.spec.key)
        self._bindings.add_later(key, partial(self._make_binding, source, binding))

    def _make_connection(self, client: ClientSession, links: ConnectionLinks) -> tuple[ManagedConnection, str]:
        connection = ManagedConnection(self._vhost, client, links, self._listening)
        return connection, connection.address

    def _make_session(self, client: ClientSession, session: Hashable) -> tuple[ManagedSession, str] | None:
        if (connection := self._connections.get(client)) is None:
            return None
        made = ManagedSession(self._vhost, connection, session, self._links[client].sessions[session])
        return made, made.name

    def _make_link(self, cls: type[_L], client: ClientSession, link: ClientLink) -> tuple[_L, None] | None:
        connection, session = self._connections.get(client), self._sessions.get((client, link.session))
        return None if connection is None or session is None else (cls(session, connection, link), None)

    def _make_subscription(
        self, client: ClientSession, link: ClientLink, queue: Queue
    ) -> tuple[ManagedSubscription, None] | None:
        if (session := self._sessions.get((client, link.session))) is None:
            return None
        return ManagedSubscription(session, self._queues.get(queue), link, queue), None

    def _make_queue(self, queue: Queue, creator: str) -> tuple[ManagedQueue, str]:
        made = ManagedQueue(
            self._vhost,
            queue,
            self._administration,
            alternate=self._alternate(queue.settings.alternate),
            creator=creator,
        )
        made.consumerCount.set(self._highs.pop(queue, 0))
        for exchange in self._registry.exchanges:
            for _ in exchange.bindings(queue):
                made.count_binding(1)
        return made, made.name

    def _make_binding(self, source: ManagedExchange, binding: Binding) -> tuple[ManagedBinding, None] | None:
        target = self._queues.get(binding.queue)
        return None if target is None else (ManagedBinding(source, target, binding), None)

    def _remove_binding(self, exchange: Exchange, queue: Queue, key: str) -> None:
        self._bindings.remove((exchange, queue, key))
        if (queue_object := self._queues.get(queue)) is not None:
            queue_object.count_binding(-1)

    def _remove_bindings(self, exchange: Exchange, queue: Queue) -> None:
        for binding in exchange.bindings(queue):
            self._bindings.remove((exchange, queue, binding.spec.key))
