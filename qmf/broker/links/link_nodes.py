"""The nodes of a client's links: found or created as a terminus asks, and deleted with the link where it asks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from qmf.broker.nodes.exchanges import DefaultExchange, Exchange
from qmf.broker.nodes.node_declaration import (
    NodeDeclaration,
    NodeDeclarationError,
    describe_node,
    read_node_declaration,
)
from qmf.broker.nodes.queues import Queue
from qmf.broker.nodes.registry import PREDECLARED_EXCHANGES, NameInUse, NodeRegistry, NoSuchExchange
from qmf.broker.nodes.router import Node
from qmf.broker.nodes.settings import Lifetime, QueueSettings
from qmf.broker.observer import BrokerClient
from qmf.broker.refusal import AmqpRefusal
from qmf.bus.engine.link import Link
from qmf.bus.engine.values import Terminus

PREDECLARED_NAMES = frozenset(name for name, _ in PREDECLARED_EXCHANGES)

#: A node that can be deleted with a link.
LinkNode = Queue | Exchange


class LinkRefused(AmqpRefusal):
    """A link cannot be granted."""


class LinkNodes:
    """The nodes of the links of one client."""

    def __init__(self, client: BrokerClient, registry: NodeRegistry) -> None:
        self._client = client
        self._registry = registry
        #: Those that are deleted with a link.
        self._nodes: dict[Link, list[LinkNode]] = {}

    def keep(self, link: Link, nodes: Iterable[LinkNode]) -> None:
        """Delete nodes with this link, which is the one of a link that was resumed."""
        self._nodes[link] = list(nodes)

    def links(self) -> Sequence[Link]:
        """The links with which nodes are to be deleted."""
        return list(self._nodes)

    def pop(self, link: Link) -> Sequence[LinkNode]:
        """The nodes that are to be deleted with a link that is gone."""
        return self._nodes.pop(link, ())

    def find(self, link: Link, terminus: Terminus) -> tuple[Node, Terminus]:
        """The node that a terminus names, created if it asks for that; and the terminus as granted.

        Raises:
            LinkRefused: there is no such node, or it cannot be created or deleted.
        """
        name = terminus.address or ""
        node = self._registry.resolve(name)
        options = NodeDeclaration()
        if terminus.properties or "create-on-demand" in terminus.capabilities:
            options = self._options(terminus)
        if node is None and "create-on-demand" in terminus.capabilities:
            node = self._create(name, options)
        if node is None and (node := self._create_by_policy(name)) is None:
            raise LinkRefused("amqp:not-found", f"no exchange or queue {name!r}")
        if options.delete_on_close and not isinstance(node, DefaultExchange):
            _check_deletable(node)
            self._nodes.setdefault(link, []).append(node)
        capabilities, properties = describe_node(node, options, temporary=options.delete_on_close)
        wanted = {*terminus.capabilities}
        granted = Terminus(
            terminus.address,
            capabilities=tuple(item for item in (*capabilities, "create-on-demand") if item in wanted),
            properties=properties if terminus.properties else {},
        )
        return node, granted

    def create_temporary(self, link: Link, terminus: Terminus) -> tuple[LinkNode, Terminus]:
        """A node that is deleted with the link, for a dynamic target; and the target as granted.

        Raises:
            LinkRefused: it cannot be created.
        """
        options = self._options(terminus)
        node: LinkNode
        if options.exchange is None:
            node = self.create_queue(link, attrs.evolve(options.queue, exclusive=False))
        else:
            node = self._create_for(link, options)
        return node, _granted(node, options, terminus)

    def create_temporary_queue(self, link: Link, source: Terminus) -> tuple[Queue, Terminus]:
        """A queue for this link alone, for a dynamic source; and the source as granted.

        Raises:
            LinkRefused: it cannot be created.
        """
        options = self._options(source)
        if options.exchange is not None:
            raise LinkRefused("amqp:not-implemented", "a link that receives cannot create an exchange")
        settings = options.queue
        if "qpid.policy_type" not in settings.arguments:
            own = self._registry.subscription_settings()
            settings = attrs.evolve(settings, overflow=own.overflow, keeps_large=True, limits=own.limits)
        queue = self.create_queue(link, attrs.evolve(settings, exclusive=True))
        return queue, _granted(queue, options, source)

    def create_queue(self, link: Link, settings: QueueSettings) -> Queue:
        """Create a queue that is deleted with the link, named as qpidd names it (QMF2.md 1.2).

        Raises:
            LinkRefused: there is such a queue.
        """
        node = self._create_for(
            link, NodeDeclaration(queue=attrs.evolve(settings, auto_delete=True, lifetime=Lifetime.ON_CLOSE))
        )
        assert isinstance(node, Queue)
        return node

    def _create_for(self, link: Link, declaration: NodeDeclaration) -> LinkNode:
        name = f"{self._client.info.container}_{link.name}"
        try:
            node = self._create(name, declaration)
        except NameInUse as error:
            raise LinkRefused(
                "amqp:resource-locked", f"node {name!r} exists: another link uses this container id and link name"
            ) from error
        self._nodes.setdefault(link, []).append(node)
        return node

    def _create(self, name: str, declaration: NodeDeclaration) -> Queue | Exchange:
        try:
            return self._registry.create(name, declaration, self._client)
        except NodeDeclarationError as error:
            raise _refusal(error) from error
        except NoSuchExchange as error:
            raise LinkRefused("amqp:not-found", str(error)) from error

    def _create_by_policy(self, name: str) -> Node | None:
        try:
            return self._registry.topics.create_by_policy(name, self._client)
        except NodeDeclarationError as error:
            raise _refusal(error) from error
        except NoSuchExchange as error:
            raise LinkRefused("amqp:not-found", str(error)) from error

    def _options(self, terminus: Terminus) -> NodeDeclaration:
        try:
            return read_node_declaration(terminus.capabilities, terminus.properties, limits=self._registry.limits)
        except NodeDeclarationError as error:
            raise _refusal(error) from error


def _granted(node: LinkNode, options: NodeDeclaration, wanted: Terminus) -> Terminus:
    capabilities, properties = describe_node(node, options, temporary=True)
    if isinstance(node, Exchange):
        capabilities = (*capabilities, "temporary-topic")
    return Terminus(
        node.name,
        dynamic=True,
        capabilities=tuple(name for name in capabilities if name in wanted.capabilities),
        properties=properties if wanted.properties else {},
    )


def _check_deletable(node: LinkNode) -> None:
    if node.name in PREDECLARED_NAMES or node.name.startswith("qmf."):
        raise LinkRefused("amqp:not-allowed", f"exchange {node.name!r} cannot be deleted")


def _refusal(error: NodeDeclarationError) -> LinkRefused:
    return LinkRefused("amqp:invalid-field" if error.invalid else "amqp:not-implemented", str(error))
