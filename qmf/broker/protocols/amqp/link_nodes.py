"""The nodes of a client's links: found or created as a terminus asks, and deleted with the link where it asks."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import attrs

from qmf.broker.nodes.bindings import BindingRefused, BindingSpec
from qmf.broker.nodes.exchanges import DefaultExchange, Exchange
from qmf.broker.nodes.node_declaration import (
    DELETE_ON_CLOSE,
    NodeDeclaration,
    NodeDeclarationError,
    read_node_declaration,
)
from qmf.broker.nodes.observed_clients import BrokerClient
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import PREDECLARED_EXCHANGES, AmbiguousNode, NameInUse, NoSuchExchange
from qmf.broker.nodes.router import Node
from qmf.broker.nodes.settings import ExchangeSettings, QueueSettings
from qmf.broker.operations.grants import ConsumeGrant
from qmf.broker.operations.operations import Operations
from qmf.broker.operations.policy import OperationRefused
from qmf.broker.operations.principal import Principal
from qmf.broker.protocols.amqp.conditions import LinkRefused
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import DescribedProperty, Terminus

#: The property with the lifetime of a node: a value that has the policy as its descriptor.
_LIFETIME = "lifetime-policy"

PREDECLARED_NAMES = frozenset(name for name, _ in PREDECLARED_EXCHANGES)

#: A node that can be deleted with a link.
LinkNode = Queue | Exchange


class LinkNodes:
    """The nodes of the links of one client."""

    def __init__(self, client: BrokerClient, operations: Operations) -> None:
        self._client = client
        self._operations = operations
        self._registry = operations.registry
        #: Those that are deleted with a link.
        self._nodes: dict[Link, list[LinkNode]] = {}
        #: Queues that sessions have for themselves. Those that delete themselves do so at the end of the session.
        self._exclusive: dict[Hashable, set[Queue]] = {}

    def keep(self, link: Link, nodes: Iterable[LinkNode]) -> None:
        """Delete nodes with this link, which is the one of a link that was resumed."""
        self._nodes[link] = list(nodes)

    def links(self) -> Sequence[Link]:
        """The links with which nodes are to be deleted."""
        return list(self._nodes)

    def pop(self, link: Link) -> Sequence[LinkNode]:
        """The nodes that are to be deleted with a link that is gone."""
        return self._nodes.pop(link, ())

    def end_session(self, session: Hashable) -> None:
        """A session is gone: its exclusive queues are anybody's; those that delete themselves are not used any more."""
        for queue in self._exclusive.pop(session, ()):
            queue.owner, queue.exclusive = None, False
            if queue.settings.auto_delete:
                self._registry.on_unused(queue)

    def end_sessions(self) -> None:
        """The connection is gone."""
        for session in list(self._exclusive):
            self.end_session(session)

    def find(self, link: Link, terminus: Terminus) -> tuple[Node, Terminus]:
        """The node that a terminus names, created if it asks for that; and the terminus as granted.

        Raises:
            LinkRefused: there is no such node, or it cannot be created or deleted.
            OperationRefused: the policy refuses it.
        """
        name, principal = terminus.address or "", Principal.of(self._client)
        found = node = self._resolve(principal, name, terminus)
        options = NodeDeclaration()
        if terminus.properties or "create-on-demand" in terminus.capabilities:
            options = self._options(terminus)
        if node is None and "create-on-demand" in terminus.capabilities:
            node = self._create(name, options)
        if node is None and (node := self._create_by_policy(name)) is None:
            raise LinkRefused("amqp:not-found", self._missing(principal, name))
        if options.delete_on_close and not isinstance(node, DefaultExchange):
            _check_deletable(node)
            if node is found:
                self._operations.ask_deletion(principal, node)
            self._nodes.setdefault(link, []).append(node)
        return node, _granted_to(node, options, terminus)

    def take_exclusive(self, link: Link, terminus: Terminus, node: Node) -> None:
        """The session of a link has a queue for itself, if the terminus asks for that.

        To be called when the link has the rights that it needs: nobody else's queue can be taken before.

        Raises:
            LinkRefused: another session has it, or receives from it.
        """
        if terminus.properties and isinstance(node, Queue) and self._options(terminus).queue.exclusive:
            self._take(link, node)

    def check_owner(self, link: Link, queue: Queue) -> None:
        """Check that a link may consume from a queue.

        Raises:
            LinkRefused: another session, or another link, has the queue for itself.
        """
        if queue.owner is not None:
            if queue.owner != self._session(link):
                raise LinkRefused("amqp:precondition-failed", f"Cannot consume from exclusive queue {queue.name}")
        elif queue.exclusive and queue.delivery.consumers:
            raise LinkRefused("amqp:resource-locked", f"queue {queue.name!r} belongs to another link")

    def _take(self, link: Link, queue: Queue) -> None:
        """A session asks for a queue as exclusive: it has it for itself until it ends."""
        session = self._session(link)
        if queue.owner is None and not queue.delivery.consumers:
            queue.owner, queue.exclusive = session, True
            self._exclusive.setdefault(link.session_id, set()).add(queue)
        elif queue.owner != session:
            raise LinkRefused("amqp:precondition-failed", f"Cannot grant exclusive access to {queue.name}")

    def _session(self, link: Link) -> Hashable:
        """The session of a link, among those of all clients."""
        return self._client, link.session_id

    def _resolve(self, principal: Principal, name: str, terminus: Terminus) -> Node | None:
        try:
            return self._operations.resolve(principal, name, terminus.capabilities)
        except AmbiguousNode as error:
            text = f"{error}; the capability queue or topic says which"
            raise LinkRefused("amqp:precondition-failed", text) from error

    def _missing(self, principal: Principal, name: str) -> str:
        """What is missing for a link, and whether there is a node of the other kind, for who may access that."""
        other = self._registry.find(name)
        try:
            if other is not None:
                self._operations.ask_access(principal, other)
        except OperationRefused:
            other = None
        if other is None:
            return self._registry.missing(name)
        kind, is_there = ("exchange", "a queue") if isinstance(other, Queue) else ("queue", "an exchange")
        return f"no {kind} {name!r}: it is {is_there}"

    def create_temporary(self, link: Link, terminus: Terminus) -> tuple[LinkNode, Terminus]:
        """A node that is deleted with the link, for a dynamic target; and the target as granted.

        Raises:
            LinkRefused, OperationRefused: it cannot be created.
        """
        options = self._options(terminus)
        node: LinkNode
        if options.exchange is None:
            node = self._create_queue(link, attrs.evolve(options.queue, exclusive=False))
        else:
            node = self._create_for(link, options)
        return node, _granted_terminus(node, options, terminus)

    def create_temporary_queue(self, link: Link, source: Terminus) -> tuple[Queue, Terminus]:
        """A queue for this link alone, for a dynamic source; and the source as granted.

        Raises:
            LinkRefused, OperationRefused: it cannot be created.
        """
        options = self._options(source)
        if options.exchange is not None:
            raise LinkRefused("amqp:not-implemented", "a link that receives cannot create an exchange")
        settings = options.queue
        if "qpid.policy_type" not in settings.arguments:
            own = self._registry.subscriptions.lasting
            settings = attrs.evolve(settings, overflow=own.overflow, keeps_large=True, limits=own.limits)
        queue = self._create_queue(link, attrs.evolve(settings, exclusive=True))
        return queue, _granted_terminus(queue, options, source)

    def subscribe(self, link: Link, settings: QueueSettings, exchange: Exchange, spec: BindingSpec) -> ConsumeGrant:
        """Create a queue that is deleted with the link, and bind it, to consume from it.

        Raises:
            LinkRefused: there is such a queue, or it cannot be bound.
            OperationRefused: the policy refuses it.
        """
        name, settings = self._name_for(link), self._registry.subscriptions.until_close(settings)
        with _refusals(name):
            grant = self._operations.subscribe(Principal.of(self._client), exchange, name, settings, spec)
        self._nodes.setdefault(link, []).append(grant.queue)
        return grant

    def _create_queue(self, link: Link, settings: QueueSettings) -> Queue:
        """Create a queue that is deleted with the link."""
        node = self._create_for(link, NodeDeclaration(queue=self._registry.subscriptions.until_close(settings)))
        assert isinstance(node, Queue)
        return node

    def _create_for(self, link: Link, declaration: NodeDeclaration) -> LinkNode:
        node = self._create(self._name_for(link), declaration)
        self._nodes.setdefault(link, []).append(node)
        return node

    def _name_for(self, link: Link) -> str:
        """Of a node that is deleted with a link: as qpidd names it (QMF2.md 1.2)."""
        return f"{self._client.info.container}_{link.name}"

    def _create(self, name: str, declaration: NodeDeclaration) -> LinkNode:
        with _refusals(name):
            return self._operations.create(Principal.of(self._client), name, declaration)

    def _create_by_policy(self, name: str) -> Node | None:
        with _refusals(name):
            return self._operations.create_by_policy(Principal.of(self._client), name)

    def _options(self, terminus: Terminus) -> NodeDeclaration:
        properties = dict(terminus.properties)
        if isinstance(policy := properties.get(_LIFETIME), DescribedProperty):
            properties[_LIFETIME] = policy.descriptor
        try:
            return read_node_declaration(terminus.capabilities, properties, limits=self._registry.limits)
        except NodeDeclarationError as error:
            raise _refusal(error) from error


def _granted_to(node: Node, options: NodeDeclaration, wanted: Terminus) -> Terminus:
    """The terminus for a node that has the name that was asked for."""
    capabilities, properties = describe_node(node, options, temporary=options.delete_on_close)
    names = {*wanted.capabilities}
    return Terminus(
        wanted.address,
        capabilities=tuple(item for item in (*capabilities, "create-on-demand") if item in names),
        properties=properties if wanted.properties else {},
    )


def _granted_terminus(node: LinkNode, options: NodeDeclaration, wanted: Terminus) -> Terminus:
    capabilities, properties = describe_node(node, options, temporary=True)
    if isinstance(node, Exchange):
        capabilities = (*capabilities, "temporary-topic")
    return Terminus(
        node.name,
        dynamic=True,
        capabilities=tuple(name for name in capabilities if name in wanted.capabilities),
        properties=properties if wanted.properties else {},
    )


def describe_node(
    node: Node, requested: NodeDeclaration, *, temporary: bool
) -> tuple[tuple[str, ...], dict[str, object]]:
    """What a node is: capabilities, and properties by the names of the request."""
    if isinstance(node, Queue):
        settings: QueueSettings | ExchangeSettings = node.settings
        properties: dict[str, object] = {"supported-dist-modes": "move", "exclusive": node.exclusive}
        for name, value in settings.arguments.items():
            if name in requested.queue.arguments and isinstance(value, bool | int | str):
                properties[name] = value
        capabilities: tuple[str, ...] = ("queue",)
    else:
        settings = node.settings if isinstance(node, Exchange) else ExchangeSettings("direct")
        properties = {"supported-dist-modes": "copy", "exchange-type": settings.kind}
        capabilities = ("topic",)
    if settings.auto_delete:
        properties["auto-delete"] = True
    if settings.durable:
        properties["durable"] = True
        capabilities = (*capabilities, "durable")
    if settings.alternate:
        properties["alternate-exchange"] = settings.alternate
    if temporary:
        properties[_LIFETIME] = DescribedProperty(DELETE_ON_CLOSE, [])
    return capabilities, properties


def _check_deletable(node: LinkNode) -> None:
    if node.name in PREDECLARED_NAMES or node.name.startswith("qmf."):
        raise LinkRefused("amqp:not-allowed", f"exchange {node.name!r} cannot be deleted")


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    """A node that cannot be created is a refusal of the link."""
    try:
        yield
    except NameInUse as error:
        raise LinkRefused(
            "amqp:resource-locked", f"node {name!r} exists: another link uses this container id and link name"
        ) from error
    except NodeDeclarationError as error:
        raise _refusal(error) from error
    except NoSuchExchange as error:
        raise LinkRefused("amqp:not-found", str(error)) from error
    except BindingRefused as error:
        raise LinkRefused("amqp:invalid-field", str(error)) from error


def _refusal(error: NodeDeclarationError) -> LinkRefused:
    return LinkRefused("amqp:invalid-field" if error.invalid else "amqp:not-implemented", str(error))
