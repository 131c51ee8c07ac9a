"""Durable nodes and their bindings: recorded when they are created and deleted, and created again at a start."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence

from qmf.broker.nodes.bindings import BindingRefused, BindingSpec
from qmf.broker.nodes.exchanges import Exchange
from qmf.broker.nodes.message import read_message
from qmf.broker.nodes.node_declaration import NodeDeclarationError, properties_of, read_node_declaration
from qmf.broker.nodes.observed_clients import BrokerClient, ClientLink
from qmf.broker.nodes.observed_definitions import NodeLink, ObservedDefinition
from qmf.broker.nodes.observer import BrokerObserver
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NameInUse, NodeRegistry, NoSuchExchange
from qmf.broker.nodes.settings import Lifetime, OverflowPolicy
from qmf.broker.nodes.topics import NodePolicy, PolicyKind, Topic, TopicError
from qmf.broker.store.errors import StoreDamaged
from qmf.broker.store.folder import DataFolder
from qmf.broker.store.journal import Journal
from qmf.broker.store.pages import MessagePages
from qmf.broker.store.store import Store
from qmf.broker.store.unit import Definition, DefinitionKind, StoredMessage
from qmf.errors import DecodeError

log = logging.getLogger("qmf.broker.store")

#: Field of a queue: it had a receiver or browser. If it deletes itself, that happens when it has none after a start.
_USED = "qmf.used"

#: Field of a queue that never had a receiver: none of its messages was delivered.
_UNTOUCHED = "qmf.untouched"

#: What durable policies are in the store.
_POLICIES = {DefinitionKind.QUEUE_POLICY: PolicyKind.QUEUE, DefinitionKind.TOPIC_POLICY: PolicyKind.TOPIC}

#: What forwards messages. The broker restores it itself, when its nodes are there.
_FORWARDERS = frozenset(
    {
        DefinitionKind.DOMAIN,
        DefinitionKind.INCOMING,
        DefinitionKind.OUTGOING,
        DefinitionKind.LINK,
        DefinitionKind.BRIDGE,
        DefinitionKind.RELAY,
        DefinitionKind.QUEUE_LINK,
    }
)

#: Exchange, queue and key: identifies a binding.
_BindingKey = tuple[str, str, str]


class DefinitionRecorder(BrokerObserver):
    """Records the durable nodes of a broker, and restores them."""

    def __init__(
        self, store: Store, journal: Journal, pages: MessagePages, registry: NodeRegistry, folder: DataFolder
    ) -> None:
        self._pages = pages
        self._store = store
        self._journal = journal
        self._registry = registry
        self._path = folder.database
        self._nodes: dict[Queue | Exchange, int] = {}
        self._bindings: dict[_BindingKey, int] = {}
        self._named: dict[Topic | NodePolicy, int] = {}
        self._forwarders: dict[tuple[DefinitionKind, str], int] = {}
        #: Queues that delete themselves, and never had a receiver.
        self._unused: set[Queue] = set()
        #: Queues of which no message was delivered, since they never had a receiver.
        self._untouched: set[Queue] = set()
        #: Those of an earlier run that had one.
        self._left: list[Queue] = []

    def restore(self) -> None:
        """Create the nodes, bindings and messages of the store. To be called before the recorder is an observer.

        Raises:
            StoreDamaged: something in the store cannot be restored; names it.
        """
        definitions = self._store.definitions
        queues: dict[int, Queue] = {}
        for each in definitions:
            try:
                if each.kind is DefinitionKind.BINDING:
                    self._restore_binding(each)
                elif each.kind in (DefinitionKind.TOPIC, *_POLICIES):
                    self._restore_named(each)
                elif each.kind is DefinitionKind.REMEMBERED_LINK:
                    continue  # see `StoredMemories`
                elif each.kind in _FORWARDERS:
                    self._forwarders[each.kind, each.name] = each.id
                elif isinstance(node := self._restore_node(each), Queue):
                    queues[each.id] = node
            except (
                NodeDeclarationError,
                NameInUse,
                NoSuchExchange,
                BindingRefused,
                TopicError,
                KeyError,
                TypeError,
            ) as error:
                raise StoreDamaged(
                    self._path, f"{each.kind.value} {each.name!r} cannot be restored: {error}"
                ) from error
        self._restore_messages(queues, self._store.recover())

    @property
    def forwarders(self) -> Sequence[Definition]:
        """What forwards messages, in the order in which they were created; they are not restored here."""
        return [each for each in self._store.definitions if each.kind in _FORWARDERS]

    def end_unused(self) -> None:
        """Delete the restored queues that delete themselves after their use, or start the time after which they do.

        To be called once, when the recorder is an observer.
        """
        left, self._left = self._left, []
        for queue in left:
            if queue.settings.lifetime is Lifetime.ON_CLOSE:
                self._registry.delete_queue(queue)
            else:
                self._registry.on_unused(queue)

    # Observer

    def on_exchange_declared(self, exchange: Exchange, client: BrokerClient | None) -> None:  # noqa: ARG002
        if exchange.settings.durable:
            self._nodes[exchange] = self._define(DefinitionKind.EXCHANGE, exchange.name, properties_of(exchange))

    def on_exchange_deleted(self, exchange: Exchange, client: BrokerClient | None) -> None:  # noqa: ARG002
        self._forget(exchange, [key for key in self._bindings if key[0] == exchange.name])

    def on_queue_declared(self, queue: Queue, client: BrokerClient | None) -> None:  # noqa: ARG002
        if queue.settings.durable:
            self._nodes[queue] = self._define(
                DefinitionKind.QUEUE, queue.name, {**properties_of(queue), _UNTOUCHED: True}
            )
            self._untouched.add(queue)
            self._journal.attach(queue, self._nodes[queue])
            if queue.settings.auto_delete:
                self._unused.add(queue)
        self._set_pager(queue)

    def on_queue_deleted(self, queue: Queue, client: BrokerClient | None) -> None:  # noqa: ARG002
        self._unused.discard(queue)
        self._untouched.discard(queue)
        self._forget(queue, [key for key in self._bindings if key[1] == queue.name])

    def on_bound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:  # noqa: ARG002
        if queue.settings.durable and (exchange.settings.durable or self._registry.is_predeclared(exchange)):
            fields: dict[str, object] = {
                "exchange": exchange.name,
                "queue": queue.name,
                "key": spec.key,
                "arguments": dict(spec.headers),
            }
            key = (exchange.name, queue.name, spec.key)
            self._bindings[key] = self._define(DefinitionKind.BINDING, "\n".join(key), fields)

    def on_unbound(self, exchange: Exchange, queue: Queue, spec: BindingSpec, client: BrokerClient | None) -> None:  # noqa: ARG002
        if (id := self._bindings.pop((exchange.name, queue.name, spec.key), None)) is not None:
            self._journal.undefine(id)

    def on_topic_declared(self, topic: Topic) -> None:
        if topic.durable:
            fields = {**topic.properties, "exchange": topic.exchange.name, "durable": True}
            self._named[topic] = self._define(DefinitionKind.TOPIC, topic.name, fields)

    def on_policy_declared(self, policy: NodePolicy) -> None:
        if policy.durable:
            kind = next(kind for kind, made in _POLICIES.items() if made is policy.kind)
            self._named[policy] = self._define(kind, policy.pattern, dict(policy.properties))

    def on_topic_deleted(self, topic: Topic) -> None:
        self._forget_named(topic)

    def on_policy_deleted(self, policy: NodePolicy) -> None:
        self._forget_named(policy)

    def on_forwarder_declared(self, forwarder: ObservedDefinition) -> None:
        key = (DefinitionKind(forwarder.kind), forwarder.name)
        if forwarder.durable and key not in self._forwarders:  # otherwise it is being restored
            self._forwarders[key] = self._define(*key, dict(forwarder.fields))

    def on_forwarder_deleted(self, forwarder: ObservedDefinition) -> None:
        if (id := self._forwarders.pop((DefinitionKind(forwarder.kind), forwarder.name), None)) is not None:
            self._journal.undefine(id)

    def on_queue_link_advanced(self, link: NodeLink) -> None:
        kind = DefinitionKind.QUEUE_LINK
        if (id := self._forwarders.get((kind, link.name))) is not None:
            self._journal.define(Definition(id, kind, link.name, dict(link.fields)))

    def on_attached(self, client: BrokerClient, link: ClientLink) -> None:  # noqa: ARG002
        queue = link.queue
        touched = queue in self._untouched and not link.browsing
        if queue is None or not (touched or queue in self._unused):
            return
        self._unused.discard(queue)
        fields: dict[str, object] = {**properties_of(queue), _USED: True}
        if touched:
            self._untouched.discard(queue)
        elif queue in self._untouched:
            fields[_UNTOUCHED] = True
        self._journal.define(Definition(self._nodes[queue], DefinitionKind.QUEUE, queue.name, fields))

    # Details

    def _define(self, kind: DefinitionKind, name: str, fields: dict[str, object]) -> int:
        id = self._store.next_definition_id()
        self._journal.define(Definition(id, kind, name, fields))
        return id

    def _forget(self, node: Queue | Exchange, bindings: Iterable[_BindingKey]) -> None:
        for key in bindings:
            self._journal.undefine(self._bindings.pop(key))
        if (id := self._nodes.pop(node, None)) is not None:
            self._journal.undefine(id)

    def _forget_named(self, named: Topic | NodePolicy) -> None:
        if (id := self._named.pop(named, None)) is not None:
            self._journal.undefine(id)

    def _restore_named(self, definition: Definition) -> None:
        topics = self._registry.topics
        if definition.kind is DefinitionKind.TOPIC:
            self._named[topics.create_topic(definition.name, definition.fields)] = definition.id
        else:
            kind = _POLICIES[definition.kind]
            self._named[topics.create_policy(kind, definition.name, definition.fields)] = definition.id

    def _restore_node(self, definition: Definition) -> Queue | Exchange:
        capabilities = ("queue",) if definition.kind is DefinitionKind.QUEUE else ("topic",)
        fields = {name: value for name, value in definition.fields.items() if name not in (_USED, _UNTOUCHED)}
        declaration = read_node_declaration(capabilities, fields, limits=self._registry.limits)
        node = self._registry.create(definition.name, declaration)
        self._nodes[node] = definition.id
        if isinstance(node, Queue):
            self._journal.attach(node, definition.id)
            self._set_pager(node)
            if _UNTOUCHED in definition.fields:
                self._untouched.add(node)
            if node.settings.auto_delete:
                if _USED in definition.fields or node.settings.lifetime is Lifetime.ON_CLOSE:
                    self._left.append(node)
                else:
                    self._unused.add(node)
        return node

    def _set_pager(self, queue: Queue) -> None:
        if queue.settings.overflow is OverflowPolicy.FLOW_TO_DISK:
            queue.contents.pager = self._pages.page

    def _restore_binding(self, definition: Definition) -> None:
        fields = definition.fields
        exchange, queue = self._registry.exchange(str(fields["exchange"])), self._registry.queue(str(fields["queue"]))
        arguments = fields["arguments"]
        if not isinstance(exchange, Exchange) or queue is None or not isinstance(arguments, dict):
            raise TypeError("its exchange or its queue is missing")
        key = (exchange.name, queue.name, str(fields["key"]))
        self._registry.bind(exchange, queue, BindingSpec(key[2], arguments))
        self._bindings[key] = definition.id

    def _restore_messages(self, queues: dict[int, Queue], messages: Iterable[StoredMessage]) -> None:
        now, offset = self._registry.clock(), self._journal.offset
        for stored in messages:
            queue = queues.get(stored.queue)
            if queue is None:
                raise StoreDamaged(self._path, f"message {stored.id} is in queue {stored.queue}, which is not defined")
            try:
                message = read_message(stored.data, now, stored.format)
            except DecodeError as error:
                raise StoreDamaged(self._path, f"message {stored.id} of queue {queue.name!r}: {error}") from error
            message.expires_at = None if stored.expires is None else stored.expires - offset
            message.deliver_at = None if stored.deliver is None else stored.deliver - offset
            # Which messages were delivered is not recorded: that would be a write for each delivery.
            # Sequence numbers stay, as far as later messages do not have them.
            queue.contents.position = max(queue.contents.position, stored.position - 1)
            queue.recover(message if queue in self._untouched else message.after_restart(), stored.id)
