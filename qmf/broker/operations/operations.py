"""The operations on the nodes of a broker: each asks the policy, then changes the registry or grants a right."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import attrs

from qmf.broker.nodes.bindings import (
    BIND,
    HELLO,
    PEER_OPERATION,
    REORIGIN,
    UNBIND,
    BindingRefused,
    BindingSpec,
    add_origin,
    remove_origin,
)
from qmf.broker.nodes.exchanges import DefaultExchange, Exchange
from qmf.broker.nodes.message import Message
from qmf.broker.nodes.node_declaration import NodeDeclaration
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import NodeRegistry
from qmf.broker.nodes.router import Node
from qmf.broker.nodes.settings import ExchangeSettings, QueueSettings
from qmf.broker.nodes.topics import PolicyKind
from qmf.broker.operations.forwarding import ForwardingOperations
from qmf.broker.operations.grants import BrowseGrant, ConsumeGrant
from qmf.broker.operations.policy import Action, AllowAll, ObjectType, Operation, OperationRefused, Policy
from qmf.broker.operations.principal import Principal
from qmf.broker.operations.properties import exchange_properties, new_queue_properties, queue_properties
from qmf.broker.operations.publisher import Publisher

#: The anonymous relay, as ACL files name it.
RELAY = "ANONYMOUS-RELAY"

#: What is granted for as long as a link is there. What is created or deleted with it is not asked for again.
_LASTING = frozenset({Action.ACCESS, Action.BIND, Action.BROWSE, Action.CONSUME, Action.PUBLISH})

_POLICIES = {PolicyKind.QUEUE: ObjectType.QUEUE_POLICY, PolicyKind.TOPIC: ObjectType.TOPIC_POLICY}


class Operations:
    """All that clients, consoles and programs in the process can do with a broker.

    Every method has the principal for whom it is done, and raises `OperationRefused` if the policy refuses that:
    nothing has changed then. Otherwise arguments, results and errors are those of the registry.

    Attributes:
        registry: of the broker; its methods that change something are called here alone.
        on_refused: called when the policy has refused something.
        on_policy_changed: called when another policy applies; what was granted before may be asked for again.
        forwarding: those on links to other brokers, relays, and links within the broker.
    """

    def __init__(self, registry: NodeRegistry, policy: Policy | None = None) -> None:
        """Make the operations of a broker; `policy`: None to allow everything."""
        self.registry = registry
        self.on_refused: Callable[[OperationRefused], None] = lambda _: None
        self.on_policy_changed: Callable[[], None] = lambda: None
        self.forwarding = ForwardingOperations(self.ask)
        self._policy: Policy = policy or AllowAll()
        #: What was granted while somebody notes it.
        self._noted: list[Operation] | None = None

    @property
    def policy(self) -> Policy:
        """Decides; another one applies from the next operation on."""
        return self._policy

    @policy.setter
    def policy(self, policy: Policy) -> None:
        self._policy = policy
        self.on_policy_changed()

    # Asking

    def ask(self, principal: Principal, operation: Operation) -> None:
        """Ask the policy."""
        if reason := self._policy.refusal(principal, operation):
            error = OperationRefused(principal, operation, reason)
            self.on_refused(error)
            raise error
        if self._noted is not None and operation.action in _LASTING:
            self._noted.append(operation)

    @contextmanager
    def record_grants(self) -> Iterator[list[Operation]]:
        """The rights that are granted within, as far as they last longer than one operation.

        None where everything is allowed: a broker has rules from its start, or never.
        """
        granted: list[Operation] = []
        self._noted = None if isinstance(self._policy, AllowAll) else granted
        try:
            yield granted
        finally:
            self._noted = None

    def ask_again(self, principal: Principal, held: Iterable[Operation]) -> None:
        """Ask for rights that `record_grants` gave, since another policy applies.

        Raises:
            OperationRefused: for the first one that the principal has no longer.
        """
        for operation in held:
            if self._policy.has_key_rules and operation.action is Action.PUBLISH and operation.name:
                continue  # each message is asked for, with its key
            if reason := self._policy.refusal(principal, attrs.evolve(operation, held=True)):
                raise OperationRefused(principal, operation, reason)

    def ask_address(self, principal: Principal, address: str, capabilities: Collection[str] = ()) -> None:
        """Ask for an address before it is looked up, so that nobody learns what is there without a right to it.

        Args:
            address: of an exchange, a queue or a topic.
            capabilities: of the terminus: with ``queue`` or ``topic`` it is the address of one of them only.
        """
        for object_type, capability in ((ObjectType.EXCHANGE, "topic"), (ObjectType.QUEUE, "queue")):
            if capability in capabilities or not {"queue", "topic"} & {*capabilities}:
                self.ask(principal, Operation(Action.ACCESS, object_type, address))

    def ask_access(self, principal: Principal, node: Node) -> None:
        """Ask for a node that was found."""
        if isinstance(node, Queue):
            operation = Operation(Action.ACCESS, ObjectType.QUEUE, node.name, queue_properties(node.settings))
        else:
            operation = Operation(Action.ACCESS, ObjectType.EXCHANGE, node.name, _exchange_properties(node))
        self.ask(principal, operation)

    def ask_relay(self, principal: Principal) -> None:
        """Ask for sending messages that name their nodes themselves."""
        self.ask(principal, Operation(Action.ACCESS, ObjectType.EXCHANGE, RELAY))

    def ask_deletion(self, principal: Principal, node: Queue | Exchange) -> None:
        """Ask for the deletion of a node that `delete_owned` will delete."""
        if isinstance(node, Queue):
            operation = Operation(Action.DELETE, ObjectType.QUEUE, node.name, queue_properties(node.settings))
        else:
            properties = exchange_properties(node.settings)
            del properties["autodelete"]  # ACL files have it for creating alone
            operation = Operation(Action.DELETE, ObjectType.EXCHANGE, node.name, properties)
        self.ask(principal, operation)

    def ask_missing(
        self,
        principal: Principal,
        action: Action,
        object_type: ObjectType,
        name: str,
        properties: Mapping[str, object] | None = None,
    ) -> None:
        """Ask for an operation on something that does not exist: only who might do it learns that it doesn't.

        Args:
            action, object_type, name: what.
            properties: that are known all the same.
        """
        self.ask(principal, Operation(action, object_type, name, properties or {}))

    def ask_connection(self, principal: Principal, *, held: bool = False) -> None:
        """Ask for the connection of a client that has logged in; `held` as of `Operation`."""
        host = principal.address.rpartition(":")[0]
        self.ask(principal, Operation(Action.CREATE, ObjectType.CONNECTION, properties={"host": host}, held=held))

    def ask_method(self, principal: Principal, name: str, package: str, class_name: str) -> None:
        """Ask for a method of a managed object, whatever else is asked when it is carried out."""
        properties = {"schemapackage": package, "schemaclass": class_name}
        self.ask(principal, Operation(Action.ACCESS, ObjectType.METHOD, name, properties))

    def ask_query(self, principal: Principal, name: str, class_name: str) -> None:
        """Ask for a query for managed objects, by the name of a class or of a single object."""
        self.ask(principal, Operation(Action.ACCESS, ObjectType.QUERY, name, {"schemaclass": class_name}))

    # Rights to messages

    def resolve(self, principal: Principal, address: str, capabilities: Collection[str] = ()) -> Node | None:
        """The node that an address names; arguments as of `ask_address`.

        Raises:
            AmbiguousNode: see `NodeRegistry.resolve`.
        """
        self.ask_address(principal, address, capabilities)
        return self.registry.resolve(address, _asked_kind(capabilities))

    def publisher(self, principal: Principal, *, relay: bool = False) -> Publisher:
        """What publishes for one link; it asks itself. Arguments as of `Publisher`."""
        return Publisher(self, principal, relay=relay)

    def consume(self, principal: Principal, queue: Queue) -> ConsumeGrant:
        """The right to take messages from a queue."""
        self.ask_access(principal, queue)
        self.ask(principal, Operation(Action.CONSUME, ObjectType.QUEUE, queue.name))
        return ConsumeGrant(queue)

    def browse(self, principal: Principal, queue: Queue) -> BrowseGrant:
        """The right to read the messages of a queue."""
        self.ask_access(principal, queue)
        self.ask(principal, Operation(Action.BROWSE, ObjectType.QUEUE, queue.name))
        return BrowseGrant(queue)

    def ask_answer(self, principal: Principal, address: str) -> None:
        """Ask for the address to which a program with all rights, such as the broker's agent, would answer a request.

        Whoever sends the request has to be one who receives the answer, or who may send messages there: consoles may do
        the first. Without that, an answer would be put where a rule allows nothing.

        Args:
            address: as in `reply-to`: of a queue, or ``exchange/key``.
        """
        if isinstance(self._policy, AllowAll):
            return
        name, _, key = address.partition("/") if not address.startswith("/") else (address[1:], "", "")
        node = self.registry.relay_target(name)
        receivers: Sequence[str] = ()
        if node is None or isinstance(node, Queue):
            node_name, key, receivers = "", name, (name,)
        else:
            node_name = node.name
            if isinstance(node, Exchange | DefaultExchange) and node.by_subject:
                receivers = [queue.name for queue in self.registry.targets(node, Message(b"", name, key, None, None))]
        consume = (Operation(Action.CONSUME, ObjectType.QUEUE, each) for each in receivers)
        if not receivers or any(self._policy.refusal(principal, operation) for operation in consume):
            self.ask(principal, Operation(Action.PUBLISH, ObjectType.EXCHANGE, node_name, {"routingkey": key}))

    # Nodes

    def create(self, principal: Principal, name: str, declaration: NodeDeclaration) -> Queue | Exchange:
        """Create a queue or an exchange; see `NodeRegistry.create`."""
        self._ask_creation(principal, name, declaration)
        return self.registry.create(name, declaration, principal.client)

    def create_by_policy(self, principal: Principal, address: str) -> Node | None:
        """Create the node that a `NodePolicy` has for an address; see `Topics.create_by_policy`."""
        found = self.registry.topics.policy_for(address)
        if found is None:
            return None
        self._ask_creation(principal, address, found.declaration)
        return self.registry.topics.create_by_policy(address, principal.client)

    def ask_subscription(
        self, principal: Principal, exchange: Exchange, name: str, settings: QueueSettings, key: str
    ) -> None:
        """Ask for a subscription, whether there is one or not."""
        properties = new_queue_properties(settings)
        self.ask_access(principal, exchange)
        exists = self.registry.queue(name) is not None  # then it is no further one
        self.ask(principal, Operation(Action.CREATE, ObjectType.QUEUE, name, properties, held=exists))
        self._ask_binding(principal, Action.BIND, exchange.name, name, key)
        self.ask(principal, Operation(Action.CONSUME, ObjectType.QUEUE, name))

    def subscribe(
        self, principal: Principal, exchange: Exchange, name: str, settings: QueueSettings, spec: BindingSpec
    ) -> ConsumeGrant:
        """Create a queue, bind it, and grant the right to consume from it; all of it or nothing.

        Raises:
            NameInUse, NoSuchExchange, NodeDeclarationError, BindingRefused: see `NodeRegistry.create` and `bind`.
        """
        self.ask_subscription(principal, exchange, name, settings, spec.key)
        queue = self.registry.declare_queue(name, settings, client=principal.client)
        try:
            self.registry.bind(exchange, queue, spec, principal.client)
        except BindingRefused:
            self.registry.delete_queue(queue, principal.client)
            raise
        return ConsumeGrant(queue)

    def delete(self, principal: Principal, node: Queue | Exchange, *, check: Callable[[], None] = lambda: None) -> None:
        """Delete a queue or an exchange; see `NodeRegistry.delete`.

        Args:
            check: raises an error if it is not to be deleted in its state, of which only those learn who may delete it.
        """
        self.ask_deletion(principal, node)
        check()
        self.registry.delete(node, principal.client)

    def delete_owned(self, principal: Principal, node: Queue | Exchange) -> None:
        """Delete a node whose owner is gone. Asks nothing: that was granted when the owner got the node.

        Raises:
            ExchangeInUse: see `NodeRegistry.delete`.
        """
        self.registry.delete(node, principal.client)

    def bind(self, principal: Principal, exchange: Exchange, queue: Queue, spec: BindingSpec) -> None:
        """Bind a queue to an exchange; see `NodeRegistry.bind`."""
        self._ask_binding(principal, Action.BIND, exchange.name, queue.name, spec.key)
        self.registry.bind(exchange, queue, spec, principal.client)

    def bind_for_peer(self, principal: Principal, exchange: Exchange, queue: Queue, spec: BindingSpec) -> None:
        """Bind a queue to an exchange, or end that, as the dynamic route of another broker asks by `PEER_OPERATION`.

        Raises:
            BindingExists, BindingRefused: see `NodeRegistry.bind`; or that is asked for by an unknown word.
        """
        operation = spec.headers[PEER_OPERATION]
        if operation not in ("", BIND, UNBIND, REORIGIN, HELLO):
            raise BindingRefused(
                f"{PEER_OPERATION}: must be {BIND}, {UNBIND}, {REORIGIN} or {HELLO}, not {operation!r}"
            )
        ends = operation == UNBIND
        self._ask_binding(principal, Action.UNBIND if ends else Action.BIND, exchange.name, queue.name, spec.key)
        found = exchange.binding(queue, spec.key)
        if operation in (REORIGIN, HELLO):
            self.registry.observer.on_origins_changed(exchange)
        elif ends:
            if found is not None and not remove_origin(found, spec):
                self.registry.unbind(exchange, queue, spec.key, principal.client)
            else:
                self.registry.observer.on_origins_changed(exchange)
        elif found is None:
            self.registry.bind(exchange, queue, spec, principal.client)
        elif add_origin(found, spec):
            self.registry.observer.on_origins_changed(exchange)

    def unbind(self, principal: Principal, exchange: Exchange, queue: Queue, key: str) -> bool:
        """Remove a binding; see `NodeRegistry.unbind`."""
        self._ask_binding(principal, Action.UNBIND, exchange.name, queue.name, key)
        return self.registry.unbind(exchange, queue, key, principal.client)

    # Messages of queues

    def purge(
        self, principal: Principal, queue: Queue, count: int = 0, matches: Callable[[Message], bool] | None = None
    ) -> int:
        """Remove waiting messages of a queue; see `Contents.purge`."""
        self.ask(principal, Operation(Action.PURGE, ObjectType.QUEUE, queue.name))
        return queue.contents.purge(count, matches)

    def move(
        self,
        principal: Principal,
        source: Queue,
        target: Queue,
        count: int = 0,
        matches: Callable[[Message], bool] | None = None,
    ) -> int:
        """Move waiting messages from one queue to another; see `Router.move`."""
        operation = Operation(Action.MOVE, ObjectType.QUEUE, source.name, {"queuename": target.name})
        self.ask(principal, operation)
        _refuse_reserved(principal, operation, target)
        return self.registry.move(source, target, count, matches)

    def reroute(
        self,
        principal: Principal,
        queue: Queue,
        exchange: Exchange | DefaultExchange,
        count: int = 0,
        matches: Callable[[Message], bool] | None = None,
    ) -> int:
        """Publish waiting messages of a queue to an exchange; see `Router.reroute`."""
        self.ask(principal, Operation(Action.REROUTE, ObjectType.QUEUE, queue.name, {"exchangename": exchange.name}))
        chosen = matches
        if isinstance(exchange, DefaultExchange):  # what would go to a queue for the broker's own messages stays
            chosen = lambda message: not self._is_for_reserved(message) and (matches is None or matches(message))  # noqa: E731
        return self.registry.reroute(queue, exchange, count, chosen)

    def redirect(self, principal: Principal, source: Queue, target: Queue) -> None:
        """Let two queues exchange the messages that come; see `NodeRegistry.redirect`."""
        operation = Operation(Action.REDIRECT, ObjectType.QUEUE, source.name, {"queuename": target.name})
        self.ask(principal, operation)
        for queue in (source, target):
            _refuse_reserved(principal, operation, queue)
        self.registry.redirect(source, target)

    def end_redirection(self, principal: Principal, source: Queue) -> None:
        """End the redirection of a queue: the messages of its target go to it."""
        target = "" if source.redirected is None else source.redirected.name
        self.ask(principal, Operation(Action.REDIRECT, ObjectType.QUEUE, source.name, {"queuename": target}))
        self.registry.end_redirection(source, move=True)

    # Topics, policies and the broker

    def create_topic(
        self, principal: Principal, name: str, properties: Mapping[str, object], *, strict: bool = False
    ) -> None:
        """Create a topic; see `Topics.create_topic`."""
        self.ask(principal, Operation(Action.CREATE, ObjectType.TOPIC, name, properties))
        self.registry.topics.create_topic(name, properties, strict=strict)

    def delete_topic(self, principal: Principal, name: str) -> None:
        """Delete a topic; see `Topics.delete_topic`."""
        self.ask(principal, Operation(Action.DELETE, ObjectType.TOPIC, name))
        self.registry.topics.delete_topic(name)

    def create_policy(
        self,
        principal: Principal,
        kind: PolicyKind,
        pattern: str,
        properties: Mapping[str, object],
        *,
        strict: bool = False,
    ) -> None:
        """Create a policy by which nodes are created; see `Topics.create_policy`."""
        self.ask(principal, Operation(Action.CREATE, _POLICIES[kind], pattern, properties))
        self.registry.topics.create_policy(kind, pattern, properties, strict=strict)

    def delete_policy(self, principal: Principal, kind: PolicyKind, pattern: str) -> None:
        """Delete such a policy; see `Topics.delete_policy`."""
        self.ask(principal, Operation(Action.DELETE, _POLICIES[kind], pattern))
        self.registry.topics.delete_policy(kind, pattern)

    def timestamps(self, principal: Principal) -> bool:
        """Whether messages that come get the time as an annotation."""
        self.ask(principal, Operation(Action.ACCESS, ObjectType.BROKER))
        return self.registry.timestamps

    def set_timestamps(self, principal: Principal, *, receive: bool) -> None:
        """Let messages that come get the time as an annotation, or not."""
        self.ask(principal, Operation(Action.UPDATE, ObjectType.BROKER))
        self.registry.timestamps = receive

    # Details

    def _is_for_reserved(self, message: Message) -> bool:
        """The default exchange would put a message into a queue that is not for others' messages."""
        queue = self.registry.queue(message.subject)
        return queue is not None and bool(queue.reserved)

    def _ask_creation(self, principal: Principal, name: str, declaration: NodeDeclaration) -> None:
        if declaration.exchange is None:
            operation = Operation(Action.CREATE, ObjectType.QUEUE, name, new_queue_properties(declaration.queue))
        else:
            operation = Operation(Action.CREATE, ObjectType.EXCHANGE, name, exchange_properties(declaration.exchange))
        self.ask(principal, operation)

    def _ask_binding(self, principal: Principal, action: Action, exchange: str, queue: str, key: str) -> None:
        properties = {"queuename": queue, "routingkey": key}
        self.ask(principal, Operation(action, ObjectType.EXCHANGE, exchange, properties))


def _refuse_reserved(principal: Principal, operation: Operation, queue: Queue) -> None:
    """Refuse what would put messages into a queue that is not for others' messages."""
    if queue.reserved:
        raise OperationRefused(principal, operation, f"only {queue.reserved} puts messages into {queue.name!r}")


def _asked_kind(capabilities: Collection[str]) -> type[Queue | Exchange] | None:
    """The kind of node that a terminus asks for; None for either, also where it asks for both."""
    kinds = [kind for name, kind in (("queue", Queue), ("topic", Exchange)) if name in capabilities]
    return kinds[0] if len(kinds) == 1 else None


def _exchange_properties(exchange: Exchange | DefaultExchange) -> Mapping[str, object]:
    return exchange_properties(exchange.settings if isinstance(exchange, Exchange) else ExchangeSettings(exchange.kind))
