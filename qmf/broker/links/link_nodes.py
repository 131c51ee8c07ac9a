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
        node = self._registry.find(name)
        options = NodeDeclaration()
        if terminus.properties or "create-on-demand" in terminus.capabilities:
            options = self._options(terminus)
        if node is None:
            if "create-on-demand" not in terminus.capabilities:
                raise LinkRefused("amqp:not-found", f"no exchange or queue {name!r}")
            node = self._create(name, options)
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

    def create_temporary(self, link: Link, terminus: Terminus, *, exclusive: bool) -> tuple[Queue, Terminus]:
        """A queue that is deleted with the link, for a dynamic terminus; and the terminus as granted.

        Raises:
            LinkRefused: it cannot be created.
        """
        options = self._options(terminus)
        if options.exchange is not None:
            raise LinkRefused("amqp:not-implemented", "temporary exchanges are not supported")
        settings = options.queue
        if exclusive and "qpid.policy_type" not in settings.arguments:
            own = self._registry.subscription_settings()
            settings = attrs.evolve(settings, overflow=own.overflow, keeps_large=True, limits=own.limits)
        queue = self.create_queue(link, attrs.evolve(settings, exclusive=exclusive))
        properties = describe_node(queue, options, temporary=True)[1] if terminus.properties else {}
        return queue, Terminus(queue.name, dynamic=True, properties=properties)

    def create_queue(self, link: Link, settings: QueueSettings) -> Queue:
        """Create a queue that is deleted with the link, named as qpidd names it (QMF2.md 1.2).

        Raises:
            LinkRefused: there is such a queue.
        """
        name = f"{self._client.info.container}_{link.name}"
        try:
            queue = self._create(
                name, NodeDeclaration(queue=attrs.evolve(settings, auto_delete=True, lifetime=Lifetime.ON_CLOSE))
            )
        except NameInUse as error:
            raise LinkRefused(
                "amqp:resource-locked", f"queue {name!r} exists: another link uses this container id and link name"
            ) from error
        assert isinstance(queue, Queue)
        self._nodes.setdefault(link, []).append(queue)
        return queue

    def _create(self, name: str, declaration: NodeDeclaration) -> Queue | Exchange:
        try:
            return self._registry.create(name, declaration, self._client)
        except NodeDeclarationError as error:
            raise _refusal(error) from error
        except NoSuchExchange as error:
            raise LinkRefused("amqp:not-found", str(error)) from error

    def _options(self, terminus: Terminus) -> NodeDeclaration:
        try:
            return read_node_declaration(terminus.capabilities, terminus.properties, limits=self._registry.limits)
        except NodeDeclarationError as error:
            raise _refusal(error) from error


def _check_deletable(node: LinkNode) -> None:
    if node.name in PREDECLARED_NAMES or node.name.startswith("qmf."):
        raise LinkRefused("amqp:not-allowed", f"exchange {node.name!r} cannot be deleted")


def _refusal(error: NodeDeclarationError) -> LinkRefused:
    return LinkRefused("amqp:invalid-field" if error.invalid else "amqp:not-implemented", str(error))
